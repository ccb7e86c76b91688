//! Settings: checked once, when the client is built, and valid from then on.

mod check;
#[cfg(feature = "serde")]
mod client_settings;
mod connections;
#[cfg(feature = "zookeeper")]
mod ensemble;
mod events;
mod names;
mod nodes;
mod threads;
#[cfg(feature = "tls")]
mod tls;
mod waiting;

use crate::engine::{Rules, Ttl};
use crate::event::Listener;
use crate::net::ConnectOptions;
use crate::wait_queue::HandoffLimit;
#[cfg(feature = "serde")]
pub use client_settings::ClientSettings;
use connections::ConnectionSettings;
#[cfg(feature = "zookeeper")]
pub(crate) use ensemble::Ensemble;
use events::EventSettings;
pub(crate) use names::is_reserved;
use nodes::NodeSource;
pub use nodes::NodeUrls;
pub(crate) use nodes::{NodeSettings, RedisNode};
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "tls")]
pub use tls::TlsSettings;

/// Collects the settings of a [`LockClient`](crate::LockClient).
///
/// Only the nodes must be set. Every other setting has a default, documented with its reason.
///
/// ```
/// # use redlatch::{Error, LockClient};
/// # use std::time::Duration;
/// let client = LockClient::builder()
///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
///     .key_prefix("billing:")
///     .node_timeout(Duration::from_millis(20))
///     .build()?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing before `build`"]
pub struct Builder {
    nodes: Vec<NodeSource>,
    node_timeout: Option<Duration>,
    #[cfg(feature = "zookeeper")]
    session_timeout: Option<Duration>,
    drift_factor: f64,
    min_validity: Duration,
    retry: (Duration, Duration),
    wait_for_all: bool,
    io_thread: bool,
    key_prefix: Vec<u8>,
    client_name: Option<String>,
    max_ttl: Duration,
    max_hold: Option<Duration>,
    restart_guard: bool,
    handoff_limit: HandoffLimit,
    queue: bool,
    waiter_lease: Option<Duration>,
    fencing_expiry: Option<Duration>,
    connections: ConnectionSettings,
    events: EventSettings,
    #[cfg(feature = "tls")]
    tls: TlsSettings,
}

/// Settings that have been checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) nodes: NodeSettings,
    pub(crate) rules: Arc<Rules>,
    pub(crate) max_ttl: Duration,
    pub(crate) key_prefix: Vec<u8>,
    pub(crate) client_name: Option<String>,
    pub(crate) wait_for_all: bool,
    pub(crate) io_thread: bool,
    pub(crate) connecting: ConnectOptions,
    pub(crate) restart_guard: bool,
    pub(crate) handoff_limit: HandoffLimit,
    pub(crate) fencing_expiry: Ttl,
    pub(crate) listener: Option<Listener>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            node_timeout: None,
            #[cfg(feature = "zookeeper")]
            session_timeout: None,
            drift_factor: 0.01,
            min_validity: Duration::ZERO,
            retry: (Duration::from_millis(1), Duration::from_millis(100)),
            wait_for_all: false,
            io_thread: false,
            key_prefix: Vec::new(),
            client_name: Some("redlatch".to_owned()),
            max_ttl: Duration::from_secs(60),
            max_hold: None,
            restart_guard: true,
            handoff_limit: HandoffLimit::DEFAULT,
            queue: true,
            waiter_lease: None,
            fencing_expiry: None,
            connections: ConnectionSettings::default(),
            events: EventSettings::default(),
            #[cfg(feature = "tls")]
            tls: TlsSettings::default(),
        }
    }

    /// How long one round over all nodes may take: 1 ms to 60 s, by default 50 ms. Only the first
    /// rounds of a client may take longer, until a majority of the nodes has answered for the first
    /// time: see [`connect_timeout`](Self::connect_timeout).
    ///
    /// A node that has not answered by then counts as unreachable for that round. It should be a
    /// small part of the ttl and several times the round trip to the farthest node; 50 ms suits
    /// nodes in one region, and is the upper end of the range that the Redlock description
    /// recommends for a ttl of 10 s.
    ///
    /// On ZooKeeper it is the time for one request, by default a third of the session timeout, and
    /// 60 s at most.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = Some(timeout);
        self
    }

    /// By what part of the ttl the clocks of this machine and of a node may run apart: 0 to 0.5,
    /// by default 0.01.
    ///
    /// One per cent is what the Redlock description and most implementations use. It is a hundred
    /// times the error of the quartz in a healthy machine, which leaves room for a clock that is
    /// being slewed. On ZooKeeper it is by what part of the session timeout the clocks of this
    /// machine and of the leader may run apart.
    pub fn drift_factor(mut self, factor: f64) -> Self {
        self.drift_factor = factor;
        self
    }

    /// The least validity with which a lock is granted, by default zero: any.
    ///
    /// If less than this is left when a majority has granted the lock, it is released again and
    /// counts as not granted. A good value is the time that the work under the lock takes.
    ///
    /// On ZooKeeper it also counts for what is left of the session, and is at most 3/7 of the
    /// session timeout: so much is left at any time while the ensemble answers.
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.min_validity = least;
        self
    }

    /// The pauses between attempts: a random time below a ceiling that starts at `base` and doubles
    /// up to `cap`. `base` is at least 0.1 ms, and `cap` at least `base`; by default 1 ms and 100
    /// ms.
    ///
    /// A call that waits in the nodes' [queue](Self::queue) makes no attempts meanwhile. The pauses
    /// are for calls without a place there, such as a [set](crate::LockClient::request_all) of
    /// resources, for failures of nodes, and for nodes that do not tell a waiter that its turn has
    /// come.
    ///
    /// If a round takes longer than `base`, its time is the first ceiling: asking again before the
    /// answers of competing attempts can be in is of no use. 100 ms limit how long a free lock
    /// stays untaken when many clients have waited long for it.
    ///
    /// On ZooKeeper these are the pauses between attempts to connect when all servers have failed.
    pub fn retry(mut self, base: Duration, cap: Duration) -> Self {
        self.retry = (base, cap);
        self
    }

    /// Whether an operation waits for the answers of all nodes, up to the node timeout, instead of
    /// going on when a majority has answered. By default it does not.
    ///
    /// The request goes to all nodes either way, so this makes no lock safer; it makes every
    /// operation as slow as the slowest node. It is of use to tests that look at all nodes
    /// afterwards. On ZooKeeper `true` is an error: an answer is that of a majority.
    pub fn wait_for_all(mut self, wait: bool) -> Self {
        self.wait_for_all = wait;
        self
    }

    /// The longest ttl that a lock may have, by default 60 s. It is at most 365 days, and at least
    /// a ttl that leaves some validity after drift and the least validity (3 ms by default).
    ///
    /// It catches a ttl in the wrong unit, and limits how long a resource is blocked by a client
    /// that died holding it. It is also how long the grants of a restarted node do not count (see
    /// [`restart_guard`](Self::restart_guard)). A good value is little more than the longest ttl in
    /// use. All clients that share locks must set the same: one with a shorter `max_ttl` would
    /// trust a restarted node while a longer lock of another client, which the node has forgotten,
    /// is still held.
    ///
    /// On ZooKeeper it limits the ttl in the same way; a client that died frees its locks when its
    /// session ends, whatever their ttl.
    pub fn max_ttl(mut self, longest: Duration) -> Self {
        self.max_ttl = longest;
        self
    }

    /// How long extensions may keep a lock, counted from when it was requested: an extension beyond
    /// that is refused. By default there is no limit, and zero refuses every extension. Locks that
    /// are [kept alive](crate::LockRequest::keep_alive) end then, and after 24 hours if this is not
    /// set.
    ///
    /// Without a limit, a client that hangs keeps a resource for ever, which the Redlock
    /// description warns of: set this to the longest time that the work can take.
    ///
    /// On ZooKeeper it is the same.
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.max_hold = Some(longest);
        self
    }

    /// Whether the grants of a node that was started less than [`max_ttl`](Self::max_ttl) ago do
    /// not count. By default they do not count.
    ///
    /// A node that restarts without its data has forgotten the locks it granted, and would grant
    /// them again. A node that has been up for longer than any ttl has forgotten nothing that is
    /// still held; this is the "delayed restart" of the Redlock description, done by the client. It
    /// is on by default because Redis with default settings can lose its last minutes of writes in
    /// a crash: without it, two nodes of three that restart together can grant one lock to two
    /// holders.
    ///
    /// A node in quarantine still releases locks, extends those it has, and refuses a lock that
    /// another client holds. Only its grants do not count, and are reported as
    /// [`NodeError::Quarantined`](crate::NodeError::Quarantined) with the time that is left;
    /// [`NodeStatus::quarantine`](crate::NodeStatus::quarantine) has it beforehand. One node that
    /// restarts is like one that is down. If a majority was started within `max_ttl`, no lock can
    /// be acquired until that is over: [`try_lock`](crate::LockClient::try_lock) returns
    /// [`NoQuorum`](crate::NoQuorum) at once, and [`lock`](crate::LockClient::lock) waits and does
    /// not ask before. For planned restarts, restart the nodes one by one, `max_ttl` apart.
    ///
    /// How long a node has been up is taken from `INFO` (`uptime_in_seconds`, and a changed
    /// `run_id`) with every new connection. Without the right to `INFO`, a node counts as started
    /// when the connection was made, so that every new connection begins a quarantine. It cannot
    /// help against data that is lost without a restart, by `FLUSHALL` or by eviction.
    ///
    /// Turn it off for nodes that write every change to disk before they answer (`appendonly yes`
    /// with `appendfsync always`): they restart with the locks they granted. Also in tests, where
    /// nodes have just been started.
    ///
    /// On ZooKeeper it has no effect: servers write every change to disk before they answer.
    pub fn restart_guard(mut self, guard: bool) -> Self {
        self.restart_guard = guard;
        self
    }

    /// How long the counters of [fencing tokens](crate::LockRequest::fenced) live after the last
    /// grant; extensions do not count. From [`max_ttl`](Self::max_ttl) to 365 days, by default 7
    /// days, or `max_ttl` if that is more.
    ///
    /// A counter that has expired begins again at the wall clock of the client that asks next,
    /// which is above all tokens before if the clients' wall clocks agree. The longer counters
    /// live, the less depends on that; the shorter, the fewer keys are kept for resources that are
    /// not locked any more.
    ///
    /// On ZooKeeper it is an error: a token is the number of a transaction, and needs no counter.
    pub fn fencing_expiry(mut self, expiry: Duration) -> Self {
        self.fencing_expiry = Some(expiry);
        self
    }
}

/// URLs may contain passwords, so they are not shown.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}
