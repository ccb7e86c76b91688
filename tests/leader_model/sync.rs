//! In the place of `net/sync.rs`: locks that loom can see into.

pub(crate) use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

loom::thread_local! {
    static PANICKING: Cell<bool> = Cell::new(false);
}

/// Is this thread of the model panicking? The model's threads are one thread of the system, to
/// which all of them panic while one does.
pub(crate) fn panicking() -> bool {
    PANICKING.with(Cell::get)
}

/// Panics as one thread of the model.
pub(crate) fn panic() -> ! {
    PANICKING.with(|panicking| panicking.set(true));
    panic!("{PLANNED}");
}

/// What planned panics say.
pub(crate) const PLANNED: &str = "as planned";

/// This thread of the model has caught its panic.
pub(crate) fn recover() {
    PANICKING.with(|panicking| panicking.set(false));
}

/// Waits as long as `is_early`. The model has no clock: no time at all is over at once, and any
/// other time never.
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

/// Loom does not know that what a swap writes comes right behind what it read, so that two
/// swaps and a store between them can seem to have happened in an order that no machine has. A
/// lock keeps them in order. (That the flag and the inbox need the fences between them is
/// argued in turn.rs.)
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

/// Loom's own `try_lock` may wait (it blocks a thread that is about to try when another
/// succeeds), and here nobody must. The standard lock inside is never contended; it is what
/// makes this safe.
pub(crate) struct LeaderLock<T> {
    is_taken: AtomicBool,
    value: std::sync::Mutex<T>,
}

pub(crate) struct LeaderLockGuard<'a, T> {
    is_taken: &'a AtomicBool,
    value: Option<std::sync::MutexGuard<'a, T>>,
}

impl<T> LeaderLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { is_taken: AtomicBool::new(false), value: std::sync::Mutex::new(value) }
    }

    pub(crate) fn try_take(&self) -> Option<LeaderLockGuard<'_, T>> {
        if self.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(LeaderLockGuard {
            is_taken: &self.is_taken,
            value: Some(self.value.lock().unwrap_or_else(PoisonError::into_inner)),
        })
    }
}

impl<T> Drop for LeaderLockGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.is_taken.store(false, Ordering::Release);
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
