//! The synchronisation primitives of `leader_followers` and `follower`, the queue between them, and
//! the lock of the driver's queue of jobs. tests/leader_model replaces this file by primitives that
//! its model checker can see into.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::panicking;

use crossbeam_channel::{Receiver, Sender};
use std::sync::TryLockError;
use std::time::Duration;

/// Waits while `is_early` returns true, for at most `limit` if there is one.
pub(crate) fn wait_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
    is_early: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    match limit {
        None => condvar
            .wait_while(guard, is_early)
            .unwrap_or_else(PoisonError::into_inner),
        Some(limit) => {
            let waited = condvar.wait_timeout_while(guard, limit, is_early);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

/// A mutex that can only be tried: no thread ever waits for it. The leader holds it.
#[derive(Debug)]
pub(crate) struct LeaderLock<T>(Mutex<T>);

pub(crate) type LeaderLockGuard<'a, T> = MutexGuard<'a, T>;

impl<T> LeaderLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Locks it if it is free. A panic of an earlier holder is ignored: `LeaderFollowers` has a
    /// flag for that.
    pub(crate) fn try_lock(&self) -> Option<LeaderLockGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(locked) => Some(locked),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The queue of jobs for the leader, unbounded and with many producers. A producer waits for its
/// request or has just released a lock, so the queue is never longer than the number of threads and
/// lock guards.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    sender: Sender<T>,
    receiver: Receiver<T>,
}

impl<T> Inbox<T> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self { sender, receiver }
    }

    pub(crate) fn push(&self, item: T) {
        // It fails only without a receiver, and the receiver lives as long as this sender.
        let _ = self.sender.send(item);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.receiver.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}
