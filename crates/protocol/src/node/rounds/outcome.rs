//! The outcome of a round.

use crate::engine::{NodeSet, Said, Tally, Votes};
use crate::node::node_error::NodeError;
use crate::node::report::{NodeAnswer, NodeReport, NodeStatus};
use std::sync::Arc;

/// The outcome of a round, or of a wait in the nodes' queue, whose votes say which nodes reserve
/// the lock.
#[derive(Debug)]
pub struct RoundOutcome {
    pub votes: Votes,
    /// What each node replied. Empty if no error can follow from the votes: a majority granted the
    /// request, or an attempt failed only because the lock is held. Never empty if two nodes are
    /// one server.
    pub reports: Vec<NodeReport>,
    /// What each node has said to a custom command. `None` if it gave no reply that counts.
    pub said: Vec<Option<Said>>,
    /// Do all nodes tell the watcher when what a custom command has read changes?
    pub is_watched: bool,
    /// The state of every node, after a ping.
    pub statuses: Vec<NodeStatus>,
}

impl RoundOutcome {
    pub fn of(votes: Votes) -> Self {
        Self {
            votes,
            reports: Vec::new(),
            said: Vec::new(),
            is_watched: false,
            statuses: Vec::new(),
        }
    }

    /// Of a round without replies. Its request may have been written, or may still be written.
    pub fn without_replies(names: &[Arc<str>], error: &NodeError) -> Self {
        let mut votes = Votes::new(Tally::new(names.len()));
        let all = NodeSet::all(names.len());
        votes.sent = all;
        votes.tally.failed = all;
        let reports = names
            .iter()
            .map(|name| NodeReport::new(Arc::clone(name), NodeAnswer::Failed(error.clone())))
            .collect();
        Self {
            reports,
            said: vec![None; names.len()],
            statuses: NodeStatus::of_unreachable(names, error),
            ..Self::of(votes)
        }
    }
}
