//! The options of a session, and its answers.

use crate::engine::{QueueView, Said, Vote};
use crate::node::Ticket;
use crate::node::handshake::Credentials;
use crate::node::node_error::NodeError;
use std::sync::Arc;
use std::time::Duration;

/// How a session behaves.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The name of the node in reports: its URL.
    pub name: Arc<str>,
    /// The credentials for every connection.
    pub credentials: Credentials,
    /// How long a node may be silent before a contended attempt stops waiting for it: as long as
    /// a round lasts.
    pub node_timeout: Duration,
    /// How long one attempt to connect may take, from its first phase to the end of the greeting.
    pub connect_timeout: Duration,
    /// How long a node may be silent with commands unanswered before its connection is given up.
    pub silence_max: Duration,
    /// The upper bounds of the pause between two connections: of the first pause, and of any.
    pub reconnect: (Duration, Duration),
    /// How long a node must have been running before its grants count.
    pub quarantine: Option<Duration>,
    /// The seed for the jitter of those pauses, and for the first command number.
    pub seed: u64,
}

impl SessionOptions {
    /// The options that `config` documents as defaults, except that grants count at once.
    pub fn new(name: &str, seed: u64) -> Self {
        Self {
            name: Arc::from(name),
            credentials: Credentials::default(),
            node_timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(2),
            silence_max: Duration::from_millis(500),
            reconnect: (Duration::from_millis(10), Duration::from_millis(500)),
            quarantine: None,
            seed,
        }
    }
}

/// One node's answer to one request.
#[derive(Debug)]
pub struct Answer {
    pub ticket: Ticket,
    pub vote: Vote,
    /// Why the vote failed, if it did.
    pub problem: Option<NodeError>,
    /// Was the request written, or queued to be written? Then the node may have acted on it.
    pub was_sent: bool,
    /// How long the reply took, if there is one.
    pub took: Option<Duration>,
    /// The counter of a fenced lock that was granted.
    pub counter: Option<u64>,
    /// What the node says about a waiter, for a request about the queue.
    pub view: Option<QueueView>,
    /// Does a waiter of another client wait for a lock that was granted?
    pub is_awaited: bool,
    /// What the node has said to a custom command.
    pub said: Option<Said>,
    /// Which permit was granted, if the request is for one.
    pub permit: Option<u32>,
}

impl Answer {
    /// An answer without a counter, to a request that was not sent.
    pub(in crate::node) fn new(ticket: Ticket, vote: Vote, problem: Option<NodeError>) -> Self {
        Self {
            ticket,
            vote,
            problem,
            was_sent: false,
            took: None,
            counter: None,
            view: None,
            is_awaited: false,
            said: None,
            permit: None,
        }
    }

    /// Makes the vote a failed vote if there is an error.
    pub(super) fn failed_by(self, error: Option<NodeError>) -> Self {
        match error {
            Some(error) => Self { vote: Vote::Failed, problem: Some(error), ..self },
            None => self,
        }
    }
}
