//! Requests about shares of a lock, and the members that stand for them in the set of its holders.

use super::value_of;
use crate::engine::{LockId, Share};

/// The value of a lock's key that is shared. Its holders are in a set of their own.
pub const SHARED: &[u8] = b"redlatch:shared";

/// The member that stands for this share: the permit, a colon, and the lock's value. A lock that is
/// not shared has its value.
pub(in crate::node) fn member_of(lock: &LockId) -> Vec<u8> {
    let value = value_of(lock);
    match lock.share() {
        Some(share) => [requested_permit(share).as_bytes(), b":", &value].concat(),
        None => value.into_owned(),
    }
}

/// A member of the set of holders: the permit, if it has one, and the lock's value.
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
pub(in crate::node) fn requested_mode(lock: &LockId) -> String {
    lock.share().map_or_else(String::new, |share| format!("s{}", share.permits()))
}

/// The number of the permit in the words of scripts: nothing for a reader, or for any permit.
pub(in crate::node) fn requested_permit(share: Share) -> String {
    share.permit().map_or_else(String::new, |number| number.to_string())
}
