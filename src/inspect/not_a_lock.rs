//! Data under a lock's key that is no lock.

use super::{is_reserved, shares};
use redlatch_protocol::inspect::{KeySnapshot, SHOWN_MAX};
use std::fmt;

/// Why the data under a lock's key is no lock, neither of this library nor of another program. As
/// long as it is there, the node grants the lock to nobody.
///
/// Its text is such as "it is not a string".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotALock {
    /// It is a list, a hash or another type, and not a string.
    NotAString,
    /// It is an empty string.
    Empty,
    /// It is longer than the value of any lock.
    TooLong,
    /// It has no ttl. Every lock has one.
    NoTtl,
}

impl NotALock {
    /// `None` if there is no key, or a lock, or a reservation for a waiter.
    pub(super) fn of(snapshot: &KeySnapshot) -> Option<Self> {
        let value = snapshot.value.as_ref()?;
        if is_reserved(snapshot) || shares::is_shared(snapshot) {
            return None;
        }
        match value.len() {
            _ if !snapshot.is_string => Some(Self::NotAString),
            0 => Some(Self::Empty),
            SHOWN_MAX.. => Some(Self::TooLong),
            _ => (snapshot.left < 0).then_some(Self::NoTtl),
        }
    }
}

impl fmt::Display for NotALock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotAString => "it is not a string",
            Self::Empty => "it is an empty string",
            Self::TooLong => "it is longer than the value of any lock",
            Self::NoTtl => "it has no ttl",
        })
    }
}
