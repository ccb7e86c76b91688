//! The errors of calls that are simulated.

use redlatch_protocol::node::NodeReport;
use redlatch_registers::transaction::{TransactionId, UnknownName};
/// Of a call that acquires a lock, before the nodes have answered: nothing simulated has one.
pub(crate) use std::convert::Infallible as Error;
use std::fmt;
use std::sync::Arc;

/// Too few nodes have answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NoQuorum {
    reports: Vec<NodeReport>,
}

impl NoQuorum {
    pub(crate) fn new(reports: Vec<NodeReport>) -> Self {
        Self { reports }
    }

    pub(crate) fn of_all(reports: Vec<NodeReport>) -> Self {
        Self { reports }
    }
}

/// Those of registers, as the library's loops make them.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    dead_code,
    reason = "what is simulated is told apart by its effect alone"
)]
pub(crate) enum RegisterError {
    NoQuorum {
        error: NoQuorum,
        may_have_happened: bool,
    },
    Unknown,
    NotFormed,
    AlreadyFormed,
    NodesDiffer {
        url: Arc<str>,
    },
    NotDurable {
        nodes: Vec<(Arc<str>, &'static str)>,
    },
    NotRepaired {
        url: Arc<str>,
        why: Arc<str>,
    },
    PlaceTaken {
        url: Arc<str>,
        members: Vec<Arc<str>>,
    },
    OtherFormat {
        url: Option<Arc<str>>,
        format: Option<u8>,
    },
    Exhausted,
    WithinChange,
    NoEntropy,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Those of transactions.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "they are shown where one is not expected")]
pub(crate) enum TransactionError {
    Register(RegisterError),
    UnknownName(UnknownName),
    OtherGroup { id: TransactionId },
}

impl From<RegisterError> for TransactionError {
    fn from(error: RegisterError) -> Self {
        Self::Register(error)
    }
}

impl From<UnknownName> for TransactionError {
    fn from(error: UnknownName) -> Self {
        Self::UnknownName(error)
    }
}

#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the disks of simulated participants do not fail")]
pub(crate) enum JoinError<E> {
    NotBegun(TransactionError),
    Disk(E),
    Refused(E),
    Undecided(TransactionError),
    Unfinished { is_committed: bool, error: E },
    NotPrepared,
}
