//! Acquiring the lock of a request: all ways are one implementation, which differs in how long it
//! waits.

use super::LockRequest;
use super::options::OWNER_MAX;
use crate::clock;
use crate::engine::{LockAttributes, PERMITS_MAX, Share, Wait};
use crate::error::{Error, ResourceError};
use crate::guard::LockGuard;
use std::time::{Duration, Instant};

impl LockRequest<'_> {
    /// Acquires the lock, and waits for it as long as it takes, as
    /// [`LockClient::lock`](crate::LockClient::lock) does.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # use std::time::Duration;
    /// # fn example(client: &LockClient) -> Result<(), Error> {
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
    pub fn lock(self) -> Result<LockGuard, Error> {
        let guard = self.acquire(Wait::Forever)?;
        Ok(guard.expect("a call that waits as long as it takes does not end without the lock"))
    }

    /// Acquires the lock if it is free, without waiting, as
    /// [`LockClient::try_lock`](crate::LockClient::try_lock) does. `None` if another client or
    /// thread holds it.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let lock = client.request_all(["account:1", "account:2"]).try_lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LockClient::try_lock`](crate::LockClient::try_lock), and as [`lock`](Self::lock).
    pub fn try_lock(self) -> Result<Option<LockGuard>, Error> {
        self.acquire(Wait::No)
    }

    /// Acquires the lock, and waits for it for up to `wait`, in
    /// [order](crate::LockClient) with other calls that wait. `None` if another client or thread
    /// still holds it then. A `wait` of zero is a [`try_lock`](Self::try_lock), and one that
    /// overflows the clock waits as long as it takes. The lock is [not
    /// re-entrant](crate::LockClient).
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # use std::time::Duration;
    /// # fn charge_the_card() {}
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let request = client.request("orders:42").ttl(Duration::from_secs(10));
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
    /// As [`try_lock`](Self::try_lock), if the last attempt failed so, or at once if waiting cannot
    /// help: see [`NodeError::is_permanent`](crate::NodeError::is_permanent).
    pub fn try_lock_for(self, wait: Duration) -> Result<Option<LockGuard>, Error> {
        self.acquire(Wait::Until(clock::now().after(wait)))
    }

    /// Acquires the lock, and waits for it until `deadline`. `None` if another client or thread
    /// still holds it then. A `deadline` that has passed makes it a [`try_lock`](Self::try_lock).
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # use std::time::{Duration, Instant};
    /// # fn example(client: &LockClient) -> Result<(), Error> {
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
    pub fn try_lock_until(self, deadline: Instant) -> Result<Option<LockGuard>, Error> {
        self.acquire(Wait::Until(clock::at(deadline)))
    }

    /// All ways to acquire the lock.
    pub(super) fn acquire(self, wait: Wait) -> Result<Option<LockGuard>, Error> {
        let keys = self.keys.map_err(Error::Resource)?;
        let (length, most) = (self.settings.owner.len(), OWNER_MAX);
        if length > most {
            return Err(Error::Resource(ResourceError::OwnerTooLong { length, most }));
        }
        let share = self.settings.share;
        match share {
            Some(_) if !keys.more.is_empty() => {
                return Err(Error::Resource(ResourceError::SharedSet));
            }
            Some(Share::Permit { of: count, .. }) if !(1..=PERMITS_MAX).contains(&count) => {
                let most = PERMITS_MAX;
                return Err(Error::Resource(ResourceError::Permits { count, most }));
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
        let attributes = attributes.unless_plain();
        self.client.acquire(&keys.first, attributes.as_ref(), &self.settings, wait)
    }
}
