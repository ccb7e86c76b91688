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
    pub(super) keep_alive: bool,
    pub(super) max_hold: Option<Duration>,
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
        let terms = Terms {
            ttl: DEFAULT_TTL,
            wait: Wait::Forever,
            min_validity: None,
            keep_alive: false,
            max_hold: None,
        };
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

    /// Keeps the lock alive as long as its guard lives: it is extended by its ttl again and again,
    /// when about a third of that has passed.
    ///
    /// That is done by one thread for all locks of the client, started with the first that is kept
    /// alive; renewals that are due at about the same time are written together. A renewal that too
    /// few nodes confirm is tried again, after random pauses that grow, as long as the lock is
    /// valid. What it does not do: bring back a lock whose validity has passed, be it that the
    /// nodes were silent, or that this process stood still; renew one that is released, dropped or
    /// passed on; or keep one for longer than [`max_hold`](Self::max_hold), which also ends a lock
    /// whose guard was leaked. So the holder still asks [`ensure_held`](LockGuard::ensure_held)
    /// before what must not run twice, or is told with [`on_lost`](LockGuard::on_lost).
    ///
    /// With this, [`acquire`](Self::acquire) refuses a ttl whose validity has no room for three
    /// rounds of [`node_timeout`](crate::Builder::node_timeout) (about 154 ms by default), or which
    /// is longer than `max_hold`; and it fails if the system has no thread to give.
    pub fn keep_alive(mut self) -> Self {
        self.terms.keep_alive = true;
        self
    }

    /// For how long the lock may be held in all, counted from when it was asked for: renewals and
    /// extensions end no later, and with them the lock, less what drift takes and up to a sixth of
    /// the ttl. By default what [`Builder::max_hold`](crate::Builder::max_hold) says, which also
    /// bounds what is said here; and if neither says anything, a lock that is kept alive is held
    /// for 24 hours at most, so that one whose guard was leaked, or whose holder hangs, is free
    /// again one day.
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.terms.max_hold = Some(longest);
        self
    }

    /// Asks for the lock. `None` if others hold it, and waiting was not asked for or has not
    /// helped.
    ///
    /// # Errors
    ///
    /// As [`LockClient::try_lock_for`], or as [`LockClient::lock`] if it waits for ever. What
    /// [`keep_alive`](Self::keep_alive) refuses.
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
