//! Reports about the head of a queue, for code that does not own its place.

use super::{HeadEntry, WaitQueue, WaitQueues};
use crate::clock::{self, Time};
use std::fmt;
use std::sync::Arc;
use std::thread;

/// Refers to one head of one queue. Once another head has replaced it, calls change nothing.
#[derive(Clone)]
pub(crate) struct HeadHandle {
    pub(super) queues: Arc<WaitQueues>,
    pub(super) key: Arc<[u8]>,
    pub(super) number: usize,
}

impl HeadHandle {
    /// The lock is held, and its key will have expired at `expiry`.
    pub(crate) fn set_key_expiry(&self, expiry: Time) {
        self.with_queue(|queue| {
            let Some(head) = self.entry(queue) else { return };
            if head.key_expiry.replace(expiry).is_none() && queue.handoffs == 0 {
                queue.granted_at = clock::now();
            }
            queue.wake_first();
        });
    }

    /// A majority of the nodes has answered that another client holds the lock, and that counts
    /// until then: waiters need not ask before they give up. `None` if it does not count any more.
    pub(crate) fn set_held_elsewhere(&self, until: Option<Time>) {
        self.with_queue(|queue| {
            if let Some(head) = self.entry(queue) {
                head.held_elsewhere_until = until;
            }
        });
    }

    /// Only this thread gives the lock up, and not before the work that it is about to do has
    /// ended: if that work waits for the lock, it waits for itself.
    pub(crate) fn bind_to_this_thread(&self) {
        self.with_queue(|queue| {
            if let Some(head) = self.entry(queue) {
                head.bound_to = Some(thread::current().id());
            }
        });
    }

    fn with_queue(&self, change: impl FnOnce(&mut WaitQueue)) {
        if let Some(queue) = self.queues.lock().get_mut(&self.key) {
            change(queue);
        }
    }

    fn entry<'a>(&self, queue: &'a mut WaitQueue) -> Option<&'a mut HeadEntry> {
        queue.head.as_mut().filter(|head| head.number == self.number)
    }
}

impl fmt::Debug for HeadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadHandle").field("number", &self.number).finish_non_exhaustive()
    }
}
