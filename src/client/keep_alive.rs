//! Locks that are kept alive.

use super::LockClient;
use super::request::RequestSettings;
use crate::core::{Backend, Redlock};
use crate::engine::{HeldLock, TTL_LIMIT, Ttl};
use crate::error::{Error, TtlError};
use crate::guard::LockGuard;
use crate::wait_queue::QueueHead;
use crate::watchdog::{MAX_HOLD, shortest_ttl};
use std::sync::Arc;
use std::time::Duration;

impl LockClient {
    /// Checks whether a lock with keys of so many bytes can be kept alive, if the request asks for
    /// that, and starts the watchdog. Before anything is sent.
    pub(super) fn prepare_keeping(
        &self,
        settings: &RequestSettings,
        ttl: Ttl,
        key_bytes: usize,
    ) -> Result<(), Error> {
        if !settings.keep_alive {
            return Ok(());
        }
        let whole = ttl.as_duration();
        let max_hold = self.core.max_hold(settings.max_hold).unwrap_or(MAX_HOLD);
        if whole > max_hold {
            return Err(Error::Ttl(TtlError::BeyondHold { ttl: settings.ttl, max_hold }));
        }
        match &self.core.backend {
            Backend::Redlock(Redlock { watchdog, .. }) => {
                let rules = &self.core.rules;
                let shortest = shortest_ttl(rules).map_or(Duration::MAX, Ttl::as_duration);
                if whole < shortest {
                    let error = TtlError::TooShortToKeep { ttl: settings.ttl, shortest };
                    return Err(Error::Ttl(error));
                }
                watchdog.load().admit(self.core.demand(ttl, key_bytes))?;
                watchdog.start().map_err(Error::Spawn)
            }
            // The session keeps it alive.
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(_) => Ok(()),
        }
    }

    /// Checks that the lock may be held for as long as the request wants it to be held at least.
    pub(super) fn check_hold_at_least(&self, settings: &RequestSettings) -> Result<(), TtlError> {
        // Longer than max_ttl as well: nobody works under a lock that was given up, and so a
        // restarted node need not wait until it has ended.
        let max_hold = self.core.max_hold(settings.max_hold).unwrap_or(MAX_HOLD);
        let longest = max_hold.min(TTL_LIMIT);
        let longest = self.core.backend.longest_linger().map_or(longest, |it| it.min(longest));
        let hold_at_least = settings.hold_at_least;
        if hold_at_least > longest {
            return Err(TtlError::HoldTooLong { hold_at_least, longest });
        }
        Ok(())
    }

    /// For how long a lock is held on an ensemble unless it is released or extended.
    #[cfg(feature = "zookeeper")]
    pub(super) fn hold(&self, settings: &RequestSettings, ttl: Ttl) -> Duration {
        if settings.keep_alive {
            self.core.max_hold(settings.max_hold).unwrap_or(MAX_HOLD)
        } else {
            ttl.as_duration()
        }
    }

    /// The guard of a lock that was granted, kept alive if the request asks for that.
    pub(super) fn guard(
        &self,
        held: HeldLock,
        head: Option<QueueHead>,
        settings: &RequestSettings,
    ) -> Result<LockGuard, Error> {
        let max_hold = self.core.max_hold(settings.max_hold);
        let mut guard = LockGuard::new(Arc::clone(&self.core), held, head, max_hold);
        guard.watch();
        if settings.keep_alive {
            guard = guard.keep_alive()?;
        }
        guard.set_hold_at_least(settings.hold_at_least);
        Ok(guard)
    }
}
