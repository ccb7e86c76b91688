//! Errors of registers, and of what is built on them: transactions, and jobs that run once in each
//! period.

use super::{NoQuorum, OTHER_PROCESS, ResourceError};
use crate::node::NodeReport;
use crate::texts::{debug, errors, from};
use redlatch_registers::transaction::TransactionId;
pub use redlatch_registers::transaction::{InvalidTransactionId, NamesError, UnknownName};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

errors! {
    /// Why a register could not be read or changed.
    #[derive(Clone, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum RegisterError {
        /// The register's name cannot be used.
        Resource(error: ResourceError),
        #[text("the value has {length} bytes, a register has {most} at most")]
        TooLong { length: usize, most: usize },
        /// `may_have_happened`: whether a change was sent. Then it may have been made, or be made
        /// later, by another client that finds it on a node.
        #[text(
            "{sent}{error}",
            sent = if *may_have_happened { "the change may have been made: " } else { "" }
        )]
        #[cause(error)]
        NoQuorum { error: NoQuorum, may_have_happened: bool },
        /// Or it is made later. Some nodes may have refused it, and since then the register was
        /// deleted or changed by eight other clients or more, or a node got a value of another
        /// format; or the thread has panicked that was about to send it together with its own.
        #[text(
            "the change was made or was not: its answer was lost, and the register was deleted or \
             changed often since"
        )]
        Unknown,
        /// [`registers().form`](crate::register::Registers::form) makes them one.
        #[text("the nodes are not a group for registers yet (redlatch registers form)")]
        NotFormed,
        /// All of them are its members, and it has no others.
        #[text("the nodes are a group for registers already")]
        AlreadyFormed,
        /// Clients that name other nodes would agree on other values.
        #[text(
            "{url} belongs to another group of nodes, to one of another size, or to one whose \
             formation has ended half way: only if that has kept no registers, delete the key on \
             it that ends with :redlatch:member, and form it again"
        )]
        NodesDiffer { url: Arc<str> },
        /// The nodes do not keep what they have answered, so they cannot be formed without being
        /// told that registers are in memory. `nodes`: each such node, and what it lacks.
        #[text("registers would be lost: {nodes}", nodes = lacks(nodes))]
        NotDurable { nodes: Vec<(Arc<str>, &'static str)> },
        #[text("{url} has got no vote: {why}")]
        NotRepaired { url: Arc<str>, why: Arc<str> },
        /// A node does not show that it is a member: another server may have taken its place.
        /// [`Registers::replace`](crate::register::Registers::replace) gives it one of the places
        /// that are left. `members`: the addresses of the members that have these places.
        #[text("{url} has got no vote: {place}", place = place(members))]
        PlaceTaken { url: Arc<str>, members: Vec<Arc<str>> },
        /// A node has a value that no majority of the others agrees with. Nothing was changed.
        /// `url`: the node; `None` if a majority has the value; `format`: that of a later version
        /// of this library.
        #[text(
            "{node}{writer}",
            node = url.as_ref().map_or(String::new(), |url| format!("{url}: ")),
            writer = writer(*format)
        )]
        OtherFormat { url: Option<Arc<str>>, format: Option<u8> },
        /// Its number is above 2^53, which takes another program that writes these keys, as a group
        /// in its last epoch repairs no node.
        #[text("no number is left for a ballot")]
        Exhausted,
        /// It may be called several times, while other threads wait for it, so that must not be.
        #[text("a function that changes a register has used one")]
        WithinChange,
        #[text("the operating system has no random numbers")]
        NoEntropy,
        /// A znode with its version does the same.
        #[text("there are no registers on ZooKeeper")]
        ZooKeeper,
        /// What a register has chosen has no end, so no waiting heals that a failover has forgotten
        /// it, as it does for locks. Independent servers keep registers. `url`: the node.
        #[text(
            "{url} is a replicated group, and there are no registers on groups: a failover may \
             forget what a register has chosen"
        )]
        Replicated { url: Arc<str> },
        /// This is a forked child of the process that built the client, which works only there.
        #[text("{OTHER_PROCESS}")]
        OtherProcess,
    }
}

from! { super::Error:
    RegisterError => Register,
    OncePerError => OncePer,
    TransactionError => Transaction,
}

from! { TransactionError:
    RegisterError => Register,
    NamesError => Names,
    UnknownName => UnknownName,
}

debug!(RegisterError, TransactionError, OncePerError);

impl NoQuorum {
    /// A majority is not enough.
    pub(crate) fn of_all(reports: Vec<NodeReport>) -> Self {
        Self {
            reports,
            needs_all: true,
        }
    }
}

fn lacks(nodes: &[(Arc<str>, &'static str)]) -> String {
    let lacks: Vec<_> = nodes
        .iter()
        .map(|(url, why)| format!("{url} has {why}"))
        .collect();
    lacks.join("; ")
}

fn place(members: &[Arc<str>]) -> String {
    if members.is_empty() {
        return "each place of the group is another node's".to_owned();
    }
    let members = members.join(", or of ");
    format!("the place is that of {members} (Registers::replace gives it away)")
}

fn writer(format: Option<u8>) -> String {
    match format {
        Some(format) => {
            format!("a later version of this library has written the value: format {format}")
        }
        None => "another program has written the key of the register".to_owned(),
    }
}

impl RegisterError {
    /// May a change have been made, or be made later, although this error was returned?
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::NoQuorum {
                may_have_happened, ..
            } => *may_have_happened,
            Self::Unknown => true,
            _ => false,
        }
    }

    /// Was the call refused before the nodes were asked?
    pub(crate) fn is_refusal(&self) -> bool {
        let by_caller = matches!(
            self,
            Self::Resource(_) | Self::TooLong { .. } | Self::WithinChange
        );
        by_caller
            || matches!(
                self,
                Self::NoEntropy | Self::ZooKeeper | Self::Replicated { .. } | Self::OtherProcess
            )
    }
}

// Errors of jobs that run once in each period.

errors! {
    /// What only [`OncePer::run`](crate::OncePer::run) has to say, besides the other errors of a
    /// lock and, with [`exact`](crate::OncePer::exact), of a register.
    #[derive(Clone, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum OncePerError {
        #[text("a period of {period:?} is not longer than its tolerance: {tolerance:?}")]
        Period { period: Duration, tolerance: Duration },
        /// The nodes did not tell the time, and the job has not run.
        Clocks(error: ClocksError),
        /// The job succeeded, but that was not noted. As failed runs are [tried
        /// again](crate::OncePer::retry_failed), it may run again.
        #[text("the job ran, and may run again in this period: {error}")]
        #[cause(error)]
        NotRecorded(error: Box<super::Error>),
    }
}

errors! {
    /// Why the time is not known.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum ClocksError {
        /// The user may not run `TIME` on the others, or they did not answer.
        #[text(
            "{answered} of the nodes told the time, and {needed} are needed: the user needs the \
             rights +info and +time"
        )]
        TooFew { answered: usize, needed: usize },
        /// By more than a tenth of the period.
        #[text(
            "the clocks of nodes differ by {by:?}, and too few answered to know which is right"
        )]
        Differ { by: Duration },
    }
}

// Errors of transactions.

errors! {
    /// Why a transaction could not be begun, looked at or changed.
    #[derive(Clone, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum TransactionError {
        /// There cannot be these participants. Nothing was written.
        Names(error: NamesError),
        /// The transaction has no participant with this name. Nothing was written.
        UnknownName(error: UnknownName),
        /// Nothing was written.
        ///
        /// If these nodes have been made a group anew, after all of them had lost their data, then
        /// the records are lost, and with them the decisions: only a person who looks at all
        /// participants can tell.
        #[text("another group of nodes has the transaction {id}")]
        OtherGroup { id: TransactionId },
        /// The record could not be read or changed.
        Register(error: RegisterError),
    }
}

/// Why [`join`](crate::transaction::Transactions::join) does not know that this side has come to
/// its end. `E` is the participant's own error.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "the text of a variant says what its fields are"
)]
pub enum JoinError<E> {
    /// Nothing was begun by this call, and the disk knows nothing of the transaction. Of an earlier
    /// call with the same id, this says nothing: it may have committed and forgotten it.
    NotBegun(TransactionError),
    /// The participant could not tell what its disk says, or not put back what was prepared too
    /// late, so it is not known how the transaction ends. Repeat as for
    /// [`Undecided`](Self::Undecided).
    Disk(E),
    /// The participant could not prepare, and this call has aborted the transaction. Nothing is
    /// left of it on this side.
    Refused(E),
    /// The decision is not known: too few nodes answered. This side may have voted and stays
    /// prepared. Call [`join`](crate::transaction::Transactions::join) with the same id again, or
    /// [`recover`](crate::transaction::Transactions::recover).
    Undecided(TransactionError),
    /// The decision is known, and the participant could not carry it out. It is still on its disk,
    /// and the record is there until it is, unless another process of this side has done so: repeat
    /// as for [`Undecided`](Self::Undecided).
    /// `error`: why it was not.
    Unfinished { is_committed: bool, error: E },
    /// The record has a vote of this side, and its disk does not know the transaction: the disk has
    /// lost it, or two participants with disks of their own have one name. The other participants
    /// have committed, or will.
    NotPrepared,
}

/// Why [`recover`](crate::transaction::Transactions::recover) has not brought all transactions of
/// this side to an end. `E` is the participant's own error.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "the text of a variant says what its fields are"
)]
pub enum RecoverError<E> {
    /// The participant could not tell what its disk says.
    Disk(E),
    /// All on the disk have come to their end. Those that others have begun meanwhile, and that
    /// wait for a vote of this side, could not be listed and aborted.
    NotListed(TransactionError),
    /// Some are left. Call it again later: they are still on the disk. `resolved`: how many have
    /// come to their end; `unresolved`: the others, and why. There is at least one.
    Unresolved {
        resolved: usize,
        unresolved: Vec<(TransactionId, JoinError<E>)>,
    },
}

impl<E: fmt::Display> fmt::Display for JoinError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBegun(error) => error.fmt(f),
            Self::Disk(error) => write!(f, "the participant's disk: {error}"),
            Self::Refused(error) => write!(f, "aborted, as the participant cannot: {error}"),
            Self::Undecided(error) => {
                write!(
                    f,
                    "the participant stays prepared, the decision is not known: {error}"
                )
            }
            Self::Unfinished {
                is_committed,
                error,
            } => {
                let (decision, step) = if *is_committed {
                    ("committed", "commit")
                } else {
                    ("aborted", "roll back")
                };
                write!(
                    f,
                    "{decision}, but the participant could not {step}: {error}"
                )
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
                write!(
                    f,
                    "transactions that are not at their end: {}",
                    unresolved.len()
                )?;
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
