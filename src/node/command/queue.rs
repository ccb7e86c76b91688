//! Requests about the queue of a lock, and the names that the scripts give to its keys.

use super::several::Call;
use super::shares::requested_mode;
use super::{decimal, value_of};
use crate::engine::{Listen, QueueEntry, QueueView, Token, WAITER_NUMBER_MAX};
use crate::resp::{Reply, encode_command};
use std::time::Duration;

/// The prefix of a reservation. The waiter's name follows, and for how many milliseconds the
/// reservation is kept for others after its time. No token begins like this: tokens are 20 random
/// bytes.
pub const RESERVED: &[u8] = b"redlatch:reserved:";

/// The prefix of the channel of a connection, on which nodes notify its waiters.
const CHANNEL: &str = "redlatch:";

/// Is this value of a lock's key a reservation, and no lock?
#[must_use]
pub fn is_reservation(value: &[u8]) -> bool {
    let rest = value.strip_prefix(RESERVED).and_then(|rest| rest.get(Token::LEN..));
    rest.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// What a holder left at a node when it let the lock stay taken for a while: for how many
/// milliseconds after that while the key is kept for those who wait, and the lock's value.
#[must_use]
pub fn read_left(value: &[u8]) -> Option<(u64, &[u8])> {
    let rest = value.strip_prefix(b"redlatch:left:")?;
    let (digits, value) = rest.split_at(rest.iter().position(|byte| *byte == b':')?);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, &value[1..]))
}

/// How the value of a lock's key begins that a node has reserved for this waiter.
pub(super) fn reservation(waiter: &Token) -> Vec<u8> {
    [RESERVED, waiter.as_bytes()].concat()
}

/// What a node tells about a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum Notification {
    /// It reserves the lock for the waiter, or has a share for it.
    Reserved,
    /// The waiter may be the first in this time: so long, the lock is reserved for another one.
    AskIn(Duration),
}

/// The waiter that a message on a channel is for, and what it says.
pub(in crate::node) fn read_notification(message: &[u8]) -> Option<(Token, Notification)> {
    let (name, words) = message.split_at_checked(Token::LEN)?;
    let notification = match words {
        b"r" => Notification::Reserved,
        [b'w', digits @ ..] => {
            let millis = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Notification::AskIn(Duration::from_millis(millis))
        }
        _ => return None,
    };
    Some((Token::new(name.try_into().ok()?), notification))
}

impl Call<'_> {
    /// Enters a waiter into the queue, or renews its entry.
    pub(super) fn queue(self, entry: &QueueEntry, out: &mut Vec<u8>) {
        let QueueEntry { lock, waiter, number, lease, .. } = entry;
        let [mut number_digits, mut lease_digits] = [[0; 20]; 2];
        let number = decimal(*number, &mut number_digits);
        let lease = decimal(lease.as_millis(), &mut lease_digits);
        let waiter = waiter.as_bytes();
        let arguments = [waiter, number, &value_of(lock), &value_of_entry(entry), lease];
        self.run(lock, &[], &arguments, out);
    }

    /// Has the server notify this connection.
    pub(super) fn listen(self, key: &[u8], step: Listen, out: &mut Vec<u8>) {
        match step {
            Listen::Subscribe(channel) => {
                encode_command(out, &[b"SUBSCRIBE", name_of_channel(channel).as_bytes()]);
            }
            Listen::Enable => encode_command(out, &[b"CLIENT", b"TRACKING", b"ON", b"OPTIN"]),
            Listen::OptIn => encode_command(out, &[b"CLIENT", b"CACHING", b"YES"]),
            Listen::Read(_) => {
                let (verb, name) = self.name;
                encode_command(out, &[verb, name, b"1", key, self.proof]);
            }
        }
    }
}

/// The entry of a waiter, as the scripts and `inspect.lua` read it: since when it waits, what for,
/// how long a claim takes, how long the entry is kept in front, the channel, and the owner's label.
fn value_of_entry(entry: &QueueEntry) -> Vec<u8> {
    let QueueEntry { lock, since, lease_in_front, claim, channel, .. } = entry;
    let claim = if channel.is_some() { claim.notified } else { claim.asking };
    let channel = channel.map_or_else(String::new, name_of_channel);
    let (claim, lease) = (claim.as_millis(), lease_in_front.as_millis());
    let head = format!("{since}{} {claim} {lease} {channel} ", requested_mode(lock));
    let owner = lock.attributes.as_ref().map_or(&[][..], |attributes| &attributes.owner);
    [head.as_bytes(), owner].concat()
}

fn name_of_channel(channel: u64) -> String {
    format!("{CHANNEL}{channel:016x}")
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
    let (is_reserved, was_out) = match integer(reserved)? {
        flags @ 0..=3 => (flags & 1 == 1, flags & 2 == 2),
        _ => return None,
    };
    let is_valid = (1..=WAITER_NUMBER_MAX).contains(&number) && place < waiting;
    // Negative: there is no key, or it has no ttl.
    let left = u64::try_from(integer(left)?).ok().map(Duration::from_millis);
    let view = QueueView { place, is_reserved, was_out, left, is_heard: false };
    is_valid.then_some((number, view))
}
