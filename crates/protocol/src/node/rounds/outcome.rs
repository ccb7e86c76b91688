//! How a round, a wait in the nodes' queue, or one for a time has ended.

use crate::engine::{NodeSet, Said, Tally, Votes};
#[cfg(feature = "diagnostics")]
use crate::node::NodeStatus;
use crate::node::node_error::NodeError;
use crate::node::report::{NodeAnswer, NodeReport};

/// How what a caller waits for has ended.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "each lock is a round, and a box would allocate for it"
)]
pub enum Ended {
    Round(RoundOutcome),
    /// A wait in the nodes' queue. Does a majority of the nodes reserve the lock for the waiter?
    Wait {
        is_called: bool,
    },
    /// A wait for a time, which has come, or all calls have ended.
    Until,
}

impl Ended {
    /// The outcome, if it was a round.
    pub fn into_round(self) -> Option<RoundOutcome> {
        match self {
            Self::Round(outcome) => Some(outcome),
            Self::Wait { .. } | Self::Until => None,
        }
    }
}

/// The outcome of a round.
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
    #[cfg(feature = "diagnostics")]
    pub statuses: Vec<NodeStatus>,
}

impl RoundOutcome {
    pub fn of(votes: Votes) -> Self {
        Self {
            votes,
            reports: Vec::new(),
            said: Vec::new(),
            is_watched: false,
            #[cfg(feature = "diagnostics")]
            statuses: Vec::new(),
        }
    }

    /// Of a round without replies. Its request may have been written, or may still be written.
    pub fn without_replies(nodes: &[NodeReport], error: &NodeError) -> Self {
        let mut votes = Votes::new(Tally::new(nodes.len()));
        let all = NodeSet::all(nodes.len());
        votes.sent = all;
        votes.tally.failed = all;
        let failed = |node: &NodeReport| NodeReport {
            answer: NodeAnswer::Failed(error.clone()),
            ..node.clone()
        };
        Self {
            reports: nodes.iter().map(failed).collect(),
            said: vec![None; nodes.len()],
            #[cfg(feature = "diagnostics")]
            statuses: NodeStatus::of_unreachable(nodes, error),
            ..Self::of(votes)
        }
    }
}
