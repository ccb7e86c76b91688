//! Settings: checked once, when the client is built, and valid from then on.

#[cfg(feature = "serde")]
mod client_settings;
mod connections;
#[cfg(feature = "zookeeper")]
mod ensemble;
mod events;
mod nodes;
#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "serde")]
pub use client_settings::ClientSettings;
#[cfg(feature = "zookeeper")]
pub(crate) use ensemble::Ensemble;
pub use nodes::NodeUrls;
pub(crate) use nodes::{NodeSettings, RedisNode};
#[cfg(feature = "tls")]
pub use tls::TlsSettings;

use crate::engine::{Drift, Rules, TTL_LIMIT, Ttl, WAITER_LEASE};
use crate::error::ConfigError;
use crate::event::{Callback, Listener};
use crate::net::ConnectOptions;
use crate::wait_queue::HandoffLimit;
use nodes::NodeSource;
use std::sync::Arc;
use std::time::Duration;

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
    connect_timeout: Option<Duration>,
    keepalive: Option<Duration>,
    on_event: Option<Arc<Callback>>,
    #[cfg(feature = "tracing")]
    tracing: bool,
    #[cfg(feature = "metrics")]
    metrics: bool,
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
            connect_timeout: None,
            keepalive: Some(Duration::from_secs(60)),
            on_event: None,
            #[cfg(feature = "tracing")]
            tracing: false,
            #[cfg(feature = "metrics")]
            metrics: false,
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

/// The shortest first pause between two attempts. Below it, retrying is a tight loop.
const RETRY_BASE_MIN: Duration = Duration::from_micros(100);

const NODE_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// How long fencing counters live, unless locks may live for longer.
const FENCING_EXPIRY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The limits of the time for which a waiter may be silent.
const WAITER_LEASE_MIN: Duration = Duration::from_millis(100);
const WAITER_LEASE_MAX: Duration = Duration::from_secs(60);

/// How many rounds fit into that time by default, and at least: a waiter whose renewal takes a
/// whole round keeps its place.
const ROUNDS_PER_LEASE: u32 = 4;
const ROUNDS_PER_LEASE_MIN: u32 = 2;

impl Builder {
    pub(crate) fn check(self) -> Result<Settings, ConfigError> {
        let nodes = self.check_nodes()?;
        let Some(drift) = Drift::from_factor(self.drift_factor) else {
            let reason =
                format!("{} is not between 0 and {}", self.drift_factor, Drift::FACTOR_MAX);
            return Err(refused("drift_factor", reason));
        };
        let mut rules = Rules::new(nodes.votes(), drift);
        rules.node_timeout = self.node_timeout.unwrap_or_else(|| nodes.default_node_timeout());
        rules.min_validity = self.min_validity;
        (rules.retry_base, rules.retry_cap) = self.retry;
        rules.hold_max = self.max_hold;
        rules.waiter_lease = self.check_waiter_lease(rules.node_timeout)?.filter(|_| self.queue);
        self.check_times(&rules)?;
        self.check_names()?;
        let connecting = self.check_connections(&nodes, rules.node_timeout)?;
        rules.connect_timeout = connecting.timeout;
        let fencing_expiry = self.check_fencing_expiry()?;
        let listener = self.listener();
        Ok(Settings {
            nodes,
            rules: Arc::new(rules),
            max_ttl: self.max_ttl,
            key_prefix: self.key_prefix,
            client_name: self.client_name,
            wait_for_all: self.wait_for_all,
            io_thread: self.io_thread,
            connecting,
            restart_guard: self.restart_guard,
            handoff_limit: self.handoff_limit,
            fencing_expiry,
            listener,
        })
    }

    fn check_times(&self, rules: &Rules) -> Result<(), ConfigError> {
        let millisecond = Duration::from_millis(1);
        if !(millisecond..=NODE_TIMEOUT_MAX).contains(&rules.node_timeout) {
            let reason = format!("{:?} is not between 1 ms and 60 s", rules.node_timeout);
            return Err(refused("node_timeout", reason));
        }
        let (base, cap) = self.retry;
        if base < RETRY_BASE_MIN || cap < base {
            let reason = format!("{base:?} to {cap:?}: at least 100 µs, and the cap not below it");
            return Err(refused("retry", reason));
        }
        if self.max_ttl > TTL_LIMIT {
            return Err(refused("max_ttl", format!("{:?} is more than 365 days", self.max_ttl)));
        }
        let shortest = rules.drift.shortest_ttl(self.min_validity).map(Ttl::as_duration);
        if shortest.is_none_or(|shortest| self.max_ttl < shortest) {
            let (most, least) = (self.max_ttl, self.min_validity);
            let (name, reason) = if least.is_zero() {
                ("max_ttl", format!("{most:?} leaves no validity"))
            } else {
                ("min_validity", format!("{least:?} is more than a ttl of {most:?} leaves"))
            };
            return Err(refused(name, reason));
        }
        Ok(())
    }

    fn check_waiter_lease(&self, node_timeout: Duration) -> Result<Option<Ttl>, ConfigError> {
        let default = WAITER_LEASE.max(node_timeout.saturating_mul(ROUNDS_PER_LEASE));
        let lease = self.waiter_lease.unwrap_or(default);
        let least = WAITER_LEASE_MIN.max(node_timeout.saturating_mul(ROUNDS_PER_LEASE_MIN));
        let is_valid = lease >= least && lease <= WAITER_LEASE_MAX.max(default);
        if !is_valid {
            let most = WAITER_LEASE_MAX.max(default);
            let reason = format!("{lease:?} is not between {least:?} and {most:?}");
            return Err(refused("waiter_lease", reason));
        }
        Ok(Ttl::from_duration(lease))
    }

    fn check_fencing_expiry(&self) -> Result<Ttl, ConfigError> {
        let expiry = self.fencing_expiry.unwrap_or(FENCING_EXPIRY.max(self.max_ttl));
        let ttl = Ttl::from_duration(expiry).filter(|_| expiry >= self.max_ttl);
        ttl.ok_or_else(|| {
            let shortest = self.max_ttl;
            let reason = format!("{expiry:?} is not between max_ttl ({shortest:?}) and 365 days");
            refused("fencing_expiry", reason)
        })
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        if let Some(name) = &self.client_name {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                let reason = format!("{name:?} is not printable ASCII without spaces");
                return Err(refused("client_name", reason));
            }
        }
        let (length, most) = (self.key_prefix.len(), KEY_PREFIX_MAX);
        if length > most {
            return Err(refused("key_prefix", format!("{length} bytes, more than {most}")));
        }
        if is_reserved(&self.key_prefix) {
            let reason = "it contains \":redlatch:\", as keys of queues and counters do";
            return Err(refused("key_prefix", reason));
        }
        Ok(())
    }
}

/// A setting has a value that it cannot have.
fn refused(name: &'static str, reason: impl Into<String>) -> ConfigError {
    ConfigError::Setting { name, reason: reason.into() }
}

/// The longest prefix: about half of the longest key.
const KEY_PREFIX_MAX: usize = 32 * 1024;

/// Could this key belong to another lock, as its fencing counter, its queue, or a waiter's lease or
/// holders? Their keys are the lock's key with `:redlatch:` and a suffix behind it.
pub(crate) fn is_reserved(key: &[u8]) -> bool {
    const INFIX: &[u8] = b":redlatch:";
    key.windows(INFIX.len()).any(|part| part == INFIX)
}

impl Builder {
    /// The prefix of every lock's key, before the resource's name. By default it is empty, so that
    /// the lock also excludes other programs that lock the same name with `SET name value NX PX
    /// ttl`. At most 32 KiB, without `:redlatch:` in it: such keys belong to other locks.
    ///
    /// On ZooKeeper the prefix and the name are one element of a path, with what servers refuse
    /// there percent-encoded.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().to_vec();
        self
    }

    /// Whether a call that waits for a lock stands in a queue that the nodes keep. By default it
    /// does: clients are served in the order in which they began to wait, and a release wakes the
    /// next one.
    ///
    /// Without the queue, a waiting call asks the nodes again after random
    /// [pauses](Self::retry), and whoever asks first after a release has the lock. Clients with and
    /// without the queue exclude each other; while any client waits in the queue, those without it
    /// do not get the lock. A call that does not wait never queues, whatever this says. The same
    /// happens on a single node that lacks what the queue needs; see
    /// [`QueueSupport`](crate::QueueSupport). Without it, [readers](crate::LockRequest::shared) can
    /// keep a writer out for as long as they overlap.
    ///
    /// On ZooKeeper every call that waits stands in the queue, and `false` is an error.
    pub fn queue(mut self, queue: bool) -> Self {
        self.queue = queue;
        self
    }

    /// How long a waiter in front of the nodes' queue may be silent, before its entry expires:
    /// 100 ms to 60 s, and at least two [`node_timeout`](Self::node_timeout). By default 1.5 s, or
    /// four times `node_timeout` if that is more.
    ///
    /// It is what up to sixteen dead waiters in a row cost the others in all, if the nodes do not
    /// hear of their death, because a machine was frozen for instance; more of them cost as much
    /// again for every eight, up to ten times. A waiter renews its place after two thirds of this
    /// time, so by default once a second; from the ninth place on less often. A shorter time costs
    /// more commands. It concerns the entries of this client only.
    ///
    /// On ZooKeeper it is an error: a waiter keeps its place for as long as its
    /// [session](Self#method.session_timeout) lives.
    pub fn waiter_lease(mut self, lease: Duration) -> Self {
        self.waiter_lease = Some(lease);
        self
    }

    /// How often in a row, and for how long, a release may hand a lock to the next waiter of this
    /// client, without the lock being free in between: by default 1000 times and 1 s.
    ///
    /// Threads of one client that want the same lock wait in a FIFO queue, and a release hands it
    /// to the next waiter in one round over the nodes. That is fast, and keeps other processes out:
    /// when either limit is reached, the lock is released, and the next waiter pauses for up to 20
    /// ms before it asks the nodes, so that other processes can acquire the lock first. The time
    /// counts from when the nodes granted the lock. With a count of zero there is no handoff, and
    /// every waiter pauses. While another client waits in the nodes' [queue](Self::queue), the
    /// time is limited to 10 ms. On ZooKeeper it is always limited so, since others may wait, and a
    /// lock with a fencing token is not handed on: each grant needs a larger one.
    pub fn handoff_limit(mut self, count: u32, time: Duration) -> Self {
        self.handoff_limit = HandoffLimit { count, time };
        self
    }
}
