//! The mutex behind a guarded lock. tests/keep_model puts a model checker's in place of this file.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

/// Waits for a notification, for up to `limit`. Spurious wake-ups are harmless.
pub(super) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    condvar
        .wait_timeout(guard, limit)
        .unwrap_or_else(PoisonError::into_inner)
        .0
}
