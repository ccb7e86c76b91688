//! What the client knows of the state of each node's server.

use super::examination::FailoverSettings;
use super::{ClockDifference, ClockReading, Memory, NodeWarning, Persistence, Role};
#[cfg(feature = "groups")]
use super::{SentinelAnswers, ServerClock};
use crate::engine::RegisterMembership;
use crate::node::{GroupOptions, Host, NodeError, NodeReport, QueueSupport};
use core::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

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
    pub(in crate::node) host: Option<Host>,
    pub(in crate::node) clock_reading: Option<ClockReading>,
    /// What the client assumes of it, if it is a replicated group.
    pub(in crate::node) group_options: Option<Arc<GroupOptions>>,
    pub(in crate::node) failover: FailoverSettings,
    /// What its Sentinels say, if it has any and they were asked.
    #[cfg(feature = "groups")]
    pub(in crate::node) sentinels: Option<SentinelAnswers>,
    /// The clocks of its servers, as far as these were asked and have answered.
    #[cfg(feature = "groups")]
    pub(in crate::node) server_clocks: Vec<ServerClock>,
    pub(in crate::node) warnings: Vec<NodeWarning>,
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
            #[cfg(feature = "groups")]
            sentinels: None,
            #[cfg(feature = "groups")]
            server_clocks: Vec::new(),
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
    #[cfg(feature = "groups")]
    pub fn set_sentinels(&mut self, said: SentinelAnswers) {
        self.sentinels = Some(said);
    }

    /// What the servers of its group say about the time.
    #[doc(hidden)]
    #[cfg(feature = "groups")]
    pub fn set_server_clocks(&mut self, clocks: Vec<ServerClock>) {
        self.server_clocks = clocks;
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
    /// Have the group's servers proven that it has all locks that counted in the reign before? Its
    /// grants count since then. Only with `?replicas=`.
    pub is_proven: bool,
    /// For how long it is known at least. `None` of one that is adopted or proven; and with
    /// `?replicas=` as long as no vote of it was acknowledged by a majority of the group.
    pub age: Option<Duration>,
    /// How many replicas had acknowledged the last votes of this client. `None` without
    /// `?replicas=`, and before a vote.
    pub acknowledged: Option<usize>,
}
