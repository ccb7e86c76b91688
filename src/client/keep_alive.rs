//! Locks that are kept alive.

use super::request::Terms;
use super::{LockClient, LockRequest};
use crate::clock;
use crate::engine::{Lease, Ttl};
use crate::error::{LockError, TtlError};
use crate::guard::LockGuard;
use crate::wait_queue::QueueHead;
use crate::watchdog::{MAX_HOLD, shortest_ttl};
use std::sync::Arc;
use std::time::Duration;

impl LockClient {
    /// Runs `body` with the lock of `resource` held, which is waited for as long as it takes and
    /// kept alive with `ttl` until `body` has ended: short for a
    /// [request](Self::request) that is [run](LockRequest::run).
    ///
    /// What `body` returns is handed out whatever becomes of the lock meanwhile, an error of its
    /// own included, and if it panics the lock is given back and the panic goes on. A lease ends by
    /// the clock all the same, when the nodes cannot be reached for too long: call
    /// [`ensure_held`](LockGuard::ensure_held) on what `body` is given in the line before the one
    /// that must not run twice.
    ///
    /// The lock is not re-entrant: a `body` that waits for the same lock is told
    /// [`LockError::HeldByThisThread`], and `try_lock` in it says `None`.
    ///
    /// ```no_run
    /// # use redlatch::LockClient;
    /// # use std::time::Duration;
    /// # fn orders() -> Vec<u32> { Vec::new() }
    /// # fn send(order: u32) {}
    /// # fn example(client: &LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// client.with_lock("outbox", Duration::from_secs(10), |held| {
    ///     for order in orders() {
    ///         held.ensure_held()?;
    ///         send(order);
    ///     }
    ///     Ok::<(), redlatch::LockLost>(())
    /// })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), as a request that is [kept alive](LockRequest::keep_alive),
    /// or [`LockError::TooSlow`] if the process stood still between taking the lock and `body`
    /// until the lock was over. `body` was not called then.
    pub fn with_lock<T>(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
        body: impl FnOnce(&LockGuard) -> T,
    ) -> Result<T, LockError> {
        let value = self.request(resource).ttl(ttl).wait_forever().run(body)?;
        Ok(value.expect("a request that waits for ever does not end with others' lock"))
    }

    /// Checks what is asked for about keeping the lock of these keys alive, and starts the
    /// watchdog, before anything is sent.
    pub(super) fn prepare_keeping(
        &self,
        terms: &Terms,
        ttl: Ttl,
        key_bytes: usize,
    ) -> Result<(), LockError> {
        if !terms.keep_alive {
            return Ok(());
        }
        let whole = ttl.as_duration();
        let shortest = shortest_ttl(&self.core.rules).map_or(Duration::MAX, Ttl::as_duration);
        if whole < shortest {
            let error = TtlError::TooShortToKeep { ttl: terms.ttl, shortest };
            return Err(LockError::Ttl(error));
        }
        let max_hold = self.core.max_hold(terms.max_hold).unwrap_or(MAX_HOLD);
        if whole > max_hold {
            return Err(LockError::Ttl(TtlError::BeyondHold { ttl: terms.ttl, max_hold }));
        }
        self.core.watchdog.load().admit(self.core.demand(ttl, key_bytes))?;
        self.core.watchdog.start().map_err(LockError::Spawn)
    }

    /// The guard of a lock that was granted, kept alive if that was asked for.
    pub(super) fn guard(
        &self,
        lease: Lease,
        head: Option<QueueHead>,
        terms: &Terms,
    ) -> Result<LockGuard, LockError> {
        let max_hold = self.core.max_hold(terms.max_hold);
        let guard = LockGuard::new(Arc::clone(&self.core), lease, head, max_hold);
        if terms.keep_alive { guard.keep_alive() } else { Ok(guard) }
    }
}

impl LockRequest<'_> {
    /// Runs `body` under the lock, which is [kept alive](Self::keep_alive) until `body` has ended,
    /// and given up then. `None`, and `body` was not called, if others hold the lock, and waiting
    /// was not asked for or has not helped.
    ///
    /// What `body` is given says whether the lock is [still held](LockGuard::ensure_held), for how
    /// long, and by which [number](LockGuard::fencing_token) if it is [fenced](Self::fenced). What
    /// it returns is handed out whatever becomes of the lock meanwhile, an error of its own
    /// included, and if it panics the lock is given back and the panic goes on.
    ///
    /// A `body` that waits for the same lock, or the same set of them, with the same client waits
    /// for its own end. In the thread that runs it, that is
    /// [`LockError::HeldByThisThread`]; in a thread that `body` waits for, it is not noticed.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), or [`LockError::TooSlow`] if the process stood still between
    /// taking the lock and `body` until the lock was over. `body` was not called then.
    pub fn run<T>(self, body: impl FnOnce(&LockGuard) -> T) -> Result<Option<T>, LockError> {
        let ttl = self.terms.ttl;
        let Some(guard) = self.keep_alive().acquire()? else { return Ok(None) };
        if guard.ensure_held().is_err() {
            return Err(LockError::TooSlow { took: guard.age(clock::now()), ttl });
        }
        guard.bind_to_this_thread();
        let value = body(&guard);
        drop(guard);
        Ok(Some(value))
    }
}
