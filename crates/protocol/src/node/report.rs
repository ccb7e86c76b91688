//! What the client reports to the user about each node.

use super::{NodeError, NodeKind};
#[cfg(feature = "registers")]
use crate::engine::NoVote;
use crate::engine::{Node, NodeSet};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One node's answer in a round, with the node's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    /// What the node is.
    pub kind: NodeKind,
    /// Its answer.
    pub answer: NodeAnswer,
    /// The first digits of an earlier reign's name, if the node is a replicated group of which one
    /// is known: it has another master than before, or that one was started again or has lost its
    /// keys. Locks that were granted before may still be held.
    pub former_reign: Option<String>,
}

impl NodeReport {
    #[doc(hidden)]
    #[must_use]
    pub fn new(url: Arc<str>, kind: NodeKind, answer: NodeAnswer) -> Self {
        Self {
            url,
            kind,
            answer,
            former_reign: None,
        }
    }
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.url, self.answer)?;
        if !matches!(
            self.answer,
            NodeAnswer::Failed(NodeError::Quarantined { .. })
        ) {
            return Ok(());
        }
        match &self.former_reign {
            _ if self.kind != NodeKind::Group => {
                f.write_str(", since it has not been up for max_ttl (setting restart_guard)")
            }
            None => f.write_str(
                ", since its group has not had this master for max_ttl and failover_bound (if the \
                 group is new: LockClient::adopt_groups)",
            ),
            Some(former) => write!(
                f,
                ", since its group has not had this master for max_ttl and failover_bound, and was \
                 in use before (reign {former})"
            ),
        }
    }
}

/// A node's answer in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeAnswer {
    /// The node carried out the request.
    Granted,
    /// The node answered a question, took a waiter into its queue, or did as asked of a register or
    /// of a group.
    Answered,
    /// The node has accepted a change of a register.
    Accepted,
    /// The node refused the request: the key holds another token, or is gone.
    Refused,
    /// The node gave no answer that counts.
    Failed(NodeError),
    /// The other nodes decided the result before this node's answer arrived.
    Pending,
    /// Nothing was ever written to the node about this lock, so it does not hold the key.
    NotAsked,
}

impl fmt::Display for NodeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Granted => "granted",
            Self::Answered => "answered",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Failed(error) => return error.fmt(f),
            Self::NotAsked => "not asked: nothing was sent to it about this lock",
            Self::Pending => "no reply yet (the other nodes had already decided the result)",
        })
    }
}

/// Whether clients can wait for a lock in a queue on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueSupport {
    /// They can, and the node tells a waiter when it is its turn.
    Full,
    /// They can, but the node does not tell them everything: it speaks no RESP3, or the user may
    /// not use `SUBSCRIBE` or `CLIENT TRACKING`. The waiters in front ask the node now and then.
    WithoutPushes,
    /// They cannot: the user may not use the commands of the queue, or the server does not know
    /// them. The node takes no part in the order of waiters; its locks are as safe.
    Unsupported,
}

impl QueueSupport {
    /// `full`, `without_pushes` or `unsupported`: for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::WithoutPushes => "without_pushes",
            Self::Unsupported => "unsupported",
        }
    }
}

/// The word of [`as_str`](QueueSupport::as_str).
impl fmt::Display for QueueSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// State changes of the nodes, which the client reports as events: up, down, slow.

/// The most changes that are kept until they are read. Beyond that the oldest are dropped, because
/// the latest show the current state.
pub const CHANGES_MAX: usize = 256;

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
    /// The node is a replicated group, and in another reign than before, which is known for this
    /// long, or zero if it was adopted, and whose grants do not count for that long.
    NewReign { age: Duration, left: Duration },
    /// This server of an ensemble has told that the client's session has ended.
    SessionLost,
    /// The node has a vote on registers, or none for this reason.
    #[cfg(feature = "registers")]
    Votes(Result<(), NoVote>),
}

#[derive(Debug, Default)]
pub struct Changes {
    changes: VecDeque<NodeChange>,
}

impl Changes {
    pub fn push(&mut self, change: NodeChange) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }

    pub fn pop(&mut self) -> Option<NodeChange> {
        self.changes.pop_front()
    }
}

/// Records changes: compares each observation with the state that was reported last.
#[derive(Debug, Default)]
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
        Self {
            node_timeout,
            ..Self::default()
        }
    }

    pub fn greeted(&mut self, node: Node, name: &Arc<str>) {
        self.down.remove(node);
        self.slow.remove(node);
        if !self.up.contains(node) {
            self.up.insert(node);
            self.record(name, NodeState::Up);
        }
    }

    pub fn lost(&mut self, node: Node, name: &Arc<str>, error: &NodeError) {
        self.up.remove(node);
        self.slow.remove(node);
        if !self.down.contains(node) {
            self.down.insert(node);
            self.record(name, NodeState::Down(error.clone()));
        }
    }

    pub(super) fn answered(&mut self, node: Node, took: Duration) {
        if took < self.node_timeout {
            self.slow.remove(node);
        }
    }

    pub(super) fn silent(&mut self, node: Node, name: &Arc<str>, silent: Duration) {
        let is_reported = self.slow.contains(node) || self.down.contains(node);
        if silent >= self.node_timeout && !is_reported {
            self.slow.insert(node);
            self.record(name, NodeState::Slow(silent));
        }
    }

    pub fn pop(&mut self) -> Option<NodeChange> {
        self.changes.pop()
    }

    pub fn record(&mut self, name: &Arc<str>, state: NodeState) {
        self.changes.push(NodeChange {
            url: Arc::clone(name),
            state,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarantine_has_the_reason_of_the_node_that_is_in_it() {
        let answer = NodeAnswer::Failed(NodeError::Quarantined {
            left: Duration::from_secs(5),
        });
        let report = |kind| NodeReport::new("redis://h:6379/0".into(), kind, answer.clone());
        let group = report(NodeKind::Group).to_string();
        let has = |words: &str| group.contains(words);
        assert!(
            has("failover_bound") && has("adopt_groups") && !has("restart_guard"),
            "{group}"
        );
        let former_reign = Some("5d41402a".to_owned());
        let known = NodeReport {
            former_reign,
            ..report(NodeKind::Group)
        };
        let known = known.to_string();
        assert!(
            known.contains("5d41402a") && !known.contains("adopt"),
            "{known}"
        );
        let plain = report(NodeKind::Server).to_string();
        assert!(
            plain.contains("restart_guard") && !plain.contains("group"),
            "{plain}"
        );
    }

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
