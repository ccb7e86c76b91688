//! Transactions: two processes change two databases, or none does.
//!
//! Each transaction has one [`Record`], which is the value of a register. It holds the votes: when
//! a majority has the last one, that is the decision. So there is no coordinator that could fail
//! between the votes and the decision, as in two-phase commit, and a side that waits for too long
//! does not decide alone, as in three-phase commit.
//!
//! As in Paxos Commit (Gray and Lamport 2006), each vote is a consensus instance of its own. Its
//! first ballot is reserved to the side: the one with which the record was accepted, until
//! another one is promised. So a vote is one round, [raised](crate::RegisterCommand::Raise) in
//! place. Whatever else becomes of the record is a change of the register, which decides all
//! instances at once: it goes on from all votes that it finds on a majority.
//!
//! ```text
//!              begin               the last vote                    the last finish
//!   no record ───────▶ Open{voted} ─────────────▶ Committed{finished} ─────────────▶ no record
//!                        │                                                              ▲
//!                        └──────────────────────── abort ───────────────────────────────┘
//! ```
//!
//! - To a side that is prepared, no record means that the transaction was aborted. Nobody can vote
//!   before the record was made, as nobody knows the id. To all others it means that the
//!   transaction is over, or never was.
//! - Anybody may abort what is not committed. After its vote, a side never rolls back on its own.
//! - A side finishes when its commit is on its disk. The record is there until all have: before
//!   that, somebody may come back and ask.
//!
//! [`TransactionSide`] is what one side does, in which order. It sees no register, no clock and no
//! disk.

mod joining;
mod record;

pub use joining::{Disk, JoinEnd, JoinStep, TransactionSide};
pub use record::{FINISHED, FORGOTTEN, InvalidRecord, Record, RecordState, UnknownName, VOTED};
use std::fmt;
use std::str::FromStr;

// The id of a transaction: which group of nodes has its record, and a random part.

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
        let (group, random) = text.split_once('-').ok_or(InvalidTransactionId)?;
        if !has_digits(group, GROUP) || !has_digits(random, RANDOM) {
            return Err(InvalidTransactionId);
        }
        let group = u64::from_str_radix(group, 16).map_err(|_| InvalidTransactionId)?;
        let random = u128::from_str_radix(random, 16).map_err(|_| InvalidTransactionId)?;
        Ok(Self { group, random })
    }
}

/// Is this a hexadecimal number with so many digits, in lower case and without a sign?
fn has_digits(part: &str, count: usize) -> bool {
    let mut bytes = part.bytes();
    part.len() == count && bytes.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A text is not the id of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidTransactionId;

impl fmt::Display for InvalidTransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not the id of a transaction: {GROUP} and {RANDOM} hexadecimal digits with a `-`"
        )
    }
}

impl std::error::Error for InvalidTransactionId {}

// The names of a transaction's participants.

/// How many participants a transaction can have. Each vote answers the whole record: with more
/// participants, a register for each vote would pay.
pub const PARTICIPANTS_MAX: usize = 16;

/// The longest name of a participant, in bytes.
pub const PARTICIPANT_NAME_MAX: usize = 64;

/// Why a transaction cannot have these participants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamesError {
    /// There is no name.
    None,
    /// There are too many.
    TooMany {
        /// How many there are.
        count: usize,
        /// The most that there may be.
        most: usize,
    },
    /// A name is empty.
    Empty,
    /// A name is too long.
    TooLong {
        /// The name.
        name: String,
        /// The most bytes that it may have.
        most: usize,
    },
    /// A name is there twice.
    Twice {
        /// The name.
        name: String,
    },
}

/// Checks the names of a new transaction.
fn check_names(names: &[&str]) -> Result<(), NamesError> {
    let count = names.len();
    let most = PARTICIPANTS_MAX;
    if count == 0 {
        return Err(NamesError::None);
    }
    if count > most {
        return Err(NamesError::TooMany { count, most });
    }
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(NamesError::Empty);
        }
        if name.len() > PARTICIPANT_NAME_MAX {
            let name = (*name).to_owned();
            let most = PARTICIPANT_NAME_MAX;
            return Err(NamesError::TooLong { name, most });
        }
        if names[..index].contains(name) {
            return Err(NamesError::Twice {
                name: (*name).to_owned(),
            });
        }
    }
    Ok(())
}

impl fmt::Display for NamesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("a transaction without participants"),
            Self::TooMany { count, most } => {
                write!(f, "{count} participants, a transaction has {most} at most")
            }
            Self::Empty => f.write_str("the name of a participant is empty"),
            Self::TooLong { name, most } => {
                write!(
                    f,
                    "the name of a participant is longer than {most} bytes: {name:?}"
                )
            }
            Self::Twice { name } => write!(f, "two participants are called {name:?}"),
        }
    }
}

impl std::error::Error for NamesError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_and_nothing_else_is_one() {
        for id in [
            TransactionId::new(0, 1),
            TransactionId::new(u64::MAX, u128::MAX),
        ] {
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
            assert_eq!(
                other.parse::<TransactionId>(),
                Err(InvalidTransactionId),
                "{other}"
            );
        }
    }

    mod names {
        use super::super::*;

        #[test]
        fn names_are_few_short_and_each_is_there_once() {
            assert_eq!(check_names(&["a", "b"]), Ok(()));
            assert_eq!(check_names(&[]), Err(NamesError::None));
            assert_eq!(check_names(&["a", ""]), Err(NamesError::Empty));
            assert_eq!(
                check_names(&["a", "b", "a"]),
                Err(NamesError::Twice {
                    name: "a".to_owned()
                })
            );
            let longest = "x".repeat(64);
            let longer = "x".repeat(65);
            assert_eq!(check_names(&[&longest]), Ok(()));
            assert_eq!(
                check_names(&[&longer]),
                Err(NamesError::TooLong {
                    name: longer.clone(),
                    most: 64
                })
            );
            let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
            let many: Vec<&str> = many.iter().map(String::as_str).collect();
            assert_eq!(check_names(&many[..16]), Ok(()));
            assert_eq!(
                check_names(&many),
                Err(NamesError::TooMany {
                    count: 17,
                    most: 16
                })
            );
        }
    }
}
