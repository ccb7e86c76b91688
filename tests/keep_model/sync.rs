//! In the place of `watchdog/sync.rs`: locks that loom can see into.

pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;

use std::time::Duration;

/// Waits to be notified. To the model no time passes, so a thread that nobody wakes is a deadlock.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _limit: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
