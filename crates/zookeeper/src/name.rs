//! The names of contenders: who they belong to, and their order.
//!
//! ```text
//!   _c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-0000000007      Layout::Curator
//!   000102030405460788090a0b0c0d0e0f__lock__0000000007           Layout::Kazoo
//!      └── id of one create request ───────┘      └ number ┘
//! ```
//!
//! The server appends the number, which counts the changes of the directory's children. It is an
//! `i32` of at least ten characters, and its order is that of the contenders until it reaches its
//! end: see [`Number::is_past_end`].
//!
//! Sources: Curator's `LockInternals` and `ProtectedUtils`, kazoo's `recipe/lock.py`, ZooKeeper's
//! `PrepRequestProcessor.pRequest2TxnCreate`.

use std::cmp::Ordering;
use std::fmt::{self, Write};

/// The family of programs whose names are used, so that theirs and this library's locks exclude
/// each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Those of Curator, go-zookeeper and Rust's zookeeper-client.
    #[default]
    Curator,
    /// Those of kazoo.
    Kazoo,
}

impl Layout {
    /// What stands before the number, at the end of what the client chooses.
    fn delimiter(self) -> &'static str {
        match self {
            Self::Curator => "lock-",
            Self::Kazoo => "__lock__",
        }
    }

    /// What a contender's name begins with: all of it but the number.
    pub fn prefix(self, id: ContenderId) -> String {
        match self {
            Self::Curator => format!("_c_{id}-lock-"),
            Self::Kazoo => format!("{}__lock__", id.hexadecimal()),
        }
    }

    /// The name of the contender with this id and number.
    pub fn name(self, id: ContenderId, number: Number) -> String {
        format!("{}{:010}", self.prefix(id), number.0)
    }

    /// The number of the contender with this name, `None` if it is none of this family: others are
    /// no contenders.
    pub fn number(self, name: &[u8]) -> Option<Number> {
        let name = std::str::from_utf8(name).ok()?;
        let (_, digits) = name.rsplit_once(self.delimiter())?;
        let number = digits.parse().ok()?;
        // Only as a server writes it.
        (format!("{number:010}") == digits).then_some(Number(number))
    }
}

/// Identifies one create request: a random UUID (version 4), used once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContenderId([u8; 16]);

impl ContenderId {
    /// The id made of these random bytes.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    fn hexadecimal(self) -> String {
        self.to_string().replace('-', "")
    }
}

/// The usual form, with hyphens.
impl fmt::Display for ContenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_char('-')?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ContenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContenderId({self})")
    }
}

/// The number that the server gave a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number(i32);

/// From this number on, a release removes the directory too, so that the numbers begin again.
const RENEWED_FROM: i32 = 1 << 30;

impl Number {
    /// This number, as a server writes it.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// The order of two contenders of one directory, unless one of them
    /// [`is_past_end`](Self::is_past_end). It goes around the end of the numbers, so it is an order
    /// of contenders that are less than 2^31 apart and not one of all numbers.
    pub fn order(self, other: Self) -> Ordering {
        self.0.wrapping_sub(other.0).cmp(&0)
    }

    /// Do numbers mean nothing any more? At 2147483647 the directory's counter stands still: later
    /// contenders get that number too, and those that are created at the same time negative ones.
    /// Then the order is that of the transactions that created them.
    pub fn is_past_end(self) -> bool {
        self.0 == i32::MAX || self.0 < 0
    }

    /// Should the directory be removed with this contender, if no other is there?
    pub fn renews_directory(self) -> bool {
        self.0 >= RENEWED_FROM || self.0 < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ContenderId = ContenderId([0, 1, 2, 3, 4, 5, 70, 7, 136, 9, 10, 11, 12, 13, 14, 15]);

    #[test]
    fn names_are_those_of_the_other_programs() {
        assert_eq!(Layout::default(), Layout::Curator);
        assert_eq!(Layout::Curator.prefix(ID), "_c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-");
        assert_eq!(Layout::Kazoo.prefix(ID), "000102030405460788090a0b0c0d0e0f__lock__");
    }

    #[test]
    fn an_id_is_a_random_uuid() {
        for byte in 0..=u8::MAX {
            let text = ContenderId::from_random([byte; 16]).to_string();
            assert_eq!(text.len(), 36);
            assert_eq!(&text[14..15], "4", "the version");
            assert!("89ab".contains(&text[19..20]), "the variant");
        }
        assert_eq!(format!("{ID:?}"), format!("ContenderId({ID})"));
    }

    #[test]
    fn the_number_follows_the_last_delimiter() {
        let number = |name: &str| Layout::Curator.number(name.as_bytes());
        for (name, expected) in [
            ("_c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-0000000007", 7),
            ("_c_000102030405460788090a0b0c0d0e0f-lock-0000000007", 7),
            ("000102030405460788090a0b0c0d0e0f-lock-0000000007", 7),
            ("lock-lock-0000000001", 1),
            ("lock-0000000001", 1),
            ("x-lock-2147483647", i32::MAX),
            ("x-lock--2147483648", i32::MIN),
            ("x-lock--000000001", -1),
        ] {
            assert_eq!(number(name), Some(Number(expected)), "{name}");
        }
        let kazoo = |name: &str| Layout::Kazoo.number(name.as_bytes());
        assert_eq!(kazoo("00__lock__0000000012"), Some(Number(12)));
        assert_eq!(kazoo("00__lock__-2147483648"), Some(Number(i32::MIN)));
        assert_eq!(kazoo("00-lock-0000000012"), None);
    }

    #[test]
    fn other_names_are_no_contenders() {
        for name in [
            "",
            "lock-",
            "lock-1",
            "lock-00000000001",
            "lock-+000000001",
            "lock-000000000x",
            "lock-2147483648",
            "lock--2147483649",
            "lock--0000000001",
            "lock-0000000001 ",
            "lock_0000000001",
            "00__lock__0000000012",
            "__READ__0000000001",
            "r0001",
        ] {
            assert_eq!(Layout::Curator.number(name.as_bytes()), None, "{name}");
        }
        assert_eq!(Layout::Curator.number(b"\xfflock-0000000001"), None, "no text");
    }

    #[test]
    fn what_a_server_appends_is_read_again() {
        for number in [0, 1, 9_999_999, 1_000_000_000, i32::MAX, -1, -10, i32::MIN] {
            for layout in [Layout::Curator, Layout::Kazoo] {
                let name = format!("{}{number:010}", layout.prefix(ID));
                assert_eq!(layout.name(ID, Number(number)), name);
                assert_eq!(layout.number(name.as_bytes()), Some(Number(number)), "{name}");
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_numbers_and_goes_around() {
        let before = |first, second| {
            assert_eq!(Number(first).order(Number(second)), Ordering::Less, "{first} {second}");
            assert_eq!(Number(second).order(Number(first)), Ordering::Greater);
        };
        before(0, 1);
        // As text, they would be the other way.
        before(9, 10);
        before(999_999_999, 1_000_000_000);
        before(0, i32::MAX);
        before(i32::MAX - 1, i32::MAX);
        before(i32::MAX, i32::MIN);
        before(-1, 0);
        assert_eq!(Number(7).order(Number(7)), Ordering::Equal);
    }

    #[test]
    fn numbers_end_and_directories_are_renewed_long_before() {
        for (number, is_past_end, renews) in [
            (0, false, false),
            ((1 << 30) - 1, false, false),
            (1 << 30, false, true),
            (i32::MAX - 1, false, true),
            (i32::MAX, true, true),
            (i32::MIN, true, true),
            (-1, true, true),
        ] {
            let number = Number(number);
            assert_eq!((number.is_past_end(), number.renews_directory()), (is_past_end, renews));
        }
    }
}
