//! The head of a wait queue: the only thread that asks the nodes, or that holds the lock.

use super::{HandoffLimit, HeadHandle};
use crate::clock::{self, Time};
use crate::engine::HeldLock;

/// The place at the head of a queue. Dropping it promotes the next waiter.
#[derive(Debug)]
pub(crate) struct QueueHead {
    pub(super) handle: HeadHandle,
    pub(super) is_after_limit: bool,
}

impl QueueHead {
    /// Was the handoff limit reached, so that other processes should get a chance first?
    pub(crate) fn is_after_limit(&self) -> bool {
        self.is_after_limit
    }

    /// The lock is held, and its key will have expired at `expiry`.
    pub(crate) fn set_key_expiry(&self, expiry: Time) {
        self.handle.set_key_expiry(expiry);
    }

    pub(crate) fn handle(&self) -> &HeadHandle {
        &self.handle
    }

    /// Hands the lock to the next waiter. Returns the lock, to be released on the nodes, if there
    /// is none, if the handoff limit is reached, or if this is not the head any more.
    #[expect(clippy::result_large_err, reason = "the lock is given back, and it is no error")]
    pub(crate) fn hand_off(&self, held: HeldLock) -> Result<(), HeldLock> {
        let HeadHandle { queues, key, number } = &self.handle;
        let (limit, mut queues) = (queues.limit, queues.lock());
        let Some(queue) = queues.get_mut(key).filter(|queue| queue.is_head(*number)) else {
            return Err(held);
        };
        let now = clock::now();
        // The nodes reserve the lock for that client when it is released.
        let is_over = queue.is_limit_reached(limit, now)
            || now >= held.valid_until
            || held.is_awaited && now.since(queue.granted_at) >= HandoffLimit::CONTENDED_TIME;
        if queue.waiters.is_empty() || is_over {
            return Err(held);
        }
        queue.handoffs += 1;
        queue.promote_next(Some(held), false);
        Ok(())
    }
}

impl Drop for QueueHead {
    fn drop(&mut self) {
        let HeadHandle { queues, key, number } = &self.handle;
        if queues.owner_process.is_known_forked() {
            return; // A thread that does not exist in this forked child may hold the mutex.
        }
        let (limit, mut queues) = (queues.limit, queues.lock());
        let Some(queue) = queues.get_mut(key) else { return };
        if queue.is_head(*number) {
            let is_after_limit = queue.was_granted() && queue.is_limit_reached(limit, clock::now());
            queue.promote_next(None, is_after_limit);
        }
        if queue.is_empty() {
            queues.remove(key);
        }
    }
}
