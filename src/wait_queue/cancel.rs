//! Cancelling all waits in the queues.

use super::WaitQueues;
use std::sync::atomic::Ordering;

impl WaitQueues {
    /// Ends all waits, now and from now on.
    pub(crate) fn cancel(&self) {
        // Before the mutex is taken: a waiter checks it under that, so it sees this or is woken.
        self.is_cancelled.store(true, Ordering::SeqCst);
        for queue in self.lock().values() {
            queue.waiters.iter().for_each(|waiter| waiter.wake());
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }
}
