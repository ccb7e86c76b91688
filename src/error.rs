//! Errors: what went wrong, whose fault it is, and which node's.
//!
//! | error | of | who can mend it |
//! |---|---|---|
//! | [`ConfigError`] | building a client | the one who wrote the configuration |
//! | [`LockError`] | taking a lock | its variants say |
//! | [`ExtendError`] | extending one | its variants say |
//! | [`ReleaseError`] | releasing one | whoever runs the nodes |
//! | [`InspectError`] | looking at one | its variants say |
//! | [`ForceReleaseError`] | taking one away by force | its variants say |
//! | [`SpawnError`] | watching one | whoever runs the machine |
//!
//! That another client holds a lock is no error. Where nodes are at fault, there is a report from
//! each of them ([`NoQuorum`]). No text contains a password.
//!
//! The text of each error is whole: it has what the error inside it says. So `source()` leads to
//! what that one was caused by, and not to the error itself, and whoever prints a chain of errors
//! reads nothing twice. The error inside is found by matching.

mod cause;
mod inspect;

pub use crate::node::{
    NodeAnswer, NodeError, NodeReport, OtherProtocol, Phase, ServerError, ServerErrorKind,
};
pub use crate::node_url::{NodeUrlError, NodeUrlErrorKind};
pub use crate::resp::ProtocolError;
pub use cause::{LockLost, NoQuorum, ResourceError, SpawnError, TtlError};
pub use inspect::{ForceReleaseError, InspectError};

pub(crate) use crate::node::OTHER_PROCESS;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// Why a client could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// No node was named.
    NoNodes,
    /// More than 64 nodes were named.
    TooManyNodes(usize),
    /// A node's URL cannot be used.
    Url(NodeUrlError),
    /// Two URLs name the same server, whose vote would count twice.
    Duplicate {
        /// The first of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A setting has a value that makes no sense.
    Setting {
        /// The method of `Builder` that sets it.
        name: &'static str,
        /// What is wrong with the value.
        reason: String,
    },
    /// The operating system refused what the client needs: a poll, or a thread if the connections
    /// are to have [one of their own](crate::Builder::io_thread).
    System(io::Error),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("no nodes: at least one URL is needed"),
            Self::TooManyNodes(count) => write!(f, "{count} nodes: at most 64 are possible"),
            Self::Url(error) => error.fmt(f),
            Self::Duplicate { first, second } => {
                write!(f, "{first} and {second} are the same server: it must not vote twice")
            }
            Self::Setting { name, reason } => write!(f, "setting {name}: {reason}"),
            Self::System(error) => {
                write!(f, "no sockets can be polled, or not by a thread: {error}")
            }
        }
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Url(error) => error.source(),
            Self::System(error) => error.source(),
            _ => None,
        }
    }
}

/// Why a lock could not be taken, apart from others holding it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockError {
    /// The resource's name cannot be used.
    Resource(ResourceError),
    /// The ttl cannot be used.
    Ttl(TtlError),
    /// Too few nodes answered to know whether the lock is free.
    NoQuorum(NoQuorum),
    /// A majority granted the lock, but so late that too little of its validity was left. It was
    /// given back. The nodes are slow, or the ttl is too short for them.
    TooSlow {
        /// How long the nodes took.
        took: Duration,
        /// The ttl that was asked for.
        ttl: Duration,
    },
    /// Two endpoints turned out to lead to the same server (equal `run_id`), so there is no
    /// majority of independent nodes. Nothing is locked until the configuration is mended.
    SameServer {
        /// The first of them.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
    },
    /// This thread holds the lock itself: it waits for it in what it
    /// [runs](crate::LockClient::with_lock) under it, which has to end before the lock is given up.
    /// A lock is not re-entrant. Only this is noticed, and only within one client; see
    /// [`LockClient::lock`](crate::LockClient::lock). It is said until the keys have expired on the
    /// servers, which is up to the drift allowance later than the lock counts as lost. It is not
    /// noticed where the lock was taken past those who wait for it in this client, as by
    /// [`no_wait`](crate::LockRequest::no_wait).
    HeldByThisThread,
    /// The operating system had no random numbers, without which a lock is not safe.
    NoEntropy,
    /// The operating system had no thread to keep the lock alive with.
    Spawn(SpawnError),
    /// The client keeps so many locks alive already that with this one they could not all be
    /// renewed in time. Nothing was asked of the nodes. What helps is a longer ttl, nearer nodes,
    /// or another client, which has connections of its own.
    TooManyKept {
        /// How many locks it keeps alive.
        kept: usize,
        /// How many locks like this one it could keep alive, if there were no others.
        most: usize,
        /// The ttl that was asked for.
        ttl: Duration,
        /// How long a round takes at present.
        round: Duration,
    },
    /// This is a forked child of the process that built the client, which works in that one only.
    OtherProcess,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(error) => error.fmt(f),
            Self::Ttl(error) => error.fmt(f),
            Self::NoQuorum(error) => error.fmt(f),
            Self::TooSlow { took, ttl } => {
                write!(f, "granted too late: after {took:.1?} of a ttl of {ttl:?}")
            }
            Self::SameServer { first, second } => {
                write!(f, "{first} and {second} lead to the same server: it must not vote twice")
            }
            Self::HeldByThisThread => {
                f.write_str("this thread holds the lock itself, and would wait for its own work")
            }
            Self::NoEntropy => f.write_str("the operating system has no random numbers"),
            Self::Spawn(error) => error.fmt(f),
            Self::TooManyKept { kept, most, ttl, round } => write!(
                f,
                "too many locks are kept alive: {kept}; with a ttl of {ttl:?} and rounds of \
                 {round:.1?} at most {most} can be renewed in time"
            ),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resource(error) => error.source(),
            Self::Ttl(error) => error.source(),
            Self::NoQuorum(error) => error.source(),
            Self::Spawn(error) => error.source(),
            _ => None,
        }
    }
}

/// Why a lock could not be extended. Unless it says [`Lost`](Self::Lost), the lock is as good as it
/// was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtendError {
    /// The ttl cannot be used.
    Ttl(TtlError),
    /// The lock was lost.
    Lost(LockLost),
    /// Too few nodes confirmed it. The lock is good until its validity ends, and may be extended
    /// again.
    NoQuorum(NoQuorum),
    /// The lock would be held for longer in all than `Builder::max_hold` allows.
    HeldTooLong {
        /// For how long it would be held.
        held: Duration,
        /// What is allowed.
        max_hold: Duration,
    },
    /// This is a forked child of the process that took the lock, and only that one extends it.
    OtherProcess,
}

impl fmt::Display for ExtendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ttl(error) => error.fmt(f),
            Self::Lost(error) => error.fmt(f),
            Self::NoQuorum(error) => error.fmt(f),
            Self::HeldTooLong { held, max_hold } => {
                write!(f, "held for {held:.1?}: more than the setting max_hold of {max_hold:?}")
            }
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl Error for ExtendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Ttl(error) => error.source(),
            Self::Lost(error) => error.source(),
            Self::NoQuorum(error) => error.source(),
            Self::HeldTooLong { .. } | Self::OtherProcess => None,
        }
    }
}

/// Why it is not known whether a lock was released.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseError {
    /// Too few nodes confirmed it. Those that did not answer are told as soon as they can be
    /// reached again, and in any case their key expires with its ttl.
    NoQuorum(NoQuorum),
    /// This is a forked child of the process that took the lock, and only that one releases it. The
    /// lock stays as it is.
    OtherProcess,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQuorum(error) => error.fmt(f),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl Error for ReleaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoQuorum(error) => error.source(),
            Self::OtherProcess => None,
        }
    }
}

#[cfg(test)]
mod tests;
