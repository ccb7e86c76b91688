//! Errors of looking at locks, and of taking them away by force.

use super::{NoQuorum, OTHER_PROCESS, ResourceError};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a lock could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InspectError {
    /// The resource's name cannot be used.
    Resource(ResourceError),
    /// Too few nodes answered to know.
    NoQuorum(NoQuorum),
    /// This is a forked child of the process that built the client, which works in that one only.
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

/// Why a lock was not taken away by force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForceReleaseError {
    /// What is there is no lock: no string, an empty one or one without a ttl, or one that is
    /// longer than any lock's. Nothing was removed.
    NotALock {
        /// The nodes that hold it.
        urls: Vec<Arc<str>>,
    },
    /// Too few nodes answered to know. Those that did have removed what was seen.
    NoQuorum(NoQuorum),
    /// This is a forked child of the process that built the client, which works in that one only.
    OtherProcess,
}

impl fmt::Display for ForceReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALock { urls } => {
                write!(f, "what is there is no lock, and was not removed: {}", urls.join(", "))
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
