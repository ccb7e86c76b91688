//! What can be done with a request: acquire the lock, or run something under it. All of it is one
//! implementation, which differs in how long it waits.

use super::LockRequest;
use super::options::OWNER_MAX;
use crate::clock;
use crate::engine::{LockAttributes, Share, Wait};
use crate::error::{LockError, ResourceError, WithLockError};
use crate::guard::LockGuard;
use crate::node::command::PERMITS_MAX;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl LockRequest<'_> {
    /// Acquires the lock, and waits for it as long as it takes, as
    /// [`LockClient::lock`](crate::LockClient::lock) does.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # use std::time::Duration;
    /// # fn example(client: &LockClient) -> Result<(), LockError> {
    /// let lock = client.request("orders:42").ttl(Duration::from_secs(5)).fenced().lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LockClient::lock`](crate::LockClient::lock), what [`keep_alive`](Self::keep_alive)
    /// refuses, or a label of the [owner](Self::owner) that is too long.
    pub fn lock(self) -> Result<LockGuard, LockError> {
        let guard = self.acquire(Wait::Forever)?;
        Ok(guard.expect("a call that waits as long as it takes does not end without the lock"))
    }

    /// Acquires the lock if it is free, without waiting, as
    /// [`LockClient::try_lock`](crate::LockClient::try_lock) does. `None` if another client or
    /// thread holds it.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # fn example(client: &LockClient) -> Result<(), LockError> {
    /// let lock = client.request_all(["account:1", "account:2"]).try_lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LockClient::try_lock`](crate::LockClient::try_lock), and as [`lock`](Self::lock).
    pub fn try_lock(self) -> Result<Option<LockGuard>, LockError> {
        self.acquire(Wait::No)
    }

    /// Acquires the lock, and waits for it for up to `wait`, as
    /// [`LockClient::try_lock_for`](crate::LockClient::try_lock_for) does. `None` if another client
    /// or thread still holds it then.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # use std::time::Duration;
    /// # fn charge_the_card() {}
    /// # fn example(client: &LockClient) -> Result<(), LockError> {
    /// let request = client.request("orders:42").owner("billing");
    /// if let Some(lock) = request.try_lock_for(Duration::from_secs(1))? {
    ///     charge_the_card();
    ///     drop(lock);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LockClient::try_lock_for`](crate::LockClient::try_lock_for), and as
    /// [`lock`](Self::lock).
    pub fn try_lock_for(self, wait: Duration) -> Result<Option<LockGuard>, LockError> {
        self.acquire(Wait::Until(clock::now().after(wait)))
    }

    /// Acquires the lock, and waits for it until `deadline`. `None` if another client or thread
    /// still holds it then. A `deadline` that has passed makes it a [`try_lock`](Self::try_lock).
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # use std::time::{Duration, Instant};
    /// # fn example(client: &LockClient) -> Result<(), LockError> {
    /// let deadline = Instant::now() + Duration::from_secs(2); // of the request that is served
    /// let report = client.request("report").try_lock_until(deadline)?;
    /// let archive = client.request("archive").shared().try_lock_until(deadline)?;
    /// # drop((report, archive));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_lock_for`](Self::try_lock_for).
    pub fn try_lock_until(self, deadline: Instant) -> Result<Option<LockGuard>, LockError> {
        self.acquire(Wait::Until(clock::at(deadline)))
    }

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
    /// lost meanwhile, the error is [`WithLockError::LostDuring`], which has the value of `body`.
    /// If `body` panics, the lock is released and the panic continues.
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # fn next_order() -> std::io::Result<u32> { Ok(1) }
    /// # fn charge(order: u32) -> std::io::Result<()> { Ok(()) }
    /// # fn example(client: &LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// client.request("orders").with_lock(|lock| {
    ///     let order = next_order()?; // std::io::Error
    ///     lock.ensure_held()?; // LockLost
    ///     charge(order)?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The lock is not re-entrant: a `body` that waits for the same lock, or the same set of locks,
    /// with the same client waits for its own end. In the thread that runs it, that is
    /// [`LockError::HeldByThisThread`]; in a thread that `body` waits for, it is not detected. A
    /// `try_lock` in `body` returns `None`.
    ///
    /// # Errors
    ///
    /// The error of `body`, also if the lock was lost. Or, converted, a [`WithLockError`]:
    ///
    /// * `LostDuring`: `body` succeeded, and the lock was lost before it ended. A release that too
    ///   few nodes answer is no loss.
    /// * `NotAcquired`: as [`lock`](Self::lock), or [`LockError::TooSlow`] if the process was
    ///   stopped after it had acquired the lock and before it called `body`, until the lock's
    ///   validity had passed. Then `body` was not called.
    pub fn with_lock<T, E: From<WithLockError<T>>>(
        self,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<T, E> {
        let value = self.run(Wait::Forever, body)?;
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
    pub fn try_with_lock<T, E: From<WithLockError<T>>>(
        self,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run(Wait::No, body)
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
    /// let ran = request.try_with_lock_for(wait, |lock| Ok::<_, Error>(lock.ensure_held()?))?;
    /// # let _ = ran;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`with_lock`](Self::with_lock) and [`try_lock_for`](Self::try_lock_for).
    pub fn try_with_lock_for<T, E: From<WithLockError<T>>>(
        self,
        wait: Duration,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run(Wait::Until(clock::now().after(wait)), body)
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
    /// let body = |lock: &redlatch::LockGuard| Ok::<_, Error>(lock.ensure_held()?);
    /// let ran = request.try_with_lock_until(deadline, body)?;
    /// # let _ = ran;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`with_lock`](Self::with_lock) and [`try_lock_until`](Self::try_lock_until).
    pub fn try_with_lock_until<T, E: From<WithLockError<T>>>(
        self,
        deadline: Instant,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run(Wait::Until(clock::at(deadline)), body)
    }

    /// All ways to acquire the lock.
    fn acquire(self, wait: Wait) -> Result<Option<LockGuard>, LockError> {
        let keys = self.keys.map_err(LockError::Resource)?;
        let (length, most) = (self.settings.owner.len(), OWNER_MAX);
        if length > most {
            return Err(LockError::Resource(ResourceError::OwnerTooLong { length, most }));
        }
        let share = self.settings.share;
        match share {
            Some(_) if !keys.more.is_empty() => {
                return Err(LockError::Resource(ResourceError::SharedSet));
            }
            Some(Share::Permit { of: count, .. }) if !(1..=PERMITS_MAX).contains(&count) => {
                let most = PERMITS_MAX;
                return Err(LockError::Resource(ResourceError::Permits { count, most }));
            }
            _ => {}
        }
        let fence = self.settings.is_fenced.then_some(self.client.core.fencing_expiry);
        let attributes = LockAttributes {
            more_keys: keys.more,
            owner: self.settings.owner.clone(),
            fence,
            share,
        };
        let attributes = (attributes != LockAttributes::default()).then(|| Arc::new(attributes));
        self.client.acquire(&keys.first, attributes.as_ref(), &self.settings, wait)
    }

    /// All ways to run something under the lock.
    fn run<T, E: From<WithLockError<T>>>(
        self,
        wait: Wait,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let ttl = self.settings.ttl;
        let guard = self.keep_alive().acquire(wait).map_err(WithLockError::NotAcquired)?;
        let Some(mut guard) = guard else { return Ok(None) };
        if guard.ensure_held().is_err() {
            guard.waive_hold_at_least(); // the job did not run
            let error = LockError::TooSlow { took: guard.age(clock::now()), ttl };
            return Err(WithLockError::NotAcquired(error).into());
        }
        guard.bind_to_this_thread();
        let result = body(&guard);
        let held = guard.release_after_work();
        let value = result?;
        match held {
            Ok(()) => Ok(Some(value)),
            Err(lost) => Err(WithLockError::LostDuring { lost, value }.into()),
        }
    }
}
