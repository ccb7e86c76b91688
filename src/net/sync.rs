//! What `turn` and `seat` synchronise with. A model checker puts its own in this file's place: see
//! tests/leader_model.

pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(super) use std::thread::panicking;

use std::sync::TryLockError;
use std::time::Duration;

/// Waits as long as `is_early`, or for so long.
pub(super) fn wait_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
    is_early: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    match limit {
        None => condvar.wait_while(guard, is_early).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => {
            let waited = condvar.wait_timeout_while(guard, limit, is_early);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

/// What one thread may have at a time, and nobody waits for.
#[derive(Debug)]
pub(super) struct LeaderLock<T>(Mutex<T>);

/// The baton in somebody's hands.
pub(super) type LeaderLockGuard<'a, T> = MutexGuard<'a, T>;

impl<T> LeaderLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Takes it, if nobody has it. Whether one who had it panicked is for the caller to know.
    pub(super) fn try_take(&self) -> Option<LeaderLockGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(taken) => Some(taken),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
