//! How many calls go on of which nobody wants the result any more.

use crate::clock;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct DroppedCalls {
    count: Mutex<usize>,
    /// There is none any more.
    all_ended: Condvar,
}

impl DroppedCalls {
    pub(super) fn add(&self) {
        *self.lock() += 1;
    }

    /// One has ended, with all that it had.
    pub(super) fn remove(&self) {
        let mut count = self.lock();
        *count -= 1;
        if *count == 0 {
            self.all_ended.notify_all();
        }
    }

    /// Waits until all have ended, for at most this long.
    pub(super) fn wait(&self, longest: Duration) {
        let end = clock::now().after(longest);
        let mut count = self.lock();
        while *count > 0 {
            let left = end.since(clock::now());
            if left.is_zero() {
                return;
            }
            let woken = self.all_ended.wait_timeout(count, left);
            count = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
