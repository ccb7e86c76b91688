//! The id of a transaction: which group of nodes has its record, and a random part.

use std::fmt;
use std::str::FromStr;

/// How many hexadecimal digits the random part has: 128 bits.
const RANDOM: usize = 32;

/// How many digits the number of the group has.
const GROUP: usize = 16;

/// The id of a transaction. Give it to each participant: as text, it is 49 characters of lower-case
/// hexadecimal digits and one `-`, which fits into a file name and into the `gid` of PostgreSQL's
/// `PREPARE TRANSACTION`.
///
/// It names the group of nodes that keeps the record. An id of another group is refused, since a
/// record that is not there means that the transaction was aborted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId {
    group: u64,
    random: u128,
}

impl TransactionId {
    /// The id with these parts. The random one must never have been used before.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(group: u64, random: u128) -> Self {
        Self { group, random }
    }

    /// Which group has the record.
    #[doc(hidden)]
    #[must_use]
    pub const fn group(&self) -> u64 {
        self.group
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, random } = self;
        write!(f, "{group:0GROUP$x}-{random:0RANDOM$x}")
    }
}

impl fmt::Debug for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransactionId({self})")
    }
}

/// Reads what `Display` has written, and nothing else.
impl FromStr for TransactionId {
    type Err = InvalidTransactionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let (group, random) = text.split_once('-').ok_or(InvalidTransactionId)?;
        let is_valid = |part: &str, digits| part.len() == digits && part.bytes().all(is_digit);
        if !is_valid(group, GROUP) || !is_valid(random, RANDOM) {
            return Err(InvalidTransactionId);
        }
        let group = u64::from_str_radix(group, 16).map_err(|_| InvalidTransactionId)?;
        let random = u128::from_str_radix(random, 16).map_err(|_| InvalidTransactionId)?;
        Ok(Self { group, random })
    }
}

/// A text is not the id of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidTransactionId;

impl fmt::Display for InvalidTransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not the id of a transaction: {GROUP} and {RANDOM} hexadecimal digits with a `-`")
    }
}

impl std::error::Error for InvalidTransactionId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_and_nothing_else_is_one() {
        for id in [TransactionId::new(0, 1), TransactionId::new(u64::MAX, u128::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.to_string().len(), 49);
        }
        let text = TransactionId::new(0xab, 7).to_string();
        let others = [
            String::new(),
            text.to_uppercase(),
            text.replace('-', ""),
            text.replace('-', "+"),
            format!("{text}0"),
            format!(" {text}"),
            text.replacen('0', "+", 1),
            text.replacen('0', "", 1),
        ];
        for other in others {
            assert_eq!(other.parse::<TransactionId>(), Err(InvalidTransactionId), "{other}");
        }
    }
}
