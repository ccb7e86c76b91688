//! Requests about the queue of a lock, and the names that the scripts give to its keys.

use super::several::Call;
use super::shares::wish;
use super::{decimal, value_of};
use crate::engine::{Acquisition, Listen, QueueEntry, QueueView, Token, WAITER_NUMBER_MAX};
use crate::resp::{Reply, encode_command};
use std::time::Duration;

/// The infix that turns a lock's key into the key of a waiter's bell. The waiter's name follows.
const BELL: &[u8] = b":redlatch:bell:";

/// The prefix of a reservation. The waiter's name follows. No token begins like this: tokens are 20
/// random bytes.
pub const RESERVED: &[u8] = b"redlatch:reserved:";

/// Is this value of a lock's key a reservation, and no lock?
#[must_use]
pub fn is_reservation(value: &[u8]) -> bool {
    value.len() == RESERVED.len() + Token::LEN && value.starts_with(RESERVED)
}

/// The value of a lock's key that a node has reserved for this waiter.
pub(super) fn reservation(waiter: &Token) -> Vec<u8> {
    [RESERVED, waiter.as_bytes()].concat()
}

/// The waiter whose bell this key is.
pub(in crate::node) fn waiter_of_bell(key: &[u8]) -> Option<Token> {
    let (rest, name) = key.split_at_checked(key.len().checked_sub(Token::LEN)?)?;
    let name = name.try_into().ok()?;
    rest.ends_with(BELL).then(|| Token::new(name))
}

impl Call<'_> {
    /// Enters a waiter into the queue, or renews its entry.
    pub(super) fn queue(self, entry: &QueueEntry, out: &mut Vec<u8>) {
        let QueueEntry { lock, waiter, number, since, lease, .. } = entry;
        let owner = lock.attributes.as_ref().map_or(&[][..], |attributes| &attributes.owner);
        let since = [since.to_string().as_bytes(), wish(lock).as_bytes(), b" ", owner].concat();
        let [mut number_digits, mut lease_digits, mut reservation_digits] = [[0; 20]; 3];
        let number = decimal(*number, &mut number_digits);
        let lease = decimal(lease.as_millis(), &mut lease_digits);
        let reservation = decimal(self.reservation.as_millis(), &mut reservation_digits);
        let waiter = waiter.as_bytes();
        let arguments = [waiter, number, &value_of(lock), &since, lease, reservation];
        self.run(lock, &[], &arguments, out);
    }

    /// Takes a lock with one key and no counter in a waiter's turn.
    pub(super) fn turn(self, new: &Acquisition, waiter: &Token, out: &mut Vec<u8>) {
        let [mut digits, mut front] = [[0; 20]; 2];
        let ttl = decimal(new.ttl.as_millis(), &mut digits);
        let front = decimal(self.reservation.as_millis(), &mut front);
        self.run(&new.lock, &[], &[waiter.as_bytes(), &value_of(&new.lock), ttl, front], out);
    }

    /// Has the server tell this connection about a waiter's bell.
    pub(super) fn listen(self, key: &[u8], step: Listen, out: &mut Vec<u8>) {
        match step {
            Listen::Enable => encode_command(out, &[b"CLIENT", b"TRACKING", b"ON", b"OPTIN"]),
            Listen::OptIn => encode_command(out, &[b"CLIENT", b"CACHING", b"YES"]),
            Listen::Read(waiter) => {
                let bell = [key, BELL, waiter.as_bytes()].concat();
                let (verb, name) = self.name;
                encode_command(out, &[verb, name, b"1", &bell, self.proof]);
            }
        }
    }
}

/// A waiter's number and what the node says about it, in the elements behind the script's number.
pub(super) fn view(elements: &[Reply<'_>]) -> Option<(u64, QueueView)> {
    let [number, place, reserved, left, waiting] = elements else { return None };
    let integer = |reply: &Reply<'_>| match reply {
        Reply::Integer(number) => Some(*number),
        _ => None,
    };
    let number = u64::try_from(integer(number)?).ok()?;
    let place = u64::try_from(integer(place)?).ok()?;
    let waiting = u64::try_from(integer(waiting)?).ok()?;
    let is_reserved = match integer(reserved)? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let is_valid = (1..=WAITER_NUMBER_MAX).contains(&number) && place < waiting;
    // Negative: there is no key, or it has no ttl.
    let left = u64::try_from(integer(left)?).ok().map(Duration::from_millis);
    let view = QueueView { place, is_reserved, left, is_heard: false };
    is_valid.then_some((number, view))
}
