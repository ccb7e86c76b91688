//! The synchronisation primitives of `leader_followers` and `follower`.
//! tests/leader_model replaces this file by primitives that its model checker can see into.

pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(super) use std::thread::panicking;

use std::sync::TryLockError;
use std::time::Duration;

/// Waits while `is_early` returns true, for at most `limit` if there is one.
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

/// A mutex that can only be tried: no thread ever waits for it. The leader holds it.
#[derive(Debug)]
pub(super) struct LeaderLock<T>(Mutex<T>);

pub(super) type LeaderLockGuard<'a, T> = MutexGuard<'a, T>;

impl<T> LeaderLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Locks it if it is free. A panic of an earlier holder is ignored: `LeaderFollowers` has a
    /// flag for that.
    pub(super) fn try_lock(&self) -> Option<LeaderLockGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(locked) => Some(locked),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
