//! What whoever has the turn drives, and what wakes it.

use super::follower::Follower;
use std::sync::Arc;

/// What has the sockets.
pub(super) trait Drive {
    /// What is asked of the nodes.
    type Request;
    /// What that came to.
    type Outcome;

    /// Takes in what happened while nobody drove, such as connections that were closed.
    fn look(&mut self);

    /// Begins a round for the one on this seat.
    fn open(&mut self, request: Self::Request, seat: Arc<Follower<Self::Outcome>>);

    /// Sends something that nobody waits for.
    fn post(&mut self, request: Self::Request);

    /// Writes what there is to write, hands out what that has decided, and says whether it has
    /// decided anything.
    fn flush(&mut self) -> bool;

    /// Waits until something happens, or not at all if `may_sleep` says so at the last moment; then
    /// sees to it, and hands outcomes to their seats.
    fn step(&mut self, may_sleep: impl FnOnce() -> bool);

    /// It has panicked, and will only be dropped now: it must not do anything on that occasion.
    fn abandon(&mut self);

    /// One of those whose rounds are still open.
    fn waiter(&self) -> Option<&Arc<Follower<Self::Outcome>>>;
}

/// Wakes a driver that sleeps in [`Drive::step`].
pub(super) trait Wake {
    fn wake(&self);
}
