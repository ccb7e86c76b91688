//! Running something under a lock: all of it is one implementation, which differs in how long it
//! waits.

use super::LockRequest;
use crate::clock;
use crate::engine::Wait;
use crate::error::{Error, LockLost};
use crate::guard::LockGuard;
use std::time::{Duration, Instant};

impl LockRequest<'_> {
    /// Waits for the lock as long as it takes, runs `body` under it, and releases it. Meanwhile the
    /// lock is [kept alive](Self::keep_alive).
    ///
    /// The guard says whether the lock is [still held](LockGuard::ensure_held), for how long, and
    /// has its [fencing token](LockGuard::fencing_token) if the request is [fenced](Self::fenced).
    /// The lock ends by the clock all the same if the nodes cannot be reached for too long: call
    /// `ensure_held` in the line before the one that must not run twice.
    ///
    /// `Ok` means that the lock was held from beginning to end, as far as the nodes can tell: the
    /// [release](LockGuard::release) waits for their answers. If `body` succeeds but the lock was
    /// lost meanwhile, the error is [`Error::Lost`]; what must be undone then, `body` leaves in a
    /// variable outside of it. If `body` panics, the lock is released and the panic continues.
    ///
    /// The error type is the body's own: any that an [`Error`] converts into. If this call is the
    /// last expression of a function, its type is known from there; a `?` behind the call leaves it
    /// open, and the body ends in `Ok::<_, Box<dyn std::error::Error>>(value)` or the like.
    ///
    /// ```no_run
    /// # use redlatch::LockClient;
    /// # fn next_order() -> std::io::Result<u32> { Ok(1) }
    /// # fn charge(order: u32) -> std::io::Result<()> { Ok(()) }
    /// # fn example(client: &LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// client.request("orders").with_lock(|lock| {
    ///     let order = next_order()?; // std::io::Error
    ///     lock.ensure_held()?; // redlatch::Error
    ///     charge(order)?;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// The lock is not re-entrant: a `body` that waits for the same lock, or the same set of locks,
    /// with the same client waits for its own end. In the thread that runs it, that is
    /// [`Error::HeldByThisThread`]; in a thread that `body` waits for, it is not detected. A
    /// `try_lock` in `body` returns `None`.
    ///
    /// # Errors
    ///
    /// The error of `body`, also if the lock was lost. Or, converted:
    ///
    /// * [`Error::Lost`]: `body` succeeded, and the lock was lost before it ended. A release that
    ///   too few nodes answer is no loss.
    /// * As [`lock`](Self::lock), or [`Error::TooSlow`] if the process was stopped after it had
    ///   acquired the lock and before it called `body`, until the lock's validity had passed. Then
    ///   `body` was not called.
    pub fn with_lock<T, E: From<Error>>(
        self,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<T, E> {
        let value = self.run_body(Wait::Forever, body, lost)?;
        Ok(value.expect("a call that waits as long as it takes does not end without the lock"))
    }

    /// Runs `body` under the lock if it is free, without waiting. `None`, and `body` was not
    /// called, if another client or thread holds it. Otherwise as [`with_lock`](Self::with_lock).
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # fn write_the_report() {}
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let ran = client.request("report").try_with_lock(|lock| {
    ///     lock.ensure_held()?;
    ///     write_the_report();
    ///     Ok::<_, Error>(())
    /// })?;
    /// if ran.is_none() {
    ///     eprintln!("another machine writes the report");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`with_lock`](Self::with_lock) and [`try_lock`](Self::try_lock).
    pub fn try_with_lock<T, E: From<Error>>(
        self,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run_body(Wait::No, body, lost)
    }

    /// Waits for the lock for up to `wait`, and runs `body` under it. `None`, and `body` was not
    /// called, if another client or thread still holds it then. Otherwise as
    /// [`with_lock`](Self::with_lock).
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # use std::time::Duration;
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let (request, wait) = (client.request("report"), Duration::from_secs(1));
    /// let ran = request.try_with_lock_for(wait, |lock| lock.ensure_held())?;
    /// # let _ = ran;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`with_lock`](Self::with_lock) and [`try_lock_for`](Self::try_lock_for).
    pub fn try_with_lock_for<T, E: From<Error>>(
        self,
        wait: Duration,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run_body(Wait::Until(clock::now().after(wait)), body, lost)
    }

    /// Waits for the lock until `deadline`, and runs `body` under it. `None`, and `body` was not
    /// called, if another client or thread still holds it then. Otherwise as
    /// [`with_lock`](Self::with_lock).
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # use std::time::Instant;
    /// # fn example(client: &LockClient, deadline: Instant) -> Result<(), Error> {
    /// let request = client.request("report");
    /// let body = |lock: &redlatch::LockGuard| lock.ensure_held();
    /// let ran = request.try_with_lock_until(deadline, body)?;
    /// # let _ = ran;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`with_lock`](Self::with_lock) and [`try_lock_until`](Self::try_lock_until).
    pub fn try_with_lock_until<T, E: From<Error>>(
        self,
        deadline: Instant,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run_body(Wait::Until(clock::at(deadline)), body, lost)
    }

    /// All ways to run a user's body under the lock. If the lock was lost meanwhile, `lost` says
    /// what the body's value is worth.
    pub(super) fn run_body<T, E: From<Error>>(
        self,
        wait: Wait,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
        lost: impl FnOnce(LockLost, T) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let ttl = self.settings.ttl;
        let Some(mut guard) = self.keep_alive().acquire(wait)? else { return Ok(None) };
        if guard.check().is_err() {
            guard.waive_hold_at_least(); // the job did not run
            return Err(Error::TooSlow { took: guard.age(clock::now()), ttl }.into());
        }
        guard.bind_to_this_thread();
        let result = body(&guard);
        let held = guard.release_after_work();
        let value = result?;
        match held {
            Ok(()) => Ok(Some(value)),
            Err(error) => lost(error, value).map(Some),
        }
    }
}

/// The body has worked, and another client may have worked at the same time.
fn lost<T, E: From<Error>>(lost: LockLost, _: T) -> Result<T, E> {
    Err(Error::from(lost).into())
}
