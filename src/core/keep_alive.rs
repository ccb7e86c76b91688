//! What extending locks automatically takes: limits, and the watchdog's capacity.

use super::Core;
use crate::engine::Ttl;
use crate::error::SpawnError;
use crate::watchdog::{Demand, GuardedLock, period};
use std::sync::Arc;
use std::time::Duration;

impl Core {
    /// For how long extensions may keep a lock: `asked`, or the client's setting if that is less.
    pub(crate) fn max_hold(&self, asked: Option<Duration>) -> Option<Duration> {
        [asked, self.rules.hold_max].into_iter().flatten().min()
    }

    /// How much of the watchdog's capacity a lock with this ttl and keys of so many bytes takes.
    pub(crate) fn demand(&self, ttl: Ttl, key_bytes: usize) -> Demand {
        Demand::new(ttl.as_duration(), period(&self.rules, ttl), key_bytes)
    }

    /// Starts the notifier's thread, if it does not run.
    pub(crate) fn start_notifier(&self) -> Result<(), SpawnError> {
        self.notifier.start()
    }

    /// Has the notifier check a lock now and when its validity ends, and call its callbacks once it
    /// is lost.
    pub(crate) fn watch_for_loss(&self, held: Arc<GuardedLock>) {
        self.notifier.watch_for_loss(held);
    }
}
