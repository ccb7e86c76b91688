//! Replaces `net/sync.rs` by locks, and a queue, that loom can see into.

pub(crate) use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

loom::thread_local! {
    static PANICKING: Cell<bool> = Cell::new(false);
}

/// Is this thread of the model panicking? Loom runs all threads of the model in one thread of the
/// system, so `std::thread::panicking` cannot distinguish them.
pub(crate) fn panicking() -> bool {
    PANICKING.with(Cell::get)
}

/// Panics as one thread of the model.
pub(crate) fn panic() -> ! {
    PANICKING.with(|panicking| panicking.set(true));
    panic!("{PLANNED}");
}

/// The message of the planned panic.
pub(crate) const PLANNED: &str = "as planned";

/// Ends the panic of this thread of the model, after it was caught.
pub(crate) fn recover() {
    PANICKING.with(|panicking| panicking.set(false));
}

/// Waits while `is_early` returns true. The model has no clock: a limit of zero is over at once,
/// and any other limit never.
pub(crate) fn wait_while<'a, T>(
    condvar: &Condvar,
    mut guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
    mut is_early: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    while is_early(&mut guard) && limit != Some(Duration::ZERO) {
        guard = condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    guard
}

/// An atomic flag made of a lock. Loom does not model that the value a swap writes directly follows
/// the value it read in the modification order, so it would try orders of two swaps and a store
/// that no machine has. (The lock hides missing fences: `leader_followers.rs` explains why they are
/// needed.)
pub(crate) struct AtomicBool(Mutex<bool>);

impl AtomicBool {
    pub(crate) fn new(value: bool) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn store(&self, value: bool, _: Ordering) {
        *self.0.lock().unwrap() = value;
    }

    pub(crate) fn load(&self, _: Ordering) -> bool {
        *self.0.lock().unwrap()
    }

    pub(crate) fn swap(&self, value: bool, _: Ordering) -> bool {
        std::mem::replace(&mut *self.0.lock().unwrap(), value)
    }
}

/// A lock whose `try_lock` never waits. Loom's own `try_lock` may wait: it blocks a thread that is
/// about to try while another succeeds. The standard lock inside is never contended; it makes this
/// code safe Rust.
pub(crate) struct LeaderLock<T> {
    is_locked: AtomicBool,
    value: std::sync::Mutex<T>,
}

pub(crate) struct LeaderLockGuard<'a, T> {
    is_locked: &'a AtomicBool,
    value: Option<std::sync::MutexGuard<'a, T>>,
}

impl<T> LeaderLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            is_locked: AtomicBool::new(false),
            value: std::sync::Mutex::new(value),
        }
    }

    pub(crate) fn try_lock(&self) -> Option<LeaderLockGuard<'_, T>> {
        if self.is_locked.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(LeaderLockGuard {
            is_locked: &self.is_locked,
            value: Some(self.value.lock().unwrap_or_else(PoisonError::into_inner)),
        })
    }
}

impl<T> Drop for LeaderLockGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.is_locked.store(false, Ordering::Release);
    }
}

impl<T> Deref for LeaderLockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().unwrap()
    }
}

impl<T> DerefMut for LeaderLockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().unwrap()
    }
}

pub(crate) struct Inbox<T>(Mutex<VecDeque<T>>);

impl<T> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    pub(crate) fn push(&self, item: T) {
        self.0.lock().unwrap().push_back(item);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().unwrap().pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}
