//! What a hold synchronises with. A model checker puts its own in this file's place: see
//! tests/keep_model.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

/// Waits to be notified, or for so long. One wake-up too many does no harm.
pub(super) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0
}
