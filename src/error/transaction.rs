//! Errors of transactions.

use super::RegisterError;
use crate::registers::transaction::{NamesError, TransactionId, UnknownName};
use std::error::Error;
use std::fmt;

/// Why a transaction could not be begun, looked at or changed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionError {
    /// There cannot be these participants. Nothing was written.
    Names(NamesError),
    /// The transaction has no participant with this name. Nothing was written.
    UnknownName(UnknownName),
    /// The id is that of another group of nodes, which has its record. Nothing was written.
    ///
    /// If these nodes have been made a group anew, after all of them had lost their data, then the
    /// records are lost, and with them the decisions: only a person who looks at all participants
    /// can tell.
    OtherGroup {
        /// The id.
        id: TransactionId,
    },
    /// The record could not be read or changed.
    Register(RegisterError),
}

/// Why [`join`](crate::transaction::Transactions::join) does not know that this side has come to
/// its end. `E` is the participant's own error.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError<E> {
    /// Nothing was begun on this side.
    NotBegun(TransactionError),
    /// The participant could not tell what its disk says. Nothing was begun in this call.
    Disk(E),
    /// The participant could not prepare. The transaction is aborted, and nothing is left of it on
    /// this side.
    Refused(E),
    /// The decision is not known: too few nodes answered. This side may have voted and stays
    /// prepared. Call [`join`](crate::transaction::Transactions::join) with the same id again, or
    /// [`recover`](crate::transaction::Transactions::recover).
    Undecided(TransactionError),
    /// The decision is known, and the participant could not carry it out. It is still on its disk,
    /// and the record is there until it is: repeat as for [`Undecided`](Self::Undecided).
    Unfinished {
        /// Is it committed?
        is_committed: bool,
        /// Why it was not carried out.
        error: E,
    },
    /// The record has a vote of this side, and its disk does not know the transaction: the disk has
    /// lost it, or two participants have one name. The other participants have committed, or will.
    NotPrepared,
}

/// Why [`recover`](crate::transaction::Transactions::recover) has not brought all transactions of
/// this side to an end. `E` is the participant's own error.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoverError<E> {
    /// The participant could not tell what its disk says.
    Disk(E),
    /// All on the disk have come to their end. Those that others have begun meanwhile, and that
    /// wait for a vote of this side, could not be listed and aborted.
    NotListed(TransactionError),
    /// Some are left. Call it again later: they are still on the disk.
    Unresolved {
        /// How many have come to their end.
        resolved: usize,
        /// The others, and why. There is at least one.
        unresolved: Vec<(TransactionId, JoinError<E>)>,
    },
}

impl From<RegisterError> for TransactionError {
    fn from(error: RegisterError) -> Self {
        Self::Register(error)
    }
}

impl From<NamesError> for TransactionError {
    fn from(error: NamesError) -> Self {
        Self::Names(error)
    }
}

impl From<UnknownName> for TransactionError {
    fn from(error: UnknownName) -> Self {
        Self::UnknownName(error)
    }
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Names(error) => error.fmt(f),
            Self::UnknownName(error) => error.fmt(f),
            Self::OtherGroup { id } => write!(f, "another group of nodes has the transaction {id}"),
            Self::Register(error) => error.fmt(f),
        }
    }
}

impl Error for TransactionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Names(_) | Self::UnknownName(_) | Self::OtherGroup { .. } => None,
            Self::Register(error) => error.source(),
        }
    }
}

impl<E: fmt::Display> fmt::Display for JoinError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBegun(error) => error.fmt(f),
            Self::Disk(error) => write!(f, "the participant's disk: {error}"),
            Self::Refused(error) => write!(f, "aborted, as the participant cannot: {error}"),
            Self::Undecided(error) => {
                write!(f, "the participant stays prepared, the decision is not known: {error}")
            }
            Self::Unfinished { is_committed, error } => {
                let (decision, step) =
                    if *is_committed { ("committed", "commit") } else { ("aborted", "roll back") };
                write!(f, "{decision}, but the participant could not {step}: {error}")
            }
            Self::NotPrepared => f.write_str(
                "the record has a vote of this participant, whose disk does not know of it",
            ),
        }
    }
}

/// As `Display`: `main` prints this.
impl<E: fmt::Display> fmt::Debug for JoinError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Asks for nothing but a text of the participant's error, so that it may be a `Box<dyn Error>`.
impl<E: fmt::Display> Error for JoinError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotBegun(error) | Self::Undecided(error) => error.source(),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for RecoverError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "the participant's disk: {error}"),
            Self::NotListed(error) => error.fmt(f),
            Self::Unresolved { unresolved, .. } => {
                write!(f, "transactions that are not at their end: {}", unresolved.len())?;
                for (index, (id, error)) in unresolved.iter().enumerate() {
                    write!(f, "{} {id}: {error}", if index == 0 { ":" } else { ";" })?;
                }
                Ok(())
            }
        }
    }
}

/// As `Display`: `main` prints this.
impl<E: fmt::Display> fmt::Debug for RecoverError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: fmt::Display> Error for RecoverError<E> {}
