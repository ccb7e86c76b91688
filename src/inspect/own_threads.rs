//! What a client knows by itself of the threads that hold a lock by it, or wait for it.

use std::fmt;
use std::time::Duration;

/// What the client that [inspects](crate::LockClient::inspect) knows of its own threads, which the
/// nodes do not: they know clients. No other client sees this, nor does another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnThreads {
    /// Whether threads of this client hold the lock, or a share of it.
    pub holder: Option<OwnHolder>,
    /// How many threads of this client wait for the lock within this process, that which asks the
    /// nodes for all of them included: the nodes' queue has a waiter for that one, or none while
    /// another thread of this client holds the lock. Threads that wait for a
    /// [permit](crate::LockRequest::one_of) are not counted here: each is a
    /// [waiter](super::Inspection::waiters) of its own.
    pub waiting: usize,
    /// For how long the longest of them has waited. `None` if none waits.
    pub longest_wait: Option<Duration>,
}

/// Which thread of this client holds a lock.
///
/// Its text is such as "this thread holds it itself".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OwnHolder {
    /// Another thread than the one that asks, or [none in
    /// particular](crate::LockRequest::for_thread).
    OtherThread,
    /// The thread that asks has taken it, and its guard still exists. The guard may be with another
    /// thread by now.
    ThisThread,
}

impl fmt::Display for OwnHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ThisThread => "this thread holds it itself",
            Self::OtherThread => "another thread of this client holds it",
        })
    }
}
