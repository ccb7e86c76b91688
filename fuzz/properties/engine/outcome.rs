//! The expected end of an operation that acquires a lock.

use redlatch_protocol::engine::{NodeSet, Token};
use redlatch_protocol::time::Time;
use std::time::Duration;

/// The expected end.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Held {
        token: Token,
        since: Time,
        valid_until: Time,
        nodes: NodeSet,
        permit: Option<u32>,
    },
    Contended,
    Unanswered,
    TooLate(Duration),
    SameServer,
    NoEntropy,
}
