//! A thread that stands in line.

use crate::engine::Lease;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A thread in line.
#[derive(Default)]
pub(super) struct Waiter {
    called: Condvar,
    /// What it is called with. Guarded by the lock of all lines.
    call: Mutex<Option<Promotion>>,
}

/// What a thread is called to the head of its line with.
pub(super) struct Promotion {
    pub(super) number: u64,
    pub(super) lease: Option<Lease>,
    /// The lock has gone from thread to thread for long enough: others first.
    pub(super) is_after_limit: bool,
}

impl Waiter {
    pub(super) fn call(&self, call: Promotion) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
        self.alert();
    }

    pub(super) fn take_call(&self) -> Option<Promotion> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets it look at the line and the clock anew.
    pub(super) fn alert(&self) {
        self.called.notify_one();
    }

    pub(super) fn sleep<'a, T>(
        &self,
        lock: MutexGuard<'a, T>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, T> {
        match limit {
            None => self.called.wait(lock).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.called.wait_timeout(lock, limit).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}
