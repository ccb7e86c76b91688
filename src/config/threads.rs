//! Settings about the threads that share a client.

use super::Builder;
use crate::wait_queue::HandoffLimit;
use std::time::Duration;

impl Builder {
    /// How often in a row, and for how long, a lock may go from one thread of this client that
    /// releases it to the next that waits for it, without being free in between: by default 1000
    /// times and 1 s.
    ///
    /// Threads of one client that want the same lock stand in line, first come, first served, and
    /// it is handed on in one round over the nodes. That is fast, and keeps other processes out:
    /// when either bound is reached, the lock is released, and the next in line pauses for up to 20
    /// ms before it asks the nodes, so that others may have it first. The time counts from when the
    /// lock was taken. With a count of zero it is never handed on, and every thread in line pauses.
    pub fn handoff_limit(mut self, count: u32, time: Duration) -> Self {
        self.handoff_limit = HandoffLimit { count, time };
        self
    }

    /// Should the connections have a thread of their own? By default they do not: the caller that
    /// needs an answer reads and writes for all that wait meanwhile, which saves two changes of
    /// thread with each operation.
    ///
    /// The price of that is that callers depend on each other. If the one that does the work is
    /// stopped in the middle of it, by a signal handler that takes its time or by a scheduler that
    /// prefers others, all wait for it, beyond their deadlines, and locks that are kept alive are
    /// not renewed. With this, one thread does nothing else, and a caller that is stopped holds up
    /// nobody. That thread can be stopped as well, above all by a handler of signals to the process
    /// that runs in it; a caller then gives up 20 ms after its own deadline, with
    /// [`Phase::Queued`](crate::error::Phase::Queued) in the report of each node. What callers have
    /// left for it until then is sent when it goes on: a request and its removal for each attempt.
    ///
    /// For programs with signal handlers that do more than set a flag, and for threads of
    /// different priorities. The thread starts with the client, sleeps while there is nothing to
    /// do, ends with the last clone, and does not keep the process alive.
    pub fn io_thread(mut self, thread: bool) -> Self {
        self.io_thread = thread;
        self
    }
}
