//! What the client reports to the user about each node.

use super::examination::FailoverSettings;
use super::{
    ClockDifference, ClockReading, GroupOptions, Host, Memory, NodeError, NodeKind, NodeWarning,
    Persistence, Role, SentinelAnswers,
};
#[cfg(feature = "registers")]
use crate::engine::NoVote;
use crate::engine::{Node, NodeSet, RegisterMembership};
use core::net::IpAddr;
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

/// The state of a client's connection to one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    /// Is there a connection that can be used at once? On ZooKeeper, where a client is connected to
    /// one server at a time: does the server serve clients, asked over a connection of its own?
    pub is_connected: bool,
    /// The server's own name, such as `redis` or `valkey`. Like the version it is known from the
    /// last connection, if there was one and the server reported it. Escaped like the text of a
    /// [`ServerError`](crate::node::ServerError).
    pub server: Option<String>,
    /// The server's version.
    pub version: Option<String>,
    /// How long the server has been running: its uptime when the connection was made, plus the time
    /// since. `None` without a connection.
    pub uptime: Option<Duration>,
    /// For how long its grants do not count yet, because the server was started recently; see
    /// `Builder::restart_guard`. `None` if they count, or without
    /// a connection.
    pub quarantine: Option<Duration>,
    /// How long the last answer took that a round waited for.
    pub round_trip: Option<Duration>,
    /// The IP address that the connection leads to. `None` for a Unix socket, or without a
    /// connection. A proxy or a tunnel has an address of its own.
    pub address: Option<IpAddr>,
    /// How the server keeps its data, and so what a crash [costs](Persistence::crash_loss).
    pub persistence: Persistence,
    /// The server's memory, and what it does when there is no more.
    pub memory: Memory,
    /// Is the server a replica, and are there replicas of it? On ZooKeeper, what it does in its
    /// ensemble.
    pub role: Option<Role>,
    /// Is the server a node of a cluster?
    pub is_cluster: Option<bool>,
    /// The reign of a master that a group has, if the node is a replicated group. `None` of other
    /// nodes, and without a connection.
    pub group: Option<GroupStatus>,
    /// By how much the server's wall clock differs from this machine's.
    pub clock: Option<ClockDifference>,
    /// Can clients wait in a queue here? `None` until this one has waited on this connection.
    pub queue: Option<QueueSupport>,
    /// Whether the node has a vote on registers, and if not why. `None` if that is not known.
    pub registers: Option<RegisterMembership>,
    /// The last transaction that the server knows. On ZooKeeper only: one that is far below those
    /// of the others lags behind.
    pub zxid: Option<u64>,
    /// The last error, if it happened after the connection was made or there is no connection; or
    /// that the node did not answer in time just now.
    pub last_error: Option<NodeError>,
    /// The machine on which the server runs.
    pub(super) host: Option<Host>,
    pub(super) clock_reading: Option<ClockReading>,
    /// What the client assumes of it, if it is a replicated group.
    pub(super) group_options: Option<Arc<GroupOptions>>,
    pub(super) failover: FailoverSettings,
    /// What its Sentinels say, if it has any and they were asked.
    pub(super) sentinels: Option<SentinelAnswers>,
    pub(super) warnings: Vec<NodeWarning>,
}

impl NodeStatus {
    /// What about this node breaks a promise of the lock, or would in a fault that is to be
    /// expected. Empty if nothing is known that does.
    #[must_use]
    pub fn warnings(&self) -> &[NodeWarning] {
        &self.warnings
    }

    /// The statuses of nodes to which no request can be sent.
    #[doc(hidden)]
    pub fn of_unreachable(nodes: &[NodeReport], error: &NodeError) -> Vec<Self> {
        let status = |node: &NodeReport| Self {
            last_error: Some(error.clone()),
            ..Self::unknown(&node.url)
        };
        nodes.iter().map(status).collect()
    }

    /// The status of a node of which nothing is known.
    #[doc(hidden)]
    pub fn unknown(url: &Arc<str>) -> Self {
        Self {
            url: Arc::clone(url),
            is_connected: false,
            server: None,
            version: None,
            uptime: None,
            quarantine: None,
            round_trip: None,
            address: None,
            persistence: Persistence::default(),
            memory: Memory::default(),
            role: None,
            is_cluster: None,
            group: None,
            clock: None,
            queue: None,
            registers: None,
            zxid: None,
            last_error: None,
            host: None,
            clock_reading: None,
            group_options: None,
            failover: FailoverSettings::default(),
            sentinels: None,
            warnings: Vec::new(),
        }
    }

    /// The machine at the other end of the connection.
    #[doc(hidden)]
    pub fn set_host(&mut self, host: Option<Host>) {
        self.address = host.and_then(|host| host.address);
        self.host = host;
    }

    /// What the Sentinels of its group say.
    #[doc(hidden)]
    pub fn set_sentinels(&mut self, said: SentinelAnswers) {
        self.sentinels = Some(said);
    }
}

/// What is known of a replicated group: its reign, which is the time for which one process is
/// master without a break.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupStatus {
    /// The master's name for it (`master_replid`). No reign comes back.
    pub reign: String,
    /// The epoch in which Sentinels had elected the master when the reign was noted in the group;
    /// otherwise 0.
    pub epoch: u64,
    /// The first digits of the name of an earlier one, if one is known. Locks that were granted in
    /// it may still be held until the [quarantine](NodeStatus::quarantine) ends.
    pub former: Option<String>,
    /// Has a person vouched for it, as the first one of the group (`LockClient::adopt_groups`)? Its
    /// grants count since then.
    pub is_adopted: bool,
    /// For how long it is known at least. `None` of one that is adopted, and as long as no majority
    /// of the group has vouched for it, if that is wanted (`?replicas=`): no grant counts until
    /// then.
    pub age: Option<Duration>,
    /// How many replicas had acknowledged a write of this client, at its last vote, that was no
    /// older than `failover_bound`. `None` without `?replicas=`, and before a vote.
    pub acknowledged: Option<usize>,
    /// How long ago the last write was sent that a majority of the group has acknowledged. `None`
    /// without `?replicas=`, and before there is one.
    pub vouched_ago: Option<Duration>,
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
