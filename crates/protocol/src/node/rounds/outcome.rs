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
        let reports = Vec::new();
        let said = Vec::new();
        let statuses = Vec::new();
        Self {
            votes,
            reports,
            said,
            is_watched: false,
            statuses,
        }
    }

    /// Of a round without replies. Its request may have been written, or may still be written.
    pub fn without_replies(names: &[Arc<str>], error: &NodeError) -> Self {
        let mut votes = Votes::new(Tally::new(names.len()));
        let all = NodeSet::all(names.len());
        votes.sent = all;
        votes.tally.failed = all;
        let failed = || NodeAnswer::Failed(error.clone());
        let report = |name: &Arc<str>| NodeReport::new(Arc::clone(name), failed());
        Self {
            reports: names.iter().map(report).collect(),
            said: vec![None; names.len()],
            statuses: NodeStatus::of_unreachable(names, error),
            ..Self::of(votes)
        }
    }
}
