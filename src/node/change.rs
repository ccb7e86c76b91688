//! What changes about the nodes, for those who want to be told: who came, who went, who is silent.

use super::node_error::NodeError;
use crate::engine::{Node, NodeSet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The most changes that are kept until somebody asks for them. Beyond that the oldest are
/// forgotten: the latest say how things stand.
pub const CHANGES_MAX: usize = 256;

/// Something that changed about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeChange {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    /// How it stands now.
    pub state: NodeState,
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the client turns each into an event of its own")]
pub enum NodeState {
    /// It has answered the greeting.
    Up,
    /// Its connection was lost, or could not be made.
    Down(NodeError),
    /// It has been silent for so long, with something to answer.
    Slow(Duration),
}

/// Changes in their order, and not too many.
#[derive(Debug, Default)]
pub struct Changes {
    changes: VecDeque<NodeChange>,
}

impl Changes {
    /// Adds one behind the others.
    pub fn push(&mut self, change: NodeChange) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<NodeChange> {
        self.changes.pop_front()
    }
}

/// Finds out what has changed by comparing with what was told before.
#[derive(Debug)]
pub(super) struct ChangeRecorder {
    /// For how long a node may be silent without being slow.
    patience: Duration,
    up: NodeSet,
    down: NodeSet,
    slow: NodeSet,
    changes: Changes,
}

impl ChangeRecorder {
    pub(super) fn new(patience: Duration) -> Self {
        let (up, down, slow) = (NodeSet::EMPTY, NodeSet::EMPTY, NodeSet::EMPTY);
        Self { patience, up, down, slow, changes: Changes::default() }
    }

    /// A greeting was answered.
    pub(super) fn greeted(&mut self, node: Node, name: &Arc<str>) {
        self.down.remove(node);
        self.slow.remove(node);
        if !self.up.contains(node) {
            self.up.insert(node);
            self.tell(name, NodeState::Up);
        }
    }

    /// There is no connection.
    pub(super) fn lost(&mut self, node: Node, name: &Arc<str>, problem: &NodeError) {
        self.up.remove(node);
        self.slow.remove(node);
        if !self.down.contains(node) {
            self.down.insert(node);
            self.tell(name, NodeState::Down(problem.clone()));
        }
    }

    /// An answer has come, after so long.
    pub(super) fn answered(&mut self, node: Node, took: Duration) {
        if took < self.patience {
            self.slow.remove(node);
        }
    }

    /// Nothing has come for so long.
    pub(super) fn silent(&mut self, node: Node, name: &Arc<str>, silent: Duration) {
        let is_told = self.slow.contains(node) || self.down.contains(node);
        if silent >= self.patience && !is_told {
            self.slow.insert(node);
            self.tell(name, NodeState::Slow(silent));
        }
    }

    pub(super) fn pop(&mut self) -> Option<NodeChange> {
        self.changes.pop()
    }

    fn tell(&mut self, name: &Arc<str>, state: NodeState) {
        self.changes.push(NodeChange { url: Arc::clone(name), state });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_somebody_may_ever_read_and_the_latest_stays() {
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
