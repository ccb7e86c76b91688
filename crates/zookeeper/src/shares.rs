//! The shares of a lock that were granted: their names, and which may be together.
//!
//! ```text
//!   /apps/locks/orders           the queue: who waits, and a writer that holds the lock
//!   /apps/locks/orders~shares    the readers and permits that hold a share of it
//!     r00010203-0405-4607-8809-0a0b0c0d0e0f         a reader
//!     p3-00010203-0405-4607-8809-0a0b0c0d0e0f       permit number 3
//!        └── id of the contender's queue znode ┘
//! ```
//!
//! Only the first contender of the queue creates a share, in the transaction that deletes its znode
//! of the queue. So while it is the first, shares go and none come, and what it has read stays
//! allowed: two shares never have the same number.
//!
//! The name of a permit has an id besides its number, so that it is never used again: a delete that
//! is repeated, as it was not answered, would delete another client's permit otherwise, and a
//! client whose permit was removed by force would take the next one with its number for its own.

use super::path::ContenderId;
use redlatch_protocol::engine::Share;
use std::collections::BTreeSet;

/// A share that was granted, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantedShare {
    Reader,
    /// The permit with this number, from 0.
    Permit(u32),
}

impl GrantedShare {
    /// The name of its znode, for the contender with this id.
    pub fn name(self, id: ContenderId) -> String {
        match self {
            Self::Reader => format!("r{id}"),
            Self::Permit(number) => format!("p{number}-{id}"),
        }
    }

    /// The share with this name, `None` if it is none: others may have chosen the name.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        if let Some(id) = name.strip_prefix('r') {
            return is_id(id).then_some(Self::Reader);
        }
        let (digits, id) = name.strip_prefix('p')?.split_once('-')?;
        let number: u32 = digits.parse().ok()?;
        // Only as it is written.
        (number.to_string() == digits && is_id(id)).then_some(Self::Permit(number))
    }

    /// The number of a permit.
    pub fn slot(self) -> Option<u32> {
        match self {
            Self::Reader => None,
            Self::Permit(number) => Some(number),
        }
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// What the first of the queue may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Nothing, before a share is given back.
    None,
    Whole,
    Share(GrantedShare),
}

/// What the first of the queue may have beside the shares with these names, if it wants this.
pub(super) fn admit<N: AsRef<[u8]>>(
    wanted: Option<Share>,
    names: impl Iterator<Item = N>,
) -> Admission {
    let mut readers = 0;
    let mut taken = BTreeSet::new();
    for granted in names.filter_map(|name| GrantedShare::of_name(name.as_ref())) {
        match granted {
            GrantedShare::Reader => readers += 1,
            GrantedShare::Permit(number) => {
                taken.insert(number);
            }
        }
    }
    match wanted {
        None if readers == 0 && taken.is_empty() => Admission::Whole,
        Some(Share::Reader) if taken.is_empty() => Admission::Share(GrantedShare::Reader),
        Some(Share::Permit { of, number }) if readers == 0 => {
            let start = number
                .unwrap_or_default()
                .checked_rem(of)
                .unwrap_or_default();
            let mut numbers = (start..of).chain(0..start);
            let free = numbers.find(|number| !taken.contains(number));
            free.map_or(Admission::None, |number| {
                Admission::Share(GrantedShare::Permit(number))
            })
        }
        _ => Admission::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00010203-0405-4607-8809-0a0b0c0d0e0f";

    fn name(short: &str) -> String {
        format!("{short}{ID}")
    }

    fn admitted(wanted: Option<Share>, names: &[&str]) -> Admission {
        let names: Vec<String> = names.iter().map(|short| name(short)).collect();
        admit(wanted, names.iter())
    }

    #[test]
    fn a_share_is_read_as_it_was_written_and_nothing_else_is() {
        let id = ContenderId::from_random([7; 16]);
        for granted in [
            GrantedShare::Reader,
            GrantedShare::Permit(0),
            GrantedShare::Permit(u32::MAX),
        ] {
            assert_eq!(
                GrantedShare::of_name(granted.name(id).as_bytes()),
                Some(granted)
            );
        }
        for short in [
            "",
            "r-",
            "p",
            "p-",
            "p1",
            "p01-",
            "p+1-",
            "p-1-",
            "p4294967296-",
            "x",
            "rr",
        ] {
            assert_eq!(
                GrantedShare::of_name(name(short).as_bytes()),
                None,
                "{short}"
            );
        }
        for other in ["r", "p1-", "r1", "p1", "\u{fc}"] {
            assert_eq!(GrantedShare::of_name(other.as_bytes()), None, "{other}");
        }
        let upper = name("r").to_uppercase().replace('R', "r");
        assert_eq!(GrantedShare::of_name(upper.as_bytes()), None);
        assert_eq!(GrantedShare::of_name(b"r\xff"), None);
        assert_eq!(
            (GrantedShare::Permit(3).slot(), GrantedShare::Reader.slot()),
            (Some(3), None)
        );
    }

    #[test]
    fn readers_are_together_and_writers_are_alone() {
        let reader = Some(Share::Reader);
        assert_eq!(admitted(None, &[]), Admission::Whole);
        assert_eq!(
            admitted(None, &["x", "lock-"]),
            Admission::Whole,
            "others are not shares"
        );
        assert_eq!(admitted(None, &["r"]), Admission::None);
        assert_eq!(admitted(None, &["p1-"]), Admission::None);
        assert_eq!(
            admitted(reader, &[]),
            Admission::Share(GrantedShare::Reader)
        );
        assert_eq!(
            admitted(reader, &["r", "r"]),
            Admission::Share(GrantedShare::Reader)
        );
        assert_eq!(admitted(reader, &["r", "p0-"]), Admission::None);
    }

    #[test]
    fn a_permit_has_a_free_number_from_the_hint_on() {
        let permit = |of, number| Some(Share::Permit { of, number });
        let number = |number| Admission::Share(GrantedShare::Permit(number));
        assert_eq!(admitted(permit(3, None), &[]), number(0));
        assert_eq!(admitted(permit(3, Some(2)), &[]), number(2));
        assert_eq!(admitted(permit(3, Some(2)), &["p2-"]), number(0));
        assert_eq!(admitted(permit(3, Some(8)), &["p2-", "p0-"]), number(1));
        assert_eq!(
            admitted(permit(3, Some(1)), &["p2-", "p0-", "p1-"]),
            Admission::None
        );
        assert_eq!(
            admitted(permit(2, None), &["p7-", "p8-", "p9-"]),
            number(0),
            "of a larger count"
        );
        assert_eq!(admitted(permit(2, None), &["r"]), Admission::None);
        assert_eq!(admitted(permit(0, Some(1)), &[]), Admission::None);
        assert_eq!(admitted(permit(u32::MAX, Some(u32::MAX)), &[]), number(0));
    }
}
