//! The client: the public methods that take locks. What they share with the guards is in `core`.

mod acquire;
mod event_recorder;
mod inspect;
mod keep_alive;
mod names;
mod request;

pub use request::LockRequest;

use crate::config::Builder;
use crate::core::Core;
use crate::error::{ConfigError, LockError};
use crate::guard::LockGuard;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Takes locks. It is cheap to clone: all clones, in any number of threads, share one connection to
/// each node.
///
/// | method | waits for others | if others hold the lock |
/// |---|---|---|
/// | [`try_lock`](Self::try_lock) | not at all | `Ok(None)` |
/// | [`try_lock_for`](Self::try_lock_for) | for a time | `Ok(None)` after that time |
/// | [`try_lock_until`](Self::try_lock_until) | until a time | `Ok(None)` at that time |
/// | [`lock`](Self::lock) | as long as it takes | waits |
/// | [`with_lock`](Self::with_lock) | as long as it takes | waits |
///
/// `Ok(None)` means that a majority of the nodes *answered* and other clients hold the lock, or
/// that another thread of this client holds it. If too few nodes answered to know, the result is
/// [`LockError::NoQuorum`], with a report from each node.
///
/// The name of a resource is any non-empty string of bytes that does not end in `:redlatch:fence`.
/// The lock's key on the nodes is the [prefix](Builder::key_prefix) and the name, at most 64 KiB. A
/// ttl counts in whole milliseconds; fractions are cut off. It must leave some validity after
/// [drift](Builder::drift_factor) and 2 ms, and is at most [`max_ttl`](Builder::max_ttl).
///
/// A lock is not re-entrant: it belongs to a guard and not to a thread. A thread that has a guard
/// and waits for the same lock waits for itself, until the validity has passed; if the lock is
/// [extended automatically](LockRequest::keep_alive), that is up to 24 hours. The client cannot
/// refuse that, because a guard may be sent to another thread, which may drop it. Only a closure
/// that runs [under a lock](Self::with_lock) and waits for that lock gets an error:
/// [`LockError::HeldByThisThread`].
///
/// Dropping the last clone waits until the nodes have confirmed the releases of guards that were
/// dropped before. It does not wait for a node that has been silent for
/// [`node_timeout`](Builder::node_timeout), and waits for ten times that at most, which takes
/// thousands of locks or a slow node.
///
/// In a forked child of the process that built it, a client refuses every call
/// ([`LockError::OtherProcess`]), and dropping it does nothing.
#[derive(Clone)]
pub struct LockClient {
    core: Arc<Core>,
}

impl LockClient {
    /// A client of these nodes with the default settings. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new<I: IntoIterator<Item: Into<String>>>(urls: I) -> Result<Self, ConfigError> {
        Self::builder().nodes(urls).build()
    }

    /// A client with other than the default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Takes the lock of `resource` for `ttl` if it is free, in one attempt.
    ///
    /// Of several clients that ask at the same moment each may be granted some nodes, and none
    /// enough. An attempt that is split in this way is undone and made again after a random pause
    /// of about a round, up to four attempts in all and within one
    /// [`node_timeout`](Builder::node_timeout), so that one of them gets the lock. It is still
    /// possible, though rare, that all are told `None`: each had its four attempts cross with
    /// another's, or no time for more than one because the nodes take about half of `node_timeout`
    /// to answer, or lost before an answer that granted it a node had come. So `None` says that
    /// others asked for the lock or hold it, not that work is being done under it. Who must know
    /// asks again, or [waits](Self::try_lock_for).
    ///
    /// # Errors
    ///
    /// The resource's name or the ttl cannot be used, too few nodes gave an answer that counts,
    /// they took too long, two of them are one server, or there are no random numbers.
    pub fn try_lock(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<Option<LockGuard>, LockError> {
        self.request(resource).ttl(ttl).no_wait().acquire()
    }

    /// Takes the lock of `resource` for `ttl`, waiting for it for up to `wait`. With a `wait` of
    /// zero this is [`try_lock`](Self::try_lock); one that is too long to be counted means for
    /// ever. A thread that holds the lock itself waits in vain: it is [not re-entrant](LockClient).
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), if the last attempt failed so, or at once if waiting is of
    /// no use: see [`NodeError::is_permanent`](crate::NodeError::is_permanent).
    pub fn try_lock_for(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<LockGuard>, LockError> {
        self.request(resource).ttl(ttl).wait_for(wait).acquire()
    }

    /// Takes the lock of `resource` for `ttl`, waiting for it until `deadline`. With a `deadline`
    /// that has passed this is [`try_lock`](Self::try_lock).
    ///
    /// # Errors
    ///
    /// As [`try_lock_for`](Self::try_lock_for).
    pub fn try_lock_until(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
        deadline: Instant,
    ) -> Result<Option<LockGuard>, LockError> {
        self.request(resource).ttl(ttl).wait_until(deadline).acquire()
    }

    /// Takes the lock of `resource` for `ttl`, waiting for it as long as it takes: for others to
    /// release it, for enough nodes to be reachable, and, where a majority was started less than
    /// [`max_ttl`](Builder::max_ttl) ago, for their grants to count (see
    /// [`restart_guard`](Builder::restart_guard)). The last is a minute on servers that have just
    /// been started; [`Event::Quarantined`](crate::Event::Quarantined) says so.
    ///
    /// The lock is [not re-entrant](LockClient): a thread that has a guard of it, and waits for it
    /// again before it drops that, waits for the end of its own lock's validity.
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), but only what waiting does not mend: too few nodes answered
    /// because most of them, say, want a password, or are no Redis servers.
    pub fn lock(&self, resource: impl AsRef<[u8]>, ttl: Duration) -> Result<LockGuard, LockError> {
        let guard = self.request(resource).ttl(ttl).wait_forever().acquire()?;
        Ok(guard.expect("an operation that waits for ever does not end with a lock held by others"))
    }
}

impl Builder {
    /// Checks the settings and builds the client. Connects to nothing: that happens with the first
    /// lock, and no node needs to be up.
    ///
    /// # Errors
    ///
    /// A setting that makes no sense, no node or too many, a URL that cannot be used, the same
    /// server twice, or an operating system without a poll to give, or without a thread if one was
    /// [asked for](Self::io_thread).
    pub fn build(self) -> Result<LockClient, ConfigError> {
        Ok(LockClient { core: Arc::new(Core::new(self.check()?)?) })
    }
}

impl fmt::Debug for LockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockClient").field("nodes", &self.core.rules.nodes).finish_non_exhaustive()
    }
}
