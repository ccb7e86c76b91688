//! What is asked for, when more than a resource and a ttl is to be said about it.

use super::LockClient;
use crate::clock;
use crate::engine::Patience;
use crate::error::{LockError, ResourceError};
use crate::guard::LockGuard;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a lock lives for unless the request says otherwise. The Redlock description uses ten
/// seconds in its example: several hundred times a round over healthy nodes, and not longer than
/// others can be expected to wait for a holder that died.
const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// A lock that is to be asked for: made by [`LockClient::request`], and carried out by
/// [`acquire`](Self::acquire).
///
/// ```no_run
/// # use redlatch::{LockClient, LockError};
/// # use std::time::Duration;
/// # fn charge_the_card() {}
/// # fn example(client: &LockClient) -> Result<(), LockError> {
/// let request = client.request("orders:42").ttl(Duration::from_secs(5));
/// if let Some(lock) = request.wait_for(Duration::from_secs(1)).acquire()? {
///     charge_the_card();
///     drop(lock);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a request does nothing before `acquire`"]
pub struct LockRequest<'a> {
    client: &'a LockClient,
    key: Result<Arc<[u8]>, ResourceError>,
    terms: Terms,
}

/// What is asked for, apart from the resource.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) ttl: Duration,
    pub(super) wait: Wait,
    /// If it is to be another than the client's.
    pub(super) min_validity: Option<Duration>,
}

/// How long to wait for the lock, from when it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    Not,
    For(Duration),
    Until(Instant),
    Forever,
}

impl Wait {
    /// As of now.
    pub(super) fn patience(self) -> Patience {
        match self {
            Self::Not => Patience::Once,
            Self::For(wait) => Patience::Until(clock::now().after(wait)),
            Self::Until(deadline) => Patience::Until(clock::at(deadline)),
            Self::Forever => Patience::Forever,
        }
    }
}

impl<'a> LockRequest<'a> {
    pub(super) fn new(client: &'a LockClient, key: Result<Arc<[u8]>, ResourceError>) -> Self {
        let terms = Terms { ttl: DEFAULT_TTL, wait: Wait::Forever, min_validity: None };
        Self { client, key, terms }
    }

    /// For how long the lock is to live unless it is extended: whole milliseconds, what is below is
    /// cut off; by default 10 s, as in the example of the Redlock description. It must leave some
    /// validity after [drift](crate::Builder::drift_factor) and 2 ms, and is at most
    /// [`max_ttl`](crate::Builder::max_ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.terms.ttl = ttl;
        self
    }

    /// Makes one attempt, and does not wait if others hold the lock.
    pub fn one_attempt(mut self) -> Self {
        self.terms.wait = Wait::Not;
        self
    }

    /// Waits for up to `wait`, counted from when the lock is asked for. Zero makes one attempt, and
    /// what is too long to be counted means for ever.
    pub fn wait_for(mut self, wait: Duration) -> Self {
        self.terms.wait = Wait::For(wait);
        self
    }

    /// Waits until `deadline`. One that has passed makes one attempt.
    pub fn wait_until(mut self, deadline: Instant) -> Self {
        self.terms.wait = Wait::Until(deadline);
        self
    }

    /// Waits as long as it takes. So does a request that does not say how long, as does
    /// [`LockClient::lock`].
    pub fn wait_forever(mut self) -> Self {
        self.terms.wait = Wait::Forever;
        self
    }

    /// The least validity with which the lock is to be handed out, instead of the client's
    /// [`min_validity`](crate::Builder::min_validity). One that the ttl cannot leave makes the ttl
    /// too short.
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.terms.min_validity = Some(least);
        self
    }

    /// Asks for the lock. `None` if others hold it, and waiting was not asked for or has not
    /// helped.
    ///
    /// # Errors
    ///
    /// As [`LockClient::try_lock_for`], or as [`LockClient::lock`] if it waits for ever.
    pub fn acquire(self) -> Result<Option<LockGuard>, LockError> {
        let key = self.key.map_err(LockError::Resource)?;
        self.client.acquire(&key, &self.terms)
    }
}

impl fmt::Debug for LockRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref().map_or(&[][..], |key| key);
        f.debug_struct("LockRequest")
            .field("key", &format_args!("\"{}\"", key.escape_ascii()))
            .field("terms", &self.terms)
            .finish()
    }
}
