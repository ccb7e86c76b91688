//! What the operation of a thread wants next: the steps of an acquisition, for all operations.

use redlatch_protocol::engine::{QueueWait, Request};
use redlatch_protocol::time::Time;

#[derive(Debug)]
pub(crate) enum Step<T> {
    Send(Request),
    Pause(Time),
    Wait(QueueWait),
    /// It waits for a message of another thread.
    Receive,
    Done(T),
}

impl<T> Step<T> {
    pub(crate) fn map<U>(self, outcome: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Self::Send(request) => Step::Send(request),
            Self::Pause(until) => Step::Pause(until),
            Self::Wait(wait) => Step::Wait(wait),
            Self::Receive => Step::Receive,
            Self::Done(done) => Step::Done(outcome(done)),
        }
    }
}
