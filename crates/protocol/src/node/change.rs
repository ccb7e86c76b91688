//! State changes of the nodes, which the client reports as events: up, down, slow.

use super::node_error::NodeError;
use super::report::QueueSupport;
#[cfg(feature = "registers")]
use crate::engine::NoVote;
use crate::engine::{Node, NodeSet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The most changes that are kept until they are read. Beyond that the oldest are dropped, because
/// the latest show the current state.
pub const CHANGES_MAX: usize = 256;

/// A change of a node's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChange {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    pub state: NodeState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The node has answered the greeting.
    Up,
    /// The connection was lost, or could not be made.
    Down(NodeError),
    /// The node has not answered an outstanding command for this long.
    Slow(Duration),
    /// Waiting in a queue on this node does not work, or not fully.
    Queue(QueueSupport),
    /// This server of an ensemble has told that the client's session has ended.
    SessionLost,
    /// The node has a vote on registers, or none for this reason.
    #[cfg(feature = "registers")]
    Votes(Result<(), NoVote>),
}

/// A bounded queue of changes.
#[derive(Debug, Default)]
pub struct Changes {
    changes: VecDeque<NodeChange>,
}

impl Changes {
    /// Appends a change.
    pub fn push(&mut self, change: NodeChange) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }

    /// Removes and returns the oldest change.
    pub fn pop(&mut self) -> Option<NodeChange> {
        self.changes.pop_front()
    }
}

/// Records changes: compares each observation with the state that was reported last.
#[derive(Debug)]
pub struct ChangeRecorder {
    /// A node that is silent for this long is slow.
    node_timeout: Duration,
    up: NodeSet,
    down: NodeSet,
    slow: NodeSet,
    changes: Changes,
}

impl ChangeRecorder {
    pub fn new(node_timeout: Duration) -> Self {
        let (up, down, slow) = (NodeSet::EMPTY, NodeSet::EMPTY, NodeSet::EMPTY);
        Self { node_timeout, up, down, slow, changes: Changes::default() }
    }

    /// The node has answered the greeting.
    pub fn greeted(&mut self, node: Node, name: &Arc<str>) {
        self.down.remove(node);
        self.slow.remove(node);
        if !self.up.contains(node) {
            self.up.insert(node);
            self.record(name, NodeState::Up);
        }
    }

    /// The connection was lost, or could not be made.
    pub fn lost(&mut self, node: Node, name: &Arc<str>, error: &NodeError) {
        self.up.remove(node);
        self.slow.remove(node);
        if !self.down.contains(node) {
            self.down.insert(node);
            self.record(name, NodeState::Down(error.clone()));
        }
    }

    /// The node has answered a command, after this time.
    pub(super) fn answered(&mut self, node: Node, took: Duration) {
        if took < self.node_timeout {
            self.slow.remove(node);
        }
    }

    /// The node has been silent for this time.
    pub(super) fn silent(&mut self, node: Node, name: &Arc<str>, silent: Duration) {
        let is_reported = self.slow.contains(node) || self.down.contains(node);
        if silent >= self.node_timeout && !is_reported {
            self.slow.insert(node);
            self.record(name, NodeState::Slow(silent));
        }
    }

    /// Waiting in a queue on this node does not work, or not fully.
    pub(super) fn queue(&mut self, name: &Arc<str>, support: QueueSupport) {
        self.record(name, NodeState::Queue(support));
    }

    /// The session of the client has ended, as this node tells.
    pub fn session_lost(&mut self, name: &Arc<str>) {
        self.record(name, NodeState::SessionLost);
    }

    pub fn pop(&mut self) -> Option<NodeChange> {
        self.changes.pop()
    }

    fn record(&mut self, name: &Arc<str>, state: NodeState) {
        self.changes.push(NodeChange { url: Arc::clone(name), state });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_kept_changes_is_bounded_and_the_latest_are_kept() {
        let mut changes = Changes::default();
        let change = |millis| NodeChange {
            url: "redis://node".into(),
            state: NodeState::Slow(Duration::from_millis(millis)),
        };
        (0..1_000).for_each(|number| changes.push(change(number)));
        let kept: Vec<_> = std::iter::from_fn(|| changes.pop()).collect();
        assert_eq!(kept.len(), CHANGES_MAX);
        assert_eq!(kept.first(), Some(&change(1_000 - CHANGES_MAX as u64)));
        assert_eq!(kept.last(), Some(&change(999)));
    }
}
