//! Where a thread waits for what its request comes to.

use super::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::fmt;

/// A place for one thread at a time, used for one request after another.
pub(super) struct Seat<O> {
    state: Mutex<SeatState<O>>,
    changed: Condvar,
}

struct SeatState<O> {
    outcome: Option<O>,
    is_called: bool,
    /// Does somebody wait here? If not, waking would be a system call for nothing.
    is_taken: bool,
}

impl<O> Seat<O> {
    pub(super) fn new() -> Self {
        let state = SeatState { outcome: None, is_called: false, is_taken: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Hands over the outcome.
    pub(super) fn hand(&self, outcome: O) {
        self.wake(|state| state.outcome = Some(outcome));
    }

    /// Calls the one who waits here to drive. One call too many does no harm.
    pub(super) fn call(&self) {
        self.wake(|state| state.is_called = true);
    }

    fn wake(&self, change: impl FnOnce(&mut SeatState<O>)) {
        let mut state = self.lock();
        change(&mut state);
        let is_taken = state.is_taken;
        drop(state);
        if is_taken {
            self.changed.notify_one();
        }
    }

    /// The outcome, if it is there.
    pub(super) fn take(&self) -> Option<O> {
        self.lock().outcome.take()
    }

    /// Waits for the outcome, or (`None`) to be called.
    pub(super) fn wait(&self) -> Option<O> {
        let mut state = self.lock();
        state.is_taken = true;
        while state.outcome.is_none() && !state.is_called {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_taken = false;
        state.is_called = false;
        state.outcome.take()
    }

    fn lock(&self) -> MutexGuard<'_, SeatState<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O> fmt::Debug for Seat<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seat")
    }
}
