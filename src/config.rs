//! Settings: checked once, when the client is built, and right from then on.

mod check;
mod nodes;
mod threads;

use crate::engine::{Rules, Ttl};
use crate::event::{Event, Listener};
use crate::node_url::NodeUrl;
use crate::wait_queue::HandoffLimit;
use nodes::NodeSource;
use std::sync::Arc;
use std::time::Duration;

/// The longest key, prefix included: 64 KiB. A key is the name of something, and bytes that wait
/// for a silent node take memory.
pub(crate) const KEY_MAX: usize = 64 * 1024;

/// Collects the settings of a [`LockClient`](crate::LockClient).
///
/// Only the nodes must be named; each other setting has a default, given with its reason.
///
/// ```
/// # use redlatch::{ConfigError, LockClient};
/// # use std::time::Duration;
/// let client = LockClient::builder()
///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
///     .key_prefix("billing:")
///     .node_timeout(Duration::from_millis(20))
///     .build()?;
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing before `build`"]
pub struct Builder {
    nodes: Vec<NodeSource>,
    node_timeout: Duration,
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
    fencing_expiry: Option<Duration>,
    listener: Option<Listener>,
}

/// Settings that have been checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) urls: Vec<NodeUrl>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) max_ttl: Duration,
    pub(crate) key_prefix: Vec<u8>,
    pub(crate) client_name: Option<String>,
    pub(crate) wait_for_all: bool,
    pub(crate) io_thread: bool,
    pub(crate) restart_guard: bool,
    pub(crate) handoff_limit: HandoffLimit,
    pub(crate) fencing_expiry: Ttl,
    pub(crate) listener: Option<Listener>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            node_timeout: Duration::from_millis(50),
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
            handoff_limit: HandoffLimit { count: 1_000, time: Duration::from_secs(1) },
            fencing_expiry: None,
            listener: None,
        }
    }

    /// How long one round over all nodes may take, connecting included: 1 ms to 60 s, by default 50
    /// ms.
    ///
    /// A node that has not answered by then counts as unreachable for that round. It should be a
    /// small part of the ttl and several times the round trip to the farthest node; 50 ms suits
    /// nodes in one region, and is the upper end of what the Redlock description recommends for a
    /// ttl of 10 s.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = timeout;
        self
    }

    /// By what share of the ttl the clocks of this machine and of a node may run apart: 0 to 0.5,
    /// by default 0.01.
    ///
    /// One per cent is what the Redlock description and most implementations use. It is a hundred
    /// times the error of the quartz in a healthy machine, which leaves room for a clock that is
    /// being slewed.
    pub fn drift_factor(mut self, factor: f64) -> Self {
        self.drift_factor = factor;
        self
    }

    /// The least validity with which a lock is handed out, by default zero: any.
    ///
    /// A lock that is granted with less than this left is given back, and counts as not granted.
    /// Worth setting to the time that the work under the lock takes.
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.min_validity = least;
        self
    }

    /// The pauses between attempts: a random time below a ceiling that starts at `base` and doubles
    /// up to `cap`. `base` is at least 0.1 ms, and `cap` at least `base`; by default 1 ms and 100
    /// ms.
    ///
    /// If a round takes longer than `base`, its time is the first ceiling: asking again before the
    /// others' answers can be in is of no use. 100 ms bound how long a free lock stays untaken when
    /// many have waited long for it.
    pub fn retry(mut self, base: Duration, cap: Duration) -> Self {
        self.retry = (base, cap);
        self
    }

    /// Should an operation wait for the answers of all nodes, up to the node timeout, instead of
    /// going on when the majority has answered? By default it does not.
    ///
    /// The request goes to all nodes either way, so this makes no lock safer; it makes every
    /// operation as slow as the slowest node. It is of use to tests that look at all nodes
    /// afterwards.
    pub fn wait_for_all(mut self, wait: bool) -> Self {
        self.wait_for_all = wait;
        self
    }

    /// What stands before the resource's name in its key, by default nothing, so that other
    /// programs which lock the same name with `SET name value NX PX ttl` exclude ours. At most 32
    /// KiB.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().to_vec();
        self
    }

    /// What `CLIENT LIST` calls our connections: printable ASCII, no spaces, by default `redlatch`.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// The longest ttl that a lock may be given: from what drift and the least validity leave
    /// anything of (3 ms by default) to 365 days, by default 60 s.
    ///
    /// It catches a ttl in the wrong unit, and bounds how long a resource is blocked by a client
    /// that died holding it. It is also for how long a restarted node's grants do not count (see
    /// [`restart_guard`](Self::restart_guard)): the longest ttl plus little is a good value, and
    /// all clients that share locks must use the same. One with a shorter `max_ttl` would trust a
    /// restarted node again while another's longer lock, which the node has forgotten, still holds.
    pub fn max_ttl(mut self, longest: Duration) -> Self {
        self.max_ttl = longest;
        self
    }

    /// For how long extensions may keep a lock, counted from when it was asked for: one that would
    /// let it live for longer is refused. By default there is no such limit, and zero refuses all.
    /// Locks that are [kept alive](crate::LockRequest::keep_alive) end then, and after 24 hours if
    /// nothing else is said.
    ///
    /// Extensions without end let a client that hangs keep a resource for ever, which the Redlock
    /// description warns of: set this to what the work can possibly take.
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.max_hold = Some(longest);
        self
    }

    /// Should the grants of a node that was started less than [`max_ttl`](Self::max_ttl) ago not
    /// count? By default they do not.
    ///
    /// A node that restarts without its data has forgotten the locks it granted, and would grant
    /// them again. One that has been up for longer than any ttl has forgotten nothing that still
    /// holds; this is the "delayed restart" of the Redlock description, done by the client. On by
    /// default, because Redis as it comes forgets its last minutes when it crashes: without it, two
    /// nodes of three that restart together can give one lock to two holders.
    ///
    /// A node in quarantine still releases, extends what it holds, and refuses what others hold.
    /// Only that it granted a lock does not count, and is reported as
    /// [`NodeError::Quarantined`](crate::NodeError::Quarantined) with the time that is left;
    /// [`NodeStatus::quarantine`](crate::NodeStatus::quarantine) tells it beforehand. One node that
    /// restarts is like one that is down. When a majority was started within `max_ttl`, nobody can
    /// take a lock until that is over: [`try_lock`](crate::LockClient::try_lock) says
    /// [`NoQuorum`](crate::NoQuorum) at once, [`lock`](crate::LockClient::lock) waits without
    /// asking before. Whoever restarts nodes on purpose does it one by one, `max_ttl` apart.
    ///
    /// How long a node has been up is taken from `INFO` (`uptime_in_seconds`, and a changed
    /// `run_id`) whenever it is connected to. Without the right to `INFO`, a node counts as started
    /// when the connection was made, so that every new connection begins a quarantine. It cannot
    /// help against data that is lost without a restart, by `FLUSHALL` or by eviction.
    ///
    /// Turn it off for nodes that write every change to disk before they answer (`appendonly yes`
    /// with `appendfsync always`): they come back with what they granted. Or in tests, where nodes
    /// have just been started.
    pub fn restart_guard(mut self, guard: bool) -> Self {
        self.restart_guard = guard;
        self
    }

    /// How long the counters live from which [fencing tokens](crate::LockRequest::fenced) come,
    /// counted from the last grant, and not from extensions: from [`max_ttl`](Self::max_ttl) to 365
    /// days, by default 7 days, or `max_ttl` if that is more.
    ///
    /// A counter that has expired begins again at the wall clock of the client that asks next,
    /// which is above all that were counted before if the clients' wall clocks agree. The longer
    /// counters live, the less depends on that; the shorter, the fewer keys are kept for resources
    /// that nobody locks any more.
    pub fn fencing_expiry(mut self, expiry: Duration) -> Self {
        self.fencing_expiry = Some(expiry);
        self
    }

    /// Calls `tell` with each [`Event`]: for counters, histograms and logs. By default nobody
    /// listens, and then events cost nothing. Of several callbacks the last one counts.
    ///
    /// It is called in the thread whose call caused the event, before that call returns, so it
    /// should not take long. Changes of nodes are noticed while any thread talks to them, and told
    /// by a thread that is done with that. What happens to locks that are
    /// [kept alive](crate::LockRequest::keep_alive), and what renewing them finds out about nodes,
    /// is told when it happens, in its order, by a thread that does nothing but tell. It calls what
    /// was given to [`on_lost`](crate::LockGuard::on_lost) as well, one after another; while it is
    /// kept from that, up to 16,384 renewals wait to be told, and what comes then is left out, but
    /// no loss. Without such locks, nothing is told while nobody calls.
    ///
    /// It may use this client, with three things to know. What it does is not told: there are no
    /// events of events. It does not stand in line with the other threads of this client, but asks
    /// the nodes. And while it is told of a lock that was acquired, that lock is taken. A callback
    /// that owns a clone of its own client keeps it from ever being dropped; let it have a
    /// [`Weak`](std::sync::Weak) reference.
    ///
    /// If it panics, so does the call, and a lock that it had just taken is given back; except that
    /// dropping a guard never panics, and that what belongs to no call goes on.
    pub fn on_event(mut self, tell: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Listener::new(Arc::new(tell)));
        self
    }
}

/// URLs may contain passwords, so they are not shown.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}
