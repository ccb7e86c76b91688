//! Settings about the threads that share a client.

use super::Builder;
use crate::wait_queue::HandoffLimit;
use std::time::Duration;

impl Builder {
    /// How often in a row, and for how long, a release may hand a lock to the next waiter of this
    /// client, without the lock being free in between: by default 1000 times and 1 s.
    ///
    /// Threads of one client that want the same lock wait in a FIFO queue, and a release hands it
    /// to the next waiter in one round over the nodes. That is fast, and keeps other processes out:
    /// when either limit is reached, the lock is released, and the next waiter pauses for up to 20
    /// ms before it asks the nodes, so that other processes can acquire the lock first. The time
    /// counts from when the nodes granted the lock. With a count of zero there is no handoff, and
    /// every waiter pauses. While another client waits in the nodes' [queue](Self::queue), the
    /// time is limited to 10 ms. On ZooKeeper it is always limited so, since others may wait, and a
    /// lock with a fencing token is not handed on: each grant needs a larger one.
    pub fn handoff_limit(mut self, count: u32, time: Duration) -> Self {
        self.handoff_limit = HandoffLimit { count, time };
        self
    }

    /// Whether the connections have a thread of their own. By default they do not: the
    /// Leader/Followers pattern is used, and a caller that needs an answer reads and writes for all
    /// threads that wait meanwhile, which saves two thread switches per operation.
    ///
    /// The price is that callers depend on each other. If the leader is stopped in the middle of
    /// its work, by a slow signal handler or by a scheduler that prefers other threads, all callers
    /// wait for it, beyond their deadlines, and locks that are kept alive are not extended. With
    /// this setting, one thread does nothing but drive the connections, and a caller that is
    /// stopped delays no other. That thread can be stopped as well, above all by a signal handler
    /// of the process that runs in it; a caller then gives up 20 ms after its own deadline, with
    /// [`Phase::Queued`](crate::error::Phase::Queued) in the report of each node. Requests that
    /// callers have left until then are sent when the thread goes on: one request and its removal
    /// for each attempt.
    ///
    /// It is for programs with signal handlers that do more than set a flag, and for threads of
    /// different priorities. The thread starts with the client, sleeps while there is nothing to
    /// do, ends with the last clone, and does not keep the process alive.
    ///
    /// On ZooKeeper it has no effect: there is always such a thread.
    pub fn io_thread(mut self, thread: bool) -> Self {
        self.io_thread = thread;
        self
    }
}
