//! Errors of inspecting locks and of releasing them by force.

use super::{NoQuorum, OTHER_PROCESS, ResourceError};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a lock could not be inspected.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InspectError {
    /// The resource's name cannot be used.
    Resource(ResourceError),
    /// Too few nodes answered to know the lock's state.
    NoQuorum(NoQuorum),
    /// This is a forked child of the process that built the client, which works only there.
    OtherProcess,
}

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(error) => error.fmt(f),
            Self::NoQuorum(error) => error.fmt(f),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl Error for InspectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resource(error) => error.source(),
            Self::NoQuorum(error) => error.source(),
            Self::OtherProcess => None,
        }
    }
}

/// Why a lock was not released by force.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForceReleaseError {
    /// On Redis: the key's value is no lock: it is not a string, is empty, has no ttl, or is longer
    /// than any lock's value. Nothing was removed.
    NotALock {
        /// The nodes that have such a value.
        urls: Vec<Arc<str>>,
    },
    /// Too few nodes answered to know the result. Those that did answer have removed the value that
    /// was seen. On ZooKeeper, some of the znodes that were seen may be deleted, or all.
    NoQuorum(NoQuorum),
    /// This is a forked child of the process that built the client, which works only there.
    OtherProcess,
}

impl fmt::Display for ForceReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALock { urls } => {
                write!(f, "the key's value is no lock and was not removed: {}", urls.join(", "))
            }
            Self::NoQuorum(error) => error.fmt(f),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl Error for ForceReleaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotALock { .. } | Self::OtherProcess => None,
            Self::NoQuorum(error) => error.source(),
        }
    }
}
