//! Locks that are kept alive.

use super::LockClient;
use super::request::RequestSettings;
use crate::engine::{Lease, Ttl};
use crate::error::{LockError, TtlError};
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
    ) -> Result<(), LockError> {
        if !settings.keep_alive {
            return Ok(());
        }
        let whole = ttl.as_duration();
        let shortest = shortest_ttl(&self.core.rules).map_or(Duration::MAX, Ttl::as_duration);
        if whole < shortest {
            let error = TtlError::TooShortToKeep { ttl: settings.ttl, shortest };
            return Err(LockError::Ttl(error));
        }
        let max_hold = self.core.max_hold(settings.max_hold).unwrap_or(MAX_HOLD);
        if whole > max_hold {
            return Err(LockError::Ttl(TtlError::BeyondHold { ttl: settings.ttl, max_hold }));
        }
        self.core.watchdog.load().admit(self.core.demand(ttl, key_bytes))?;
        self.core.watchdog.start().map_err(LockError::Spawn)
    }

    /// The guard of a lock that was granted, kept alive if the request asks for that.
    pub(super) fn guard(
        &self,
        lease: Lease,
        head: Option<QueueHead>,
        settings: &RequestSettings,
    ) -> Result<LockGuard, LockError> {
        let max_hold = self.core.max_hold(settings.max_hold);
        let guard = LockGuard::new(Arc::clone(&self.core), lease, head, max_hold);
        if settings.keep_alive { guard.keep_alive() } else { Ok(guard) }
    }
}
