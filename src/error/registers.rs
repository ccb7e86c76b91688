//! Errors of registers, and of what is built on them: transactions, and jobs that run once in each
//! period.

use super::{NoQuorum, OTHER_PROCESS, ResourceError};
use crate::registers::transaction::{NamesError, TransactionId, UnknownName};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a register could not be read or changed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
pub enum RegisterError {
    /// The register's name cannot be used.
    Resource(ResourceError),
    /// The value is longer than a register may be. `length`: how many bytes it has; `most`: the
    /// most that it may have.
    TooLong { length: usize, most: usize },
    /// Too few nodes gave an answer that counts. `error`: what each node replied;
    /// `may_have_happened`: whether a change was sent. Then it may have been made, or be made
    /// later, by another client that finds it on a node.
    NoQuorum { error: NoQuorum, may_have_happened: bool },
    /// The change was made, or is made later, or was not: its answer was lost, or some nodes have
    /// refused it, and since then the register was deleted or changed more than eight times, or a
    /// node got a value of another format; or the thread has panicked that was about to send it
    /// together with its own.
    Unknown,
    /// The nodes are no group: [`registers().form`](crate::register::Registers::form) makes them
    /// one.
    NotFormed,
    /// The nodes are a group already: all of them are its members, and it has no others.
    AlreadyFormed,
    /// The nodes belong to more than one group, or to one with another number of nodes: clients
    /// that name other nodes would agree on other values. Or, when they are made a group, one is a
    /// member already, as after a formation that has ended half way. `url`: the node that belongs
    /// to another group.
    NodesDiffer { url: Arc<str> },
    /// The nodes do not keep what they have answered, so they cannot be formed without being told
    /// that registers are in memory. `nodes`: each such node, and what it lacks.
    NotDurable { nodes: Vec<(Arc<str>, &'static str)> },
    /// The node has got no vote, and why.
    NotRepaired { url: Arc<str>, why: Arc<str> },
    /// A node has got no vote, since it does not show that it is a member: another server may have
    /// taken its place. [`Registers::replace`](crate::register::Registers::replace) gives it one of
    /// the places that are left. `url`: the node; `members`: the addresses of the members that have
    /// these places.
    PlaceTaken { url: Arc<str>, members: Vec<Arc<str>> },
    /// A node has a value of another format, such as one that a later version of this library has
    /// written, and no majority of the others agrees. Nothing was changed. `url`: the node; `None`
    /// if a majority has the value; `format`: the format, if it is a later one.
    OtherFormat { url: Option<Arc<str>>, format: Option<u8> },
    /// No ballot is left: its number is above 2^53, which takes another program that writes these
    /// keys, as a group in its last epoch repairs no node.
    Exhausted,
    /// A function that makes a change has used a register. It may be called several times, while
    /// other threads wait for it, so that must not be.
    WithinChange,
    /// The operating system had no random numbers.
    NoEntropy,
    /// Registers are on Redis nodes. On ZooKeeper, a znode with its version does the same.
    ZooKeeper,
    /// This is a forked child of the process that built the client, which works only there.
    OtherProcess,
}

impl RegisterError {
    /// May a change have been made, or be made later, although this error was returned?
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::NoQuorum { may_have_happened, .. } => *may_have_happened,
            Self::Unknown => true,
            _ => false,
        }
    }

    /// Was the call refused before the nodes were asked?
    pub(crate) fn is_refusal(&self) -> bool {
        let by_caller =
            matches!(self, Self::Resource(_) | Self::TooLong { .. } | Self::WithinChange);
        by_caller || matches!(self, Self::NoEntropy | Self::ZooKeeper | Self::OtherProcess)
    }
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(error) => error.fmt(f),
            Self::TooLong { length, most } => {
                write!(f, "the value has {length} bytes, a register has {most} at most")
            }
            Self::NoQuorum { error, may_have_happened } => {
                let sent = if *may_have_happened { "the change may have been made: " } else { "" };
                write!(f, "{sent}{error}")
            }
            Self::Unknown => f.write_str(
                "the change was made or was not: its answer was lost, and the register was \
                 deleted or changed often since",
            ),
            Self::NotFormed => {
                f.write_str("the nodes are no group for registers yet (redlatch registers form)")
            }
            Self::AlreadyFormed => f.write_str("the nodes are a group for registers already"),
            Self::NodesDiffer { url } => {
                write!(
                    f,
                    "{url} belongs to another group of nodes, to one of another size, or to one"
                )?;
                f.write_str(
                    " whose formation has ended half way: only if that has kept no registers, \
                     delete the key on it that ends with :redlatch:member, and form it again",
                )
            }
            Self::NotDurable { nodes } => {
                f.write_str("registers would be lost:")?;
                for (index, (url, why)) in nodes.iter().enumerate() {
                    write!(f, "{} {url} has {why}", if index == 0 { "" } else { ";" })?;
                }
                Ok(())
            }
            Self::NotRepaired { url, why } => write!(f, "{url} has got no vote: {why}"),
            Self::PlaceTaken { url, members } if members.is_empty() => {
                write!(f, "{url} has got no vote: each place of the group is another node's")
            }
            Self::PlaceTaken { url, members } => write!(
                f,
                "{url} has got no vote: the place is that of {} (Registers::replace \
                 gives it away)",
                members.join(", or of ")
            ),
            Self::OtherFormat { url, format } => {
                if let Some(url) = url {
                    write!(f, "{url}: ")?;
                }
                match format {
                    Some(format) => write!(
                        f,
                        "a later version of this library has written the value: format {format}"
                    ),
                    None => f.write_str("another program has written the key of the register"),
                }
            }
            Self::Exhausted => f.write_str("no number is left for a ballot"),
            Self::WithinChange => f.write_str("a function that changes a register has used one"),
            Self::NoEntropy => f.write_str("the operating system has no random numbers"),
            Self::ZooKeeper => f.write_str("there are no registers on ZooKeeper"),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl Error for RegisterError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resource(error) => error.source(),
            Self::NoQuorum { error, .. } => error.source(),
            _ => None,
        }
    }
}

// Errors of jobs that run once in each period.

/// What only [`OncePer::run`](crate::OncePer::run) has to say, besides the other errors of a lock
/// and, with [`exact`](crate::OncePer::exact), of a register.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
pub enum OncePerError {
    /// There cannot be such a period: it is not longer than the tolerance.
    Period { period: Duration, tolerance: Duration },
    /// The nodes did not tell the time, and the job has not run.
    Clocks(ClocksError),
    /// The job ran and succeeded, but it was not noted, for this reason. As failed runs are [tried
    /// again](crate::OncePer::retry_failed), it may run again in this period.
    NotRecorded(Box<super::Error>),
}

/// Why the time is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
pub enum ClocksError {
    /// Fewer nodes than a majority told it: the user may not run `TIME` there, or they did not
    /// answer. `answered`: how many did; `needed`: how many are needed.
    TooFew { answered: usize, needed: usize },
    /// The nodes that told it differ by more than a tenth of the period, and as others did not
    /// answer, it is not known who is right.
    Differ { by: Duration },
}

impl fmt::Display for OncePerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period { period, tolerance } => {
                write!(f, "a period of {period:?} is not longer than its tolerance: {tolerance:?}")
            }
            Self::Clocks(error) => error.fmt(f),
            Self::NotRecorded(error) => {
                write!(f, "the job ran, and may run again in this period: {error}")
            }
        }
    }
}

impl Error for OncePerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotRecorded(error) => error.source(),
            Self::Period { .. } | Self::Clocks(_) => None,
        }
    }
}

impl fmt::Display for ClocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { answered, needed } => write!(
                f,
                "{answered} of the nodes told the time, and {needed} are needed: the user needs \
                 the rights +info and +time"
            ),
            Self::Differ { by } => write!(
                f,
                "the clocks of nodes differ by {by:?}, and too few answered to know which is right"
            ),
        }
    }
}

impl Error for ClocksError {}

// Errors of transactions.

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
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
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
    /// `error`: why it was not.
    Unfinished { is_committed: bool, error: E },
    /// The record has a vote of this side, and its disk does not know the transaction: the disk has
    /// lost it, or two participants have one name. The other participants have committed, or will.
    NotPrepared,
}

/// Why [`recover`](crate::transaction::Transactions::recover) has not brought all transactions of
/// this side to an end. `E` is the participant's own error.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
pub enum RecoverError<E> {
    /// The participant could not tell what its disk says.
    Disk(E),
    /// All on the disk have come to their end. Those that others have begun meanwhile, and that
    /// wait for a vote of this side, could not be listed and aborted.
    NotListed(TransactionError),
    /// Some are left. Call it again later: they are still on the disk. `resolved`: how many have
    /// come to their end; `unresolved`: the others, and why. There is at least one.
    Unresolved { resolved: usize, unresolved: Vec<(TransactionId, JoinError<E>)> },
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
