//! Requests about shares of a lock, and the members that stand for them in the set of its holders.

use super::several::Call;
use super::{decimal, value_of};
use crate::engine::{Acquisition, Action, FENCE_MAX, LockId, Removal, Request, Share, Token, Ttl};
use crate::node::command::Meaning;
use crate::node::script::{self, Script};
use crate::resp::Reply;

/// The value of a lock's key that is shared. Its holders are in a set of their own.
pub const SHARED: &[u8] = b"redlatch:shared";

/// The most permits of a resource.
pub const PERMITS_MAX: u32 = 1024;

/// The script that carries out this request, if it is about a share and takes one of its own.
pub(super) fn script(request: &Request) -> Option<Script> {
    request.share()?;
    match &request.action {
        Action::Acquire(_) | Action::Handoff { .. } | Action::Turn { .. } => Some(script::SHARE),
        Action::Extend { .. } => Some(script::EXTEND_SHARED),
        Action::Restore { .. } => Some(script::RESTORE_SHARED),
        Action::Release(it) | Action::Undo(it) => Some(script_of_removal(it)),
        _ => None,
    }
}

/// The script that gives this share back.
fn script_of_removal(removal: &Removal) -> Script {
    let is_plain = removal.waiter.is_none() && removal.linger.is_none();
    if is_plain && removal.lock.share() == Some(Share::Reader) {
        script::RELEASE_READER
    } else {
        script::RELEASE_SHARED
    }
}

/// The member that stands for this share: the permit, a colon, and the lock's value. A lock that is
/// not shared has its value.
pub(super) fn member_of(lock: &LockId) -> Vec<u8> {
    let value = value_of(lock);
    match lock.share() {
        Some(share) => [permit(share).as_bytes(), b":", &value].concat(),
        None => value.into_owned(),
    }
}

/// A member of the set of holders: the permit, if it has one, and the lock's value.
#[must_use]
pub fn read_member(member: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let colon = member.iter().position(|byte| *byte == b':')?;
    let (digits, value) = (&member[..colon], &member[colon + 1..]);
    // `parse` would also accept a sign.
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let number = || std::str::from_utf8(digits).ok()?.parse().ok().filter(|_| is_number);
    let permit = if digits.is_empty() { None } else { Some(number()?) };
    Some((permit, value))
}

/// What a waiter waits for, in the value of its lease: nothing for the exclusive lock.
pub(super) fn requested_mode(lock: &LockId) -> String {
    lock.share().map_or_else(String::new, |share| format!("s{}", share.permits()))
}

fn permit(share: Share) -> String {
    share.permit().map_or_else(String::new, |number| number.to_string())
}

impl Call<'_> {
    /// Takes a share, in the turn of `waiter` if there is one.
    pub(super) fn share(self, new: &Acquisition, waiter: Option<&Token>, out: &mut Vec<u8>) {
        let Acquisition { lock, ttl, fence } = new;
        let permits = lock.share().map_or(0, Share::permits);
        // Where a node begins to look: in a waiter's turn, it has one for the waiter.
        let named = lock.share().and_then(Share::permit).map(u64::from);
        let first = named.or_else(|| waiter.is_none().then(|| first_permit(&lock.token, permits)));
        let [mut millis, mut all, mut from, mut least, mut counter] = [[0; 20]; 5];
        let counters_ttl = lock.counters_ttl().map_or(0, Ttl::as_millis);
        let value = value_of(lock);
        let arguments: [&[u8]; 7] = [
            &value,
            decimal(ttl.as_millis(), &mut millis),
            decimal(permits.into(), &mut all),
            first.map_or(&[][..], |first| decimal(first, &mut from)),
            waiter.map_or(&[][..], |waiter| waiter.as_bytes()),
            decimal(*fence, &mut least),
            decimal(counters_ttl, &mut counter),
        ];
        self.run(lock, &super::several::counters(lock), &arguments, out);
    }

    /// Extends a share, or gives it again.
    pub(super) fn keep_share(self, lock: &LockId, ttl: Ttl, out: &mut Vec<u8>) {
        let mut millis = [0; 20];
        let permit = lock.share().map_or_else(String::new, permit);
        let ttl = decimal(ttl.as_millis(), &mut millis);
        self.run(lock, &[], &[permit.as_bytes(), &value_of(lock), ttl], out);
    }

    /// Gives a share back.
    pub(super) fn release_share(self, removal: &Removal, out: &mut Vec<u8>) {
        if script_of_removal(removal) == script::RELEASE_READER {
            return self.run(&removal.lock, &[], &[&value_of(&removal.lock)], out);
        }
        let Removal { lock, linger, waiter, .. } = removal;
        let [mut all, mut stay] = [[0; 20]; 2];
        let permits = lock.share().map_or(0, Share::permits);
        let value = value_of(lock);
        let arguments: [&[u8]; 4] = [
            &value,
            decimal(permits.into(), &mut all),
            waiter.as_ref().map_or(&[][..], |waiter| waiter.as_bytes()),
            linger.map_or(&[][..], |linger| decimal(linger.as_millis(), &mut stay)),
        ];
        self.run(lock, &[], &arguments, out);
    }
}

/// The permit that the nodes look at first: clients that come at the same time find different ones,
/// and each client the same on every node.
fn first_permit(token: &Token, permits: u32) -> u64 {
    let [a, b, c, d, ..] = *token.as_bytes() else { return 0 };
    u64::from(u32::from_le_bytes([a, b, c, d]) % permits.max(1))
}

/// The meaning of the answer to a share's request, behind the number: 1, the counter, the permit.
pub(super) fn granted(request: &Request, elements: [Option<Reply<'_>>; 3]) -> Option<Meaning> {
    let [Some(Reply::Integer(1)), Some(Reply::Integer(counter)), Some(Reply::Integer(permit))] =
        elements
    else {
        return None;
    };
    let counter = u64::try_from(counter).ok().filter(|counter| *counter <= FENCE_MAX)?;
    let permit = match request.share()? {
        Share::Reader => (permit == -1).then_some(None)?,
        Share::Permit { of, .. } => Some(u32::try_from(permit).ok().filter(|permit| *permit < of)?),
    };
    Some(Meaning::Claimed { is_new: true, counter, waiting: 0, permit })
}
