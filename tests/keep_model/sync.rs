//! In place of `watchdog/sync.rs`: locks that loom controls.

pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;

use std::time::Duration;

/// Waits for a notification. No time passes in the model, so a missing notification is a deadlock.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _limit: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
