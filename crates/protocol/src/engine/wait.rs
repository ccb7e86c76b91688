//! How long a caller waits.

use crate::time::Time;

/// How long a caller waits for a lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// One attempt; a few more within `node_timeout` if the votes are split between several clients
    /// that asked at once.
    No,
    /// Attempts until this time, and none beyond it. A time that has come means the same as `No`.
    Until(Time),
    /// As long as it takes.
    Forever,
}

impl Wait {
    /// When the wait ends: a time in the past for one attempt, `None` for a wait without an end.
    pub fn deadline(self) -> Option<Time> {
        match self {
            Self::No => Some(Time::ZERO),
            Self::Until(deadline) => Some(deadline),
            Self::Forever => None,
        }
    }
}
