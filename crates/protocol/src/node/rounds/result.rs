//! The result of a round.

use crate::engine::{Ballot, NodeSet, Said, Tally, Verb};
use crate::node::node_error::NodeError;
use crate::node::report::{NodeAnswer, NodeReport, NodeStatus};
use std::sync::Arc;

/// The result of a round, one variant for each kind of request, or of a wait.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most are votes, for which nothing is allocated")]
pub enum RoundResult {
    /// Of a request about a lock: to acquire, extend or release it, to raise its counters, or to
    /// keep or leave a place in the nodes' queue.
    Votes(Votes),
    /// Of a wait in the nodes' queue: the nodes that reserve the lock for the waiter.
    Wait(NodeSet),
    /// Of a ping: the state of every node.
    Ping(Vec<NodeStatus>),
    /// Of a custom command.
    Custom {
        /// What each node has said. `None` if it gave no reply that counts.
        said: Vec<Option<Said>>,
        /// Do all nodes tell the watcher when what was read changes?
        is_watched: bool,
        /// What each node replied.
        reports: Vec<NodeReport>,
    },
}

/// The votes about a lock.
#[derive(Debug)]
pub struct Votes {
    pub ballot: Ballot,
    /// What each node replied. Empty if no error can follow from the votes: a majority granted the
    /// request, or an attempt failed only because the lock is held. Never empty if two nodes are
    /// one server.
    pub reports: Vec<NodeReport>,
}

impl RoundResult {
    /// The result of a round without replies. Its request may have been written, or may still be
    /// written.
    pub fn without_replies(names: &[Arc<str>], verb: Verb, error: &NodeError) -> Self {
        let all = NodeSet::all(names.len());
        let mut tally = Tally::new(names.len());
        tally.failed = all;
        let report = |name: &Arc<str>| NodeReport {
            url: Arc::clone(name),
            answer: NodeAnswer::Failed(error.clone()),
        };
        let reports = || names.iter().map(report).collect();
        match verb {
            Verb::Ping => Self::Ping(NodeStatus::of_unreachable(names, error)),
            Verb::Custom => {
                let said = vec![None; names.len()];
                Self::Custom { said, is_watched: false, reports: reports() }
            }
            _ => {
                let mut ballot = Ballot::new(tally);
                ballot.sent = all;
                Self::Votes(Votes { ballot, reports: reports() })
            }
        }
    }

    /// The votes of a round about a lock.
    ///
    /// # Panics
    ///
    /// The request was a ping or a custom command, or there was none.
    pub fn into_votes(self) -> Votes {
        match self {
            Self::Votes(votes) => votes,
            other => unreachable!("the request was about a lock, the result is {other:?}"),
        }
    }

    /// What each node has said to a custom command, if it gave an answer that counts, and the
    /// reports.
    ///
    /// # Panics
    ///
    /// The request was no custom command.
    pub fn into_said(self) -> (Vec<Option<Said>>, Vec<NodeReport>) {
        match self {
            Self::Custom { said, reports, .. } => (said, reports),
            other => unreachable!("it was a custom command, the result is {other:?}"),
        }
    }

    /// The nodes that reserve the lock after a wait.
    ///
    /// # Panics
    ///
    /// There was a round.
    pub fn into_reserved(self) -> NodeSet {
        match self {
            Self::Wait(nodes) => nodes,
            other => unreachable!("the caller waited in the queue, the result is {other:?}"),
        }
    }
}
