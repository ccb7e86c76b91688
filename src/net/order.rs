//! What the threads of a client ask of the event loop.

use crate::engine::{QueueWait, Request, Token};

/// What a caller waits for.
pub(super) enum Order {
    /// The result of a round.
    Round(Request),
    /// The end of a wait in the nodes' queue.
    Wait(QueueWait),
}

/// What needs no result.
pub(super) enum Message {
    /// Send this request.
    Post(Request),
    /// End the waits of one waiter in the nodes' queue, or of all, now and from now on.
    EndWaits(Option<Token>),
    /// Forget this waiter, about which no request follows.
    #[cfg(feature = "registers")]
    Leave(Token),
}
