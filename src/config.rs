//! Settings: collected by a builder, checked once when the client is built, and valid from then on.

#[cfg(feature = "zookeeper")]
mod ensemble;
#[cfg(feature = "serde")]
mod file;
mod nodes;
mod owner;
mod settings;
#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "zookeeper")]
pub(crate) use ensemble::EnsembleSettings;
pub use nodes::NodeUrls;
pub(crate) use nodes::{NodeSettings, RedisNode};
pub(crate) use owner::{OWNER_MAX, this_process};
pub use settings::ClientSettings;
pub(crate) use settings::{Settings, is_reserved};
#[cfg(feature = "tls")]
pub use tls::{ClientCertificate, TlsSettings};

#[cfg(any(feature = "tracing", feature = "metrics"))]
use crate::bridge;
use crate::error::ConfigError;
use crate::event::{Event, EventCallback, Listener};
use crate::wait_queue::HandoffLimit;
use std::sync::Arc;
use std::time::Duration;

/// Collects the settings of a [`LockClient`](crate::LockClient).
///
/// Only the nodes must be set. Every other setting has a default, documented with its reason. [What
/// they mean on ZooKeeper](crate::guide::zookeeper#what-settings-mean-there) is a table of its own.
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
    settings: ClientSettings,
    on_event: Option<Arc<EventCallback>>,
    #[cfg(feature = "tracing")]
    tracing: bool,
    #[cfg(feature = "metrics")]
    metrics: bool,
}

impl Builder {
    pub(crate) fn new() -> Self {
        ClientSettings::default().into()
    }

    /// For how long a round waits for a node if a majority of the nodes has answered: 1 ms to 60 s,
    /// by default 50 ms. The first rounds of a client may take [longer](Self::connect_timeout),
    /// until a majority of the nodes has answered.
    ///
    /// A node that has not answered by then counts as unreachable for that round. If no majority
    /// has answered because too many are silent, the round waits for them for nine times
    /// this long without a byte, shortly before their connections are given up, or until the
    /// caller's own deadline:
    /// what is loaded, a disk or a processor, loads all nodes at once. `node_timeout` should be a
    /// small part of the ttl and several times the round trip to the farthest node; 50 ms suits
    /// nodes in one region, and is the upper end of the range that the Redlock description
    /// recommends for a ttl of 10 s.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.settings.node_timeout = Some(timeout);
        self
    }

    /// By what part of the ttl the clocks of this machine and of a node may run apart: 0 to 0.5, by
    /// default 0.01, as in the Redlock description and most implementations. That is a hundred
    /// times the error of the quartz in a healthy machine, which leaves room for a clock that is
    /// being slewed.
    pub fn drift_factor(mut self, factor: f64) -> Self {
        self.settings.drift_factor = Some(factor);
        self
    }

    /// The least validity with which a lock is granted, by default zero: any.
    ///
    /// If less than this is left when a majority has granted the lock, it is released again and
    /// counts as not granted. A good value is the time that the work under the lock takes.
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.settings.min_validity = Some(least);
        self
    }

    /// The pauses between attempts: a random time below a ceiling that starts at `base` and doubles
    /// up to `cap`. `base` is at least 0.1 ms, and `cap` at least `base`; by default 1 ms and 100
    /// ms.
    ///
    /// They are for calls without a place in the nodes' [queue](Self::queue), for failures of
    /// nodes, and for nodes that do not tell a waiter that its turn has come. If a round takes
    /// longer than `base`, its time is the first ceiling: asking again before the answers of
    /// competing attempts can be in is of no use. 100 ms limit how long a free lock stays untaken
    /// when many clients have waited long for it.
    pub fn retry(mut self, base: Duration, cap: Duration) -> Self {
        self.settings.retry = Some((base, cap));
        self
    }

    /// Whether an operation waits for the answers of all nodes, up to the node timeout, instead of
    /// going on when a majority has answered. By default it does not. The request goes to all nodes
    /// either way, so this makes no lock safer, and every operation as slow as the slowest node. It
    /// is of use to tests that look at all nodes afterwards.
    pub fn wait_for_all(mut self, wait: bool) -> Self {
        self.settings.wait_for_all = Some(wait);
        self
    }

    /// The longest ttl that a lock may have, by default 60 s. It is at most 365 days, and at least
    /// a ttl that leaves some validity after drift and the least validity (3 ms by default).
    ///
    /// It catches a ttl in the wrong unit, limits how long a resource is blocked by a client that
    /// died holding it, and is how long the grants of a restarted node do [not
    /// count](Self::restart_guard). A good value is little more than the longest ttl in use. All
    /// clients that share locks must set the same: one with a shorter `max_ttl` would trust a
    /// restarted node while a longer lock of another client, which the node has forgotten, is still
    /// held.
    pub fn max_ttl(mut self, longest: Duration) -> Self {
        self.settings.max_ttl = Some(longest);
        self
    }

    /// How long extensions may keep a lock, counted from when it was requested: an extension beyond
    /// that is refused, and so is a longer ttl. By default there is no limit, but 24 hours for
    /// locks that are [kept alive](crate::LockRequest::keep_alive); zero refuses every extension,
    /// and no ttl. Without a limit, a client that hangs keeps a resource for ever, which the
    /// Redlock description warns of: set this to the longest time that the work can take.
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.settings.max_hold = Some(longest);
        self
    }

    /// Whether the grants of a node that was started less than [`max_ttl`](Self::max_ttl) ago do
    /// not count. By default they do not count.
    ///
    /// A node that restarts without its data has forgotten the locks it granted, and would grant
    /// them again; one that has been up for longer than any ttl has forgotten nothing that is still
    /// held. This is on by default because Redis with default settings can lose its last minutes of
    /// writes in a crash: without it, two nodes of three that restart together can grant one lock
    /// to two holders.
    ///
    /// A node in quarantine still releases locks, extends those it has, and refuses a lock that
    /// another client holds. Only its grants do not count, and are reported as
    /// [`NodeError::Quarantined`](crate::NodeError::Quarantined) with the time that is left. One
    /// node that restarts is like one that is down. If a majority was started within `max_ttl`, no
    /// lock can be acquired until that is over. For planned restarts, restart the nodes one by one,
    /// `max_ttl` apart.
    ///
    /// It is off for nodes that write every change to disk before they answer (`appendonly yes`
    /// with `appendfsync always`), which restart with the locks they granted, and for tests, where
    /// nodes have just been started. Without the right to `INFO`, which tells how long a node has
    /// been up, every new connection begins a quarantine. Off is refused for [replicated
    /// groups](crate::guide::groups). [The
    /// guarantees](crate::guide::guarantees#the-restart-guard) have the details, and what it does
    /// not notice.
    pub fn restart_guard(mut self, guard: bool) -> Self {
        self.settings.restart_guard = Some(guard);
        self
    }

    /// How long a master of a [replicated group](crate::guide::groups) that was replaced may still
    /// carry out commands, counted from the first write of its successor. By default 15 s, which is
    /// what the servers of a Redis Cluster take with their default settings. All clients that share
    /// locks must set the same. A new lock waits for [`max_ttl`](Self::max_ttl) and this after a
    /// failover. It has no effect on nodes that are single servers, and on groups with `replicas=`
    /// in their URL: there, no vote of a replaced master counts.
    pub fn failover_bound(mut self, bound: Duration) -> Self {
        self.settings.failover_bound = Some(bound);
        self
    }

    /// How far apart the clocks of two servers of a [replicated group](crate::guide::groups) are at
    /// most: 0 to 60 s, by default 1 s. All clients that share locks must set the same. It has no
    /// effect on nodes that are single servers.
    ///
    /// From Redis 7 on, and in Valkey, a master tells its replicas the time at which a key ends,
    /// and not how long it lasts. If one of them is promoted whose clock is ahead, the key ends too
    /// soon by that, and another client could get a lock that is held. So on a group each key lives
    /// longer than its lock by this time: a lock whose holder is gone is free that much later, and
    /// one that is released is free at once. Older servers tell how long a key lasts, and need no
    /// more than 0.
    ///
    /// The default is much more than NTP leaves between two servers (some milliseconds; leap
    /// seconds and a clock that is slewed, less than a second), and little beside a failover.
    /// `redlatch doctor` compares the clocks.
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.settings.clock_skew = Some(skew);
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
    pub fn fencing_expiry(mut self, expiry: Duration) -> Self {
        self.settings.fencing_expiry = Some(expiry);
        self
    }

    /// The prefix of every lock's key, before the resource's name. By default it is empty, so that
    /// the lock also excludes other programs that lock the same name with `SET name value NX PX
    /// ttl`. At most 32 KiB, without `:redlatch:` in it: such keys belong to other locks.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.settings.key_prefix = Some(prefix.as_ref().to_vec());
        self
    }

    /// The [owner](crate::LockRequest::owner) of requests that name none, for
    /// [`inspect`](crate::LockClient::inspect) and for people who look at the keys: at most 256
    /// bytes, none by default. A plain lock without an owner is the cheapest. The candidates of an
    /// [election](crate::LockClient::election) have it as their name.
    ///
    /// The command, Python and C set [this process](Self::owned_by_this_process).
    pub fn owner(mut self, label: impl AsRef<[u8]>) -> Self {
        self.settings.owner = Some(label.as_ref().to_vec());
        self
    }

    /// Sets an [owner](Self::owner) that names this host and process: `host:pid`. Whoever may read
    /// the nodes' keys reads the host's name there. It is that of the process that calls this: a
    /// forked child calls it again, for the client that it builds.
    ///
    /// The host is what Linux says, and elsewhere the variable `HOSTNAME` or `COMPUTERNAME`, or
    /// `unknown`.
    pub fn owned_by_this_process(self) -> Self {
        self.owner(this_process())
    }

    /// Whether a call that waits for a lock stands in a [queue that the nodes
    /// keep](crate::guide::waiting#the-nodes-queue). By default it does: clients are served in
    /// the order in which they began to wait, and a release wakes the next one.
    ///
    /// Without it, a waiting call asks the nodes again after random [pauses](Self::retry), whoever
    /// asks first after a release has the lock, and [readers](crate::LockRequest::shared) can keep
    /// a writer out for as long as they overlap. So it is on a single node that lacks [what the
    /// queue needs](crate::QueueSupport). Clients with and without the queue exclude each other;
    /// while any client waits in it, those without do not get the lock.
    pub fn queue(mut self, queue: bool) -> Self {
        self.settings.queue = Some(queue);
        self
    }

    /// How long a waiter in front of the nodes' queue may be silent, before its entry expires: 100
    /// ms to 60 s, and at least two [`node_timeout`](Self::node_timeout). By default 1.5 s, or four
    /// times `node_timeout` if that is more.
    ///
    /// It is what up to sixteen dead waiters in a row cost the others in all, if the nodes do not
    /// hear of their death, because a machine was frozen for instance; more of them cost as much
    /// again for every eight, up to ten times. A waiter renews its place after two thirds of this
    /// time, and from the ninth place on less often; so does the first of a queue if this client
    /// has 500 waiters or more. A shorter time costs more commands. It concerns the entries of this
    /// client only.
    pub fn waiter_lease(mut self, lease: Duration) -> Self {
        self.settings.waiter_lease = Some(lease);
        self
    }

    /// How often in a row, and for how long, a release may hand a lock to the next waiter of this
    /// client, without the lock being free in between: by default 1000 times and 1 s, counted from
    /// when the nodes granted it. With a count of zero there is no handoff.
    ///
    /// Threads of one client that want the same lock wait in a FIFO queue, and a release hands it
    /// to the next one in one round over the nodes. That is fast, and keeps other processes out:
    /// when either limit is reached, the lock is released, and the next waiter pauses for up to 20
    /// ms before it asks the nodes. While another client waits in the nodes' [queue](Self::queue),
    /// the time is limited to 10 ms.
    pub fn handoff_limit(mut self, count: u32, time: Duration) -> Self {
        self.settings.handoff_limit = Some(HandoffLimit { count, time });
        self
    }

    /// How long one attempt to connect to a node may take, from looking up its name to the answer
    /// to the greeting: 1 ms to 600 s. By default 2 s, or ten times
    /// [`node_timeout`](Self::node_timeout) if that is more: enough for four round trips around the
    /// world, of 0.25 s each, and for a lost packet, which the operating system sends again after
    /// one second. A longer time only delays the next attempt at a node that is down.
    ///
    /// So long, and not for `node_timeout`, a round of a new client waits, such as the first of
    /// every process, until a majority of the nodes has answered for the first time; the caller's
    /// own deadline ends it sooner. With the answers of a majority, it waits for no other node any
    /// longer than that took. Once a node has answered, a connection to it that was lost is waited
    /// for for `node_timeout`, or twice as long as the last one took, if that is more. A node that
    /// could not be connected to in this time is awaited for `node_timeout` from then on, until
    /// it answers.
    ///
    /// A connection that is not finished when a round ends is kept, and later calls go on with it;
    /// until then the node counts as one that does not answer. A time that passed while no call was
    /// in progress does not count if the connection got further meanwhile.
    ///
    /// If a name has several addresses, they share this time: IPv6 and IPv4 in turn (RFC 8305), one
    /// after another, each for the same part of it, or until it is refused. The one whose node
    /// answered last goes first the next time.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = Some(timeout);
        self
    }

    /// How long a TCP connection is idle before the operating system asks the node whether it is
    /// still there: `None` for never, 1 s to 9 h in whole seconds, by default 60 s. (On OpenBSD and
    /// other systems that have one time for all connections, that time is used.)
    ///
    /// Firewalls, load balancers and NAT forget idle connections, the common ones after four
    /// minutes or more, and then drop their packets without a word. A probe each minute keeps the
    /// connection known to them. If the node is gone, the operating system notices after three
    /// unanswered probes, a quarter of this time apart, and the next call connects anew within its
    /// round. On Linux and Android, bytes and probes that a node does not acknowledge for 60 s end
    /// the connection too.
    pub fn tcp_keepalive(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.settings.keepalive = Some(idle.into());
        self
    }

    /// The name of our connections in `CLIENT LIST`: printable ASCII, no spaces, by default
    /// `redlatch`.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.settings.client_name = Some(name.into());
        self
    }

    /// Whether the connections have a thread of their own. By default they do not: a caller that
    /// needs an answer reads and writes for all threads that wait meanwhile (Leader/Followers),
    /// which saves two thread switches per operation.
    ///
    /// The price is that callers depend on each other. If the leader is stopped in the middle of
    /// its work, by a slow signal handler or by a scheduler that prefers other threads, all callers
    /// wait for it, beyond their deadlines, and locks that are kept alive are not extended. With
    /// this setting, a caller that is stopped delays no other: it is for programs with signal
    /// handlers that do more than set a flag, and for threads of different priorities. [The
    /// guarantees](crate::guide::guarantees#stopped-threads) compare the two.
    ///
    /// The thread starts with the client, sleeps while there is nothing to do, ends with the last
    /// clone, and does not keep the process alive. If it is stopped itself, a caller gives up 20 ms
    /// after its own deadline, with [`Phase::Queued`](crate::error::Phase::Queued) in the report of
    /// each node, and what it left is sent when the thread goes on. So that this can be told, a
    /// round ends after [`node_timeout`](Self::node_timeout) also if too many nodes are silent.
    pub fn io_thread(mut self, thread: bool) -> Self {
        self.settings.io_thread = Some(thread);
        self
    }
}

/// What is not in a file: who is told of events.
impl Builder {
    /// Calls `callback` with each [`Event`]: for counters, histograms and logs. By default there is
    /// no callback, and then events cost nothing. If it is set more than once, the last callback
    /// counts. [`tracing`](Self::tracing) and [`metrics`](Self::metrics) go with it, and come
    /// first.
    ///
    /// It is called in the thread whose call caused the event, before that call returns, so it
    /// should not take long. Changes of nodes are noticed by any thread that reads from them, and
    /// reported by a thread that is done with that. What belongs to no call, such as an automatic
    /// extension, is reported in its order by the thread that calls
    /// [`on_lost`](crate::LockGuard::on_lost); while a callback blocks that, up to 16,384 automatic
    /// extensions wait to be reported, and further ones are left out, but no loss is. Without locks
    /// that are kept alive, nothing is reported while no call is made.
    ///
    /// The callback may use this client. Its own calls emit no events, and do not wait in the
    /// client's wait queues. For [`Event::Acquired`], the lock is held meanwhile. For
    /// [`Event::Queued`], the call does not renew its place in the nodes' [queue](Self::queue), so
    /// a callback that takes longer than the [`waiter_lease`](Self::waiter_lease), because it waits
    /// for the same lock for instance, costs the call its place. It must not wait for another
    /// thread that waits for the lock in this process, and if it owns a clone of its own client,
    /// that is never dropped: give it a [`Weak`](std::sync::Weak) reference.
    ///
    /// If it panics, so does the call, and a lock that the call had just acquired is released;
    /// except that dropping a guard never panics, and that threads of the client go on.
    pub fn on_event(mut self, callback: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(callback));
        self
    }

    /// Reports each [`Event`] to the crate [`tracing`](https://docs.rs/tracing), in the caller's
    /// span, with a level, fields and a target for which subscribers can filter:
    /// [`guide::monitoring`](crate::guide::monitoring#tracing) lists them. By default it is off. No
    /// event has a token or a password in it; the resources are shown.
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub fn tracing(mut self) -> Self {
        self.tracing = true;
        self
    }

    /// Counts and measures each [`Event`] with the crate [`metrics`](https://docs.rs/metrics), for
    /// whichever recorder the program installs:
    /// [`guide::monitoring`](crate::guide::monitoring#metrics) lists the names. By default it is
    /// off. Install the recorder before [`build`](Self::build), which describes the metrics to it.
    ///
    /// Resources are not labels, because there may be any number of them; nodes are. Clients of one
    /// process share the metrics.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// The bridges, and then the callback, which may panic.
    fn listener(&self) -> Option<Listener> {
        let mut callbacks: Vec<Arc<EventCallback>> = Vec::new();
        #[cfg(feature = "tracing")]
        if self.tracing {
            callbacks.push(Arc::new(bridge::trace));
        }
        #[cfg(feature = "metrics")]
        if self.metrics {
            bridge::describe_metrics();
            callbacks.push(Arc::new(bridge::measure));
        }
        callbacks.extend(self.on_event.clone());
        match callbacks.len() {
            0 | 1 => callbacks.pop().map(Listener::new),
            _ => Some(Listener::new(Arc::new(move |event| {
                callbacks.iter().for_each(|callback| callback(event));
            }))),
        }
    }

    pub(crate) fn check(self) -> Result<Settings, ConfigError> {
        let mut settings = self.settings.check()?;
        settings.listener = self.listener();
        Ok(settings)
    }
}

impl From<ClientSettings> for Builder {
    fn from(settings: ClientSettings) -> Self {
        Self {
            settings,
            on_event: None,
            #[cfg(feature = "tracing")]
            tracing: false,
            #[cfg(feature = "metrics")]
            metrics: false,
        }
    }
}

/// URLs may contain passwords, so they are not shown.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}
