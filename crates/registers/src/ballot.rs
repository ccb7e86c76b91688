//! Ballots: who may decide the next value of a register.

use redlatch_protocol::engine::Token;
use std::fmt;

/// The bits of a ballot's number that count within an epoch.
const COUNTER_BITS: u32 = 40;

/// A ballot: a number, and who has drawn it.
///
/// Numbers are compared as numbers. Owners are only compared for equality: of two owners with one
/// number, a node serves the one that came first, so no order of owners is needed, and a tie often
/// leaves a winner.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ballot {
    number: u64,
    owner: Token,
}

impl Ballot {
    /// Numbers are below this: a script counts with numbers of 53 bits.
    pub const NUMBER_END: u64 = 1 << 53;

    /// The highest count within an epoch.
    pub(super) const COUNT_MAX: u64 = (1 << COUNTER_BITS) - 1;

    /// The digits of a number, as it is sent and stored.
    const DIGITS: usize = 16;

    /// The bytes of a ballot, as it is sent and stored: the digits of its number and its owner.
    pub const LEN: usize = Self::DIGITS + Token::LEN;

    /// The ballot with this number, if it is small enough.
    pub fn new(number: u64, owner: Token) -> Option<Self> {
        (number < Self::NUMBER_END).then_some(Self { number, owner })
    }

    pub fn number(self) -> u64 {
        self.number
    }

    /// Whose it is: a client.
    pub fn owner(self) -> Token {
        self.owner
    }

    /// The ballot that an accepted one promises, if numbers are left.
    pub fn next(self) -> Option<Self> {
        Self::new(self.number + 1, self.owner)
    }

    /// The number below all ballots of this epoch.
    pub fn beginning(epoch: u64) -> u64 {
        epoch.checked_shl(COUNTER_BITS).unwrap_or(Self::NUMBER_END).min(Self::NUMBER_END)
    }

    /// As it is sent and stored.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..Self::DIGITS].copy_from_slice(format!("{:016}", self.number).as_bytes());
        bytes[Self::DIGITS..].copy_from_slice(self.owner.as_bytes());
        bytes
    }

    /// Reads the ballot at the beginning of these bytes, and returns it with the rest of them.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (digits, rest) = bytes.split_at_checked(Self::DIGITS)?;
        let (owner, rest) = rest.split_first_chunk()?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some((Self::new(number, Token::new(*owner))?, rest))
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.number, self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_and_nothing_else_is_a_ballot() {
        let owner = Token::new(*b"12345678901234567890");
        for number in [0, 1, Ballot::beginning(1), Ballot::NUMBER_END - 1] {
            let ballot = Ballot::new(number, owner).unwrap();
            let bytes = [&ballot.to_bytes()[..], b"rest"].concat();
            assert_eq!(Ballot::read(&bytes), Some((ballot, &b"rest"[..])));
            for length in 0..Ballot::LEN {
                assert_eq!(Ballot::read(&bytes[..length]), None);
            }
        }
        let digits = |digits: &str| [digits.as_bytes(), owner.as_bytes()].concat();
        for invalid in
            ["9007199254740992", "+000000000000001", "-000000000000001", "             1"]
        {
            assert_eq!(Ballot::read(&digits(invalid)), None, "{invalid}");
        }
    }

    #[test]
    fn numbers_end_where_a_script_cannot_count_on() {
        let owner = Token::new([0; Token::LEN]);
        assert_eq!(Ballot::new(Ballot::NUMBER_END, owner), None);
        assert_eq!(Ballot::new(Ballot::NUMBER_END - 1, owner).unwrap().next(), None);
        assert_eq!(Ballot::beginning(3), 3 << 40);
        assert_eq!(Ballot::beginning(1 << 13), Ballot::NUMBER_END);
        assert_eq!(Ballot::beginning(u64::MAX), Ballot::NUMBER_END);
    }
}
