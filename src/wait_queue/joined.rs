//! How joining a wait queue ends.

use super::QueueHead;
use crate::engine::HeldLock;

/// How joining a queue ended.
pub(crate) enum Joined {
    /// The caller is the head, perhaps with a lock to take over.
    Head(QueueHead, Option<HeldLock>),
    /// The caller is not in the queue, and asks the nodes itself: it does not wait at all, or its
    /// deadline leaves just enough time for a round.
    NotQueued,
    /// The deadline has passed, and another thread holds the lock.
    TimedOut,
    /// The caller is not in the queue: this thread would wait for itself.
    HeldByThisThread,
    /// The wait is cancelled.
    Cancelled,
}
