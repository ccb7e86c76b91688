//! Errors: what went wrong, on which node, and how it can be fixed.
//!
//! | error | of | fixed by |
//! |---|---|---|
//! | [`ConfigError`] | building a client | the author of the configuration |
//! | [`LockError`] | acquiring a lock | its variants say |
//! | [`WithLockError`] | running something under a lock | its variants say |
//! | [`LockLost`] | holding a lock | the lock is lost: stop the work |
//! | [`ExtendError`] | extending a lock | its variants say |
//! | [`ReleaseError`] | releasing a lock | its variants say |
//! | [`InspectError`] | inspecting a lock | its variants say |
//! | [`ForceReleaseError`] | releasing a lock by force | its variants say |
//! | [`RegisterError`] | reading or changing a register | its variants say |
//! | [`OncePerError`] | running a job once in each period | its variants say |
//! | [`TransactionError`] | beginning or aborting a transaction | its variants say |
//! | [`JoinError`], [`RecoverError`] | taking part in a transaction | its variants say |
//! | [`SpawnError`] | starting a thread | the operator of this machine |
//! | [`Error`] | any of these: each converts into it | |
//!
//! A lock that another client holds is no error. Where nodes are at fault, the error has a report
//! from each of them ([`NoQuorum`]). No text contains a password.
//!
//! The text of an error includes the text of the error inside it. So `source()` returns the cause
//! of that inner error and not the inner error itself, and a chain of errors, printed from end to
//! end, repeats nothing. Match on the error to get at the one inside it.
//!
//! `Debug` of the errors in the table is the same text with its causes below it, because that is
//! what is printed if `main` returns an error.

mod cause;
mod combined;
mod config;
mod inspect;
mod lost;
mod node_list;
mod once_per;
mod readable;
mod register;
mod transaction;
mod with_lock;

pub use crate::engine::register::NoVote;
pub use crate::engine::transaction::{InvalidTransactionId, NamesError, UnknownName};
pub use crate::fencing::FencingTokenError;
pub use crate::node::{
    NodeAnswer, NodeError, NodeReport, OtherProtocol, Phase, ServerError, ServerErrorKind,
    TlsError, TlsErrorKind,
};
pub use crate::node_url::{NodeUrlError, NodeUrlErrorKind};
pub use crate::resp::ProtocolError;
pub use cause::{NoQuorum, ResourceError, SpawnError, TtlError};
pub use combined::Error;
pub use config::{ConfigError, TlsSettingsError};
pub use inspect::{ForceReleaseError, InspectError};
pub use lost::{LockLost, LossReason};
pub use node_list::NodeListError;
pub use once_per::{ClocksError, OncePerError};
pub use register::RegisterError;
pub use transaction::{JoinError, RecoverError, TransactionError};
pub use with_lock::WithLockError;

pub(crate) use crate::node::OTHER_PROCESS;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a lock could not be acquired. That another client holds it is no error.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockError {
    /// The resource's name cannot be used.
    Resource(ResourceError),
    /// The ttl cannot be used.
    Ttl(TtlError),
    /// Too few nodes answered to know whether the lock is free, or too many are in
    /// [quarantine](NoQuorum::quarantine) to grant it; or no server of a ZooKeeper ensemble that
    /// has a majority could be asked.
    NoQuorum(NoQuorum),
    /// A majority granted the lock, but too little of its validity was left by then. It was
    /// released again. The nodes are slow, or the ttl is too short for them.
    TooSlow {
        /// How long it took to be granted.
        took: Duration,
        /// The ttl that was asked for.
        ttl: Duration,
    },
    /// Two nodes are the same server (equal `run_id`), which has one vote and counts as two in the
    /// majority that is needed. From when both are connected, no lock is granted until the
    /// configuration is fixed.
    SameServer {
        /// The URL of the node that comes first in the configuration.
        first: Arc<str>,
        /// The URL of the other node.
        second: Arc<str>,
    },
    /// This thread holds the lock itself: a body that runs [under the
    /// lock](crate::LockClient::with_lock) waits for the same lock, or for a share of it, which is
    /// released only when that body ends. A lock is not re-entrant.
    ///
    /// Only this case is detected, and only within one client, and not for a body that runs as a
    /// [reader](crate::LockRequest::shared) or with a [permit](crate::LockRequest::one_of); see
    /// [`LockClient::lock`](crate::LockClient::lock). It is reported until the keys have expired on
    /// the nodes, which is up to the drift allowance later than the lock counts as lost. It is not
    /// detected if the lock was acquired without the wait queue, as
    /// [`try_with_lock`](crate::LockRequest::try_with_lock) may do.
    HeldByThisThread,
    /// The operating system had no random numbers, without which a lock is not safe.
    NoEntropy,
    /// The thread that keeps the lock alive could not be started.
    Spawn(SpawnError),
    /// The client keeps so many locks alive already that with this one it could not extend all of
    /// them in time. The nodes were not asked. Use a longer ttl, nearer nodes, or another client,
    /// which has connections of its own.
    TooManyKeptAlive {
        /// How many locks it keeps alive.
        kept: usize,
        /// How many locks like this one it could keep alive if there were no others.
        most: usize,
        /// The ttl that was asked for.
        ttl: Duration,
        /// How long a round takes at present.
        round: Duration,
    },
    /// The client holds or waits for so many locks on ZooKeeper that with this one more the end of
    /// its session could stop the ensemble: the paths of their znodes have 512 KiB. Use another
    /// client, which has a session of its own, or shorter names.
    TooManyHeld,
    /// A [`CancelToken`](crate::CancelToken) of the call, or of the client, was cancelled.
    Cancelled,
    /// This is a forked child of the process that built the client, which works only there.
    OtherProcess,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(error) => error.fmt(f),
            Self::Ttl(error) => error.fmt(f),
            Self::NoQuorum(error) => error.fmt(f),
            Self::TooSlow { took, ttl } => {
                write!(
                    f,
                    "granted with too little validity left: after {took:.1?} of a ttl of {ttl:?}"
                )
            }
            Self::SameServer { first, second } => {
                write!(f, "{first} and {second} are the same server: it must not vote twice")
            }
            Self::HeldByThisThread => f.write_str(
                "this thread holds the lock itself and would wait for its own work to end",
            ),
            Self::NoEntropy => f.write_str("the operating system has no random numbers"),
            Self::Spawn(error) => error.fmt(f),
            Self::TooManyKeptAlive { kept, most, ttl, round } => write!(
                f,
                "too many locks are kept alive: {kept}; with a ttl of {ttl:?} and rounds of \
                 {round:.1?} at most {most} can be extended in time"
            ),
            Self::TooManyHeld => f.write_str(
                "too many locks: the znodes of one ZooKeeper session have paths of 512 KiB at most",
            ),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Resource(error) => error.source(),
            Self::Ttl(error) => error.source(),
            Self::NoQuorum(error) => error.source(),
            Self::Spawn(error) => error.source(),
            _ => None,
        }
    }
}

/// Why a lock could not be extended. Unless it is [`Lost`](Self::Lost), the lock is held as before.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtendError {
    /// The ttl cannot be used.
    Ttl(TtlError),
    /// The lock was lost.
    Lost(LockLost),
    /// Too few nodes confirmed the extension. The lock is held until its validity ends, and
    /// extending it may be tried again.
    NoQuorum(NoQuorum),
    /// The lock would be held for longer in all than
    /// [`max_hold`](crate::LockRequest::max_hold) allows.
    HeldTooLong {
        /// For how long it would be held.
        held: Duration,
        /// For how long it may be held.
        max_hold: Duration,
    },
    /// This is a forked child of the process that acquired the lock. Only that one can extend it.
    OtherProcess,
}

impl fmt::Display for ExtendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ttl(error) => error.fmt(f),
            Self::Lost(error) => error.fmt(f),
            Self::NoQuorum(error) => error.fmt(f),
            Self::HeldTooLong { held, max_hold } => {
                write!(f, "held for {held:.1?}: longer than max_hold of {max_hold:?}")
            }
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl std::error::Error for ExtendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Ttl(error) => error.source(),
            Self::Lost(error) => error.source(),
            Self::NoQuorum(error) => error.source(),
            Self::HeldTooLong { .. } | Self::OtherProcess => None,
        }
    }
}

/// Why a release did not confirm that the lock was held to the end.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lock was lost before it was released: its validity had passed, or no majority of the
    /// nodes still had its key. Another client may have held it while this one still worked.
    Lost(LockLost),
    /// Too few nodes confirmed the release. It is sent to the others as soon as they can be reached
    /// again, and in any case their key expires with its ttl, or on ZooKeeper with the session.
    NoQuorum(NoQuorum),
    /// This is a forked child of the process that acquired the lock. Only that one can release it,
    /// and the lock stays as it is.
    OtherProcess,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(error) => error.fmt(f),
            Self::NoQuorum(error) => error.fmt(f),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl std::error::Error for ReleaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Lost(error) => error.source(),
            Self::NoQuorum(error) => error.source(),
            Self::OtherProcess => None,
        }
    }
}

#[cfg(test)]
mod tests;
