//! Who has a share of a lock, from the sets of holders of all nodes.

use super::{Holder, LockState, is_reserved, label, lock_left};
use crate::engine::{PERMITS_MAX, Token};
use crate::node::command::{SHARED, read_member};
use redlatch_protocol::inspect::{HolderSnapshot, KeySnapshot, LISTED_MAX, SHOWN_MAX};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Is the lock shared on this node? Then its key's value is the same for all holders.
pub(super) fn is_shared(snapshot: &KeySnapshot) -> bool {
    snapshot.value.as_deref() == Some(SHARED)
}

pub(super) fn on_node(snapshot: &KeySnapshot) -> Vec<Holder> {
    let holders = snapshot.holders.iter().filter(|_| is_shared(snapshot));
    holders
        .filter_map(|holder| read(&holder.member, lock_left(snapshot, holder.left)))
        .collect()
}

/// What a release by force removes from the node: the members of its set of holders; the key's
/// value if it has none, so that nobody has a share.
pub(super) fn members(snapshot: &KeySnapshot) -> impl Iterator<Item = Vec<u8>> {
    let members = snapshot.holders.iter().map(|holder| holder.member.clone());
    let alone = snapshot
        .value
        .clone()
        .filter(|_| snapshot.holders.is_empty());
    members.chain(alone)
}

/// The state of a lock that a majority of the nodes shares: the holders that a majority has.
pub(super) fn state(snapshots: &[Option<KeySnapshot>], needed: usize) -> LockState {
    let mut found: BTreeMap<&[u8], Vec<Option<Duration>>> = BTreeMap::new();
    let shared = snapshots
        .iter()
        .flatten()
        .filter(|snapshot| is_shared(snapshot));
    for snapshot in shared {
        for HolderSnapshot { member, left } in &snapshot.holders {
            let left = lock_left(snapshot, *left);
            found.entry(member).or_default().push(left);
        }
    }
    let mut holders = Vec::new();
    for (member, mut left) in found {
        left.sort_unstable_by(|one, other| other.cmp(one));
        let of_majority = left.get(needed - 1);
        holders.extend(of_majority.and_then(|left| read(member, *left)));
    }
    holders.sort_by_key(|holder| (holder.slot, holder.remaining));
    if holders.is_empty() {
        LockState::Undecided
    } else {
        LockState::Shared(holders)
    }
}

/// How many hold a lock in this state.
pub(super) fn count(snapshots: &[Option<KeySnapshot>], state: &LockState) -> usize {
    let shown = match state {
        LockState::Shared(holders) => holders.len(),
        LockState::Held(_) => return 1,
        _ => return 0,
    };
    let shared = snapshots
        .iter()
        .flatten()
        .filter(|snapshot| is_shared(snapshot));
    let counts = shared.map(|snapshot| snapshot.holder_count);
    counts
        .filter(|count| *count > LISTED_MAX)
        .max()
        .unwrap_or(0)
        .max(shown)
}

fn read(member: &[u8], remaining: Option<Duration>) -> Option<Holder> {
    let (slot, value) = read_member(member)?;
    // Where another client was given this slot, the member has a number that is larger by that.
    let slot = slot.map(|number| number % PERMITS_MAX);
    Some(Holder {
        owner: label(value),
        slot,
        remaining,
        since: None,
        other_program: None,
    })
}

// Data under a lock's key that is not a lock of this library: none at all, or that of another
// program.

/// Why the data under a lock's key is not a lock, neither of this library nor of another program.
/// As long as it is there, the node grants the lock to nobody.
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
    /// For logs and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotAString => "not_a_string",
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::NoTtl => "no_ttl",
        }
    }

    /// `None` if there is no key, or a lock, or a reservation for a waiter.
    pub(super) fn of(snapshot: &KeySnapshot) -> Option<Self> {
        let value = snapshot.value.as_ref()?;
        if is_reserved(snapshot) || is_shared(snapshot) {
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

/// The program whose lock's value has this form. Others may have the same.
///
/// Its text is such as "redlock-py".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherProgram {
    /// redlock-py: 22 letters and digits.
    RedlockPy,
    /// npm's redlock: 32 random hexadecimal digits.
    NpmRedlock,
    /// redis-py's `Lock`: 32 hexadecimal digits of a UUID of version 1.
    RedisPy,
    /// python-redis-lock: 18 bytes in base64.
    PythonRedisLock,
    /// pottery: a UUID of version 4.
    Pottery,
    /// A program whose form is not known here.
    Unknown,
}

impl OtherProgram {
    /// `None` if this library may have set the value.
    ///
    /// That begins with twenty random bytes: once in 500 million times, all of them are printable.
    pub(super) fn of(value: &[u8]) -> Option<Self> {
        let token = value.get(..Token::LEN);
        if token.is_some_and(|token| !token.iter().all(u8::is_ascii_graphic)) {
            return None;
        }
        let is_made_of = |of: fn(&u8) -> bool| value.iter().all(of);
        let is_hexadecimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        Some(match value.len() {
            22 if is_made_of(u8::is_ascii_alphanumeric) => Self::RedlockPy,
            24 if is_made_of(|byte| {
                matches!(byte, b'+' | b'/') || byte.is_ascii_alphanumeric()
            }) =>
            {
                Self::PythonRedisLock
            }
            32 if is_made_of(is_hexadecimal)
                && value[12] == b'1'
                && matches!(value[16], b'8'..=b'b') =>
            {
                Self::RedisPy
            }
            32 if is_made_of(is_hexadecimal) => Self::NpmRedlock,
            36 if value[8] == b'-' && value[13..15] == *b"-4" && value[23] == b'-' => Self::Pottery,
            _ => Self::Unknown,
        })
    }
}

impl fmt::Display for OtherProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::RedlockPy => "redlock-py",
            Self::NpmRedlock => "npm's redlock",
            Self::RedisPy => "redis-py",
            Self::PythonRedisLock => "python-redis-lock",
            Self::Pottery => "pottery",
            Self::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_value_says_which_program_has_probably_set_it() {
        let table = [
            // As these programs have set them on a server.
            ("3ZN5YNDuoiOLHpj9w3bxx7", OtherProgram::RedlockPy),
            ("V5IiUxM5TTtyaKIzKBiHwyqC", OtherProgram::PythonRedisLock),
            ("CHLOgXjy+et4DbhTjaZZb9SM", OtherProgram::PythonRedisLock),
            ("d0f7eeeae93a11f1a51e02fc00000001", OtherProgram::RedisPy),
            ("0c8b8d3ff1a0e2c19d6e5f7a8b9c0d1e", OtherProgram::NpmRedlock),
            ("0c8b8d3ff1a012c17d6e5f7a8b9c0d1e", OtherProgram::NpmRedlock),
            (
                "7d33e562-57f4-4d7d-8790-0e549097f386",
                OtherProgram::Pottery,
            ),
            ("by hand", OtherProgram::Unknown),
            ("host-7:1234:of-another-program", OtherProgram::Unknown),
        ];
        for (value, program) in table {
            assert_eq!(OtherProgram::of(value.as_bytes()), Some(program), "{value}");
        }
    }

    #[test]
    fn a_token_with_a_label_is_of_this_library_whatever_the_label() {
        let mut value = *b"abcdefghijklmnopqrstof another program";
        assert_eq!(OtherProgram::of(&value), Some(OtherProgram::Unknown));
        for byte in 0..Token::LEN {
            for random in [b'\0', b' ', b'\x7f', b'\xff'] {
                let before = std::mem::replace(&mut value[byte], random);
                assert_eq!(OtherProgram::of(&value), None);
                assert_eq!(OtherProgram::of(&value[..Token::LEN]), None);
                value[byte] = before;
            }
        }
    }
}
