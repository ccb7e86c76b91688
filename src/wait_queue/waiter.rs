//! A thread that waits in a queue.

use crate::cancel_token::CancelToken;
use crate::engine::HeldLock;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A thread in a queue.
pub(super) struct Waiter {
    wake_up: Condvar,
    /// A token that cancels its wait, besides the client's.
    own: Option<CancelToken>,
    /// Read and written only under the mutex of all queues.
    promotion: Mutex<Option<Promotion>>,
}

/// What a waiter gets when it becomes the head of its queue.
pub(super) struct Promotion {
    pub(super) number: usize,
    /// The lock, if it is handed off.
    pub(super) held: Option<HeldLock>,
    /// The handoff limit is reached: other processes first.
    pub(super) is_after_limit: bool,
}

impl Waiter {
    pub(super) fn new(own: Option<&CancelToken>) -> Self {
        Self { wake_up: Condvar::new(), own: own.cloned(), promotion: Mutex::new(None) }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.own.as_ref().is_some_and(CancelToken::is_cancelled)
    }

    pub(super) fn promote(&self, promotion: Promotion) {
        *self.promotion.lock().unwrap_or_else(PoisonError::into_inner) = Some(promotion);
        self.wake();
    }

    pub(super) fn take_promotion(&self) -> Option<Promotion> {
        self.promotion.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Has it look at the queue and the clock again.
    pub(super) fn wake(&self) {
        self.wake_up.notify_one();
    }

    pub(super) fn sleep<'a, T>(
        &self,
        queues: MutexGuard<'a, T>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, T> {
        match limit {
            None => self.wake_up.wait(queues).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.wake_up.wait_timeout(queues, limit).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}
