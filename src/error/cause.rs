//! What the errors of several operations have in common.

use crate::engine::quorum;
use crate::node::{NodeAnswer, NodeReport, OTHER_PROCESS};
use std::error::Error;
use std::time::Duration;
use std::{fmt, io};

/// Too few nodes gave an answer that counts. Says of each node what it said, or why it said
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoQuorum {
    reports: Vec<NodeReport>,
}

impl NoQuorum {
    pub(crate) fn new(reports: Vec<NodeReport>) -> Self {
        Self { reports }
    }

    /// One report of each node, in the order of the configuration.
    #[must_use]
    pub fn reports(&self) -> &[NodeReport] {
        &self.reports
    }

    /// How many nodes make a majority.
    #[must_use]
    pub fn needed(&self) -> usize {
        quorum(self.reports.len())
    }

    /// How many nodes gave an answer that counts, be it a refusal.
    #[must_use]
    pub fn answered(&self) -> usize {
        let counts = |report: &&NodeReport| {
            matches!(report.answer, NodeAnswer::Granted | NodeAnswer::Refused)
        };
        self.reports.iter().filter(counts).count()
    }
}

impl fmt::Display for NoQuorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (answered, nodes, needed) = (self.answered(), self.reports.len(), self.needed());
        write!(f, "no quorum: {answered} of {nodes} nodes gave an answer that counts, ")?;
        write!(f, "{needed} must agree")?;
        for (index, report) in self.reports.iter().enumerate() {
            write!(f, "{} {report}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl Error for NoQuorum {}

/// The lock is not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockLost {
    /// The time has passed for which it was granted.
    Expired,
    /// So many nodes have lost its key or given it to another that the rest is no majority.
    Gone,
    /// This is a forked child of the process that took the lock. That one may hold it still, or
    /// have given it back.
    OtherProcess,
}

impl fmt::Display for LockLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lock is lost: its validity has passed",
            Self::Gone => "the lock is lost: no majority of nodes holds it any more",
            Self::OtherProcess => {
                "the lock is not held here: another process took it, which forked this one"
            }
        })
    }
}

impl Error for LockLost {}

/// Why a resource's name cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceError {
    /// It has no bytes.
    Empty,
    /// It has too many bytes, the key prefix included.
    TooLong {
        /// How many it has.
        length: usize,
        /// How many are possible.
        most: usize,
    },
    /// It ends in `:redlatch:fence`, as the keys of fencing counters do.
    Reserved,
    /// Several resources were asked for, and there are none of them.
    None,
    /// Too many resources were asked for at once.
    TooMany {
        /// How many.
        count: usize,
        /// How many are possible.
        most: usize,
    },
    /// The owner's label has too many bytes.
    OwnerTooLong {
        /// How many it has.
        length: usize,
        /// How many are possible.
        most: usize,
    },
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the resource has no name"),
            Self::TooLong { length, most } => {
                write!(f, "the resource's name has {length} bytes, more than {most}")
            }
            Self::Reserved => {
                f.write_str("the resource's name ends in \":redlatch:fence\", as counters' keys do")
            }
            Self::None => f.write_str("no resource was named"),
            Self::TooMany { count, most } => {
                write!(f, "{count} resources at once are more than {most}")
            }
            Self::OwnerTooLong { length, most } => {
                write!(f, "the owner's label has {length} bytes, more than {most}")
            }
        }
    }
}

impl Error for ResourceError {}

/// Why a ttl cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TtlError {
    /// Clock drift and the least validity would leave nothing of it.
    TooShort {
        /// The ttl.
        ttl: Duration,
        /// The shortest that is possible with these settings.
        shortest: Duration,
    },
    /// It is longer than `Builder::max_ttl` allows.
    TooLong {
        /// The ttl.
        ttl: Duration,
        /// What is allowed.
        max_ttl: Duration,
    },
    /// The lock is to be kept alive, and the ttl has no room for three rounds of `node_timeout`.
    TooShortToKeep {
        /// The ttl.
        ttl: Duration,
        /// The shortest that is possible with these settings.
        shortest: Duration,
    },
    /// The lock is to be kept alive, and would be held for longer than it may be from the start.
    BeyondHold {
        /// The ttl.
        ttl: Duration,
        /// For how long it may be held.
        max_hold: Duration,
    },
}

impl fmt::Display for TtlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { ttl, shortest } => {
                write!(f, "a ttl of {ttl:?} leaves no validity: at least {shortest:?} is needed")
            }
            Self::TooLong { ttl, max_ttl } => {
                write!(f, "a ttl of {ttl:?} is longer than the setting max_ttl of {max_ttl:?}")
            }
            Self::TooShortToKeep { ttl, shortest } => write!(
                f,
                "a ttl of {ttl:?} is too short to be renewed: at least {shortest:?} is needed"
            ),
            Self::BeyondHold { ttl, max_hold } => {
                write!(f, "a ttl of {ttl:?} is longer than the lock may be held: {max_hold:?}")
            }
        }
    }
}

impl Error for TtlError {}

/// The operating system had no thread to give to the one that watches over locks, or that one is in
/// another process, of which this is a forked child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnError {
    kind: io::ErrorKind,
    why: String,
}

impl SpawnError {
    pub(crate) fn new(error: &io::Error) -> Self {
        Self { kind: error.kind(), why: error.to_string() }
    }

    /// The thread is in another process.
    pub(crate) fn elsewhere() -> Self {
        Self { kind: io::ErrorKind::Unsupported, why: OTHER_PROCESS.to_owned() }
    }

    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.kind
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no thread to watch over locks: {}", self.why)
    }
}

impl Error for SpawnError {}
