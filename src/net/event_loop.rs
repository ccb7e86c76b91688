//! What the leader runs: a trait, so that a test can run a model instead of sockets.

use super::follower::Follower;
use std::sync::Arc;

/// An event loop that sends requests and delivers their outcomes.
pub(super) trait EventLoop {
    /// What a caller waits for.
    type Order;
    /// What is done without an outcome.
    type Message;
    type Outcome;

    /// The thread has just become the leader. The former one may have left output to it: bytes that
    /// have arrived since then are read before that is written.
    fn take_over(&mut self);

    /// Processes what happened while there was no leader, such as connections that were closed.
    fn catch_up(&mut self);

    /// Begins what this order asks for. Its outcome is delivered to `follower`.
    fn open(&mut self, order: Self::Order, follower: Arc<Follower<Self::Outcome>>);

    /// Processes a message, which has no outcome.
    fn post(&mut self, message: Self::Message);

    /// Writes all pending output and delivers the outcomes that this has decided. Returns whether
    /// there were any.
    fn flush(&mut self) -> bool;

    /// One turn of the loop: waits for an event, processes it and delivers outcomes. It does not
    /// wait if `may_sleep`, which is called immediately before, returns `false`.
    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool);

    /// The event loop has panicked: only its drop follows, and that must not do any I/O.
    fn set_poisoned(&mut self);

    /// A follower whose order is not fulfilled yet.
    fn next_follower(&self) -> Option<&Arc<Follower<Self::Outcome>>>;
}

/// Wakes a leader that sleeps in [`EventLoop::run_once`].
pub(super) trait Wake {
    fn wake(&self);
}
