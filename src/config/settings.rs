//! The settings as plain values, and what a client makes of them once they are checked.

#[cfg(doc)]
use super::Builder;
#[cfg(feature = "serde")]
use super::file;
use super::nodes::NodeSettings;
use super::owner::OWNER_MAX;
#[cfg(feature = "tls")]
use super::tls::TlsSettings;
use crate::engine::{Drift, Rules, TTL_LIMIT, Ttl, WAITER_LEASE};
use crate::error::ConfigError;
use crate::event::Listener;
use crate::name::Name;
use crate::net::ConnectOptions;
use crate::wait_queue::HandoffLimit;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// The settings of a client as plain values, such as those in a service's [configuration
/// file](crate::guide::settings#in-a-configuration-file): with the feature `serde`, of any format
/// that serde reads. It becomes a [`Builder`], whose method of a field's name says what it means.
///
/// What is not there has its default. What a file cannot have, such as
/// [`on_event`](Builder::on_event), is set on the builder. In a file, a duration is a text with
/// units, such as `"500ms"`, `"10s"` or `"1h 30m"`: a number alone does not say what it counts.
/// Values are checked by [`build`](Builder::build).
///
/// An unknown field is an error, and no error or `Debug` of it shows a URL. An error of the crate
/// `toml` shows the line that is wrong anyway; its `message()` does not.
#[derive(Clone, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
#[non_exhaustive]
pub struct ClientSettings {
    /// The URLs of [`Builder::nodes`]: in a file a list, or a text if there is one.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::urls"))]
    pub nodes: Vec<String>,
    /// Variables of [`Builder::nodes_from_env`]: in a file the name of one, also for passwords.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::name"))]
    pub nodes_from_env: Vec<String>,
    /// [`Builder::node_timeout`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub node_timeout: Option<Duration>,
    /// [`Builder::connect_timeout`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub connect_timeout: Option<Duration>,
    /// [`Builder::session_timeout`].
    #[cfg(feature = "zookeeper")]
    #[cfg_attr(docsrs, doc(cfg(feature = "zookeeper")))]
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub session_timeout: Option<Duration>,
    /// [`Builder::max_ttl`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub max_ttl: Option<Duration>,
    /// [`Builder::failover_bound`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub failover_bound: Option<Duration>,
    /// [`Builder::clock_skew`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub clock_skew: Option<Duration>,
    /// [`Builder::max_hold`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub max_hold: Option<Duration>,
    /// [`Builder::min_validity`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub min_validity: Option<Duration>,
    /// [`Builder::waiter_lease`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub waiter_lease: Option<Duration>,
    /// [`Builder::fencing_expiry`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::period"))]
    pub fencing_expiry: Option<Duration>,
    /// [`Builder::key_prefix`]: in a file a text.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::text"))]
    pub key_prefix: Option<Vec<u8>>,
    /// [`Builder::client_name`].
    pub client_name: Option<String>,
    /// [`Builder::owner`]: in a file a text.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::text"))]
    pub owner: Option<Vec<u8>>,
    /// [`Builder::restart_guard`].
    pub restart_guard: Option<bool>,
    /// [`Builder::wait_for_all`].
    pub wait_for_all: Option<bool>,
    /// [`Builder::io_thread`].
    pub io_thread: Option<bool>,
    /// [`Builder::queue`].
    pub queue: Option<bool>,
    /// [`Builder::drift_factor`].
    pub drift_factor: Option<f64>,
    /// [`Builder::tls`].
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    #[cfg_attr(feature = "serde", serde(deserialize_with = "file::or_default"))]
    pub tls: TlsSettings,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) retry: Option<(Duration, Duration)>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) handoff_limit: Option<HandoffLimit>,
    /// Outside, whether it is set.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) keepalive: Option<Option<Duration>>,
}

/// They are plain values, also where a ready configuration of rustls does not say so.
impl UnwindSafe for ClientSettings {}
impl RefUnwindSafe for ClientSettings {}

/// URLs may have passwords in them.
impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("nodes", &self.nodes.len())
            .field("key_prefix", &self.key_prefix.as_deref().map(Name::new))
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) nodes: NodeSettings,
    pub(crate) rules: Arc<Rules>,
    pub(crate) max_ttl: Duration,
    pub(crate) key_prefix: Vec<u8>,
    pub(crate) client_name: String,
    pub(crate) owner: Vec<u8>,
    pub(crate) wait_for_all: bool,
    pub(crate) io_thread: bool,
    pub(crate) connecting: ConnectOptions,
    pub(crate) restart_guard: bool,
    #[cfg(feature = "groups")]
    pub(crate) failover_bound: Option<Duration>,
    pub(crate) handoff_limit: HandoffLimit,
    pub(crate) fencing_expiry: Ttl,
    pub(crate) listener: Option<Listener>,
}

/// The longest ttl, and the pauses between attempts, unless they are set.
const MAX_TTL: Duration = Duration::from_secs(60);
const RETRY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// The shortest first pause between two attempts. Below it, retrying is a tight loop.
const RETRY_BASE_MIN: Duration = Duration::from_micros(100);

pub(super) const NODE_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// How far apart the clocks of a group's servers are at most, unless it is set: much more than NTP
/// leaves, and little beside the time of a failover. And the most that can be set, which is more
/// than any server is off that keeps its time.
const CLOCK_SKEW: Duration = Duration::from_secs(1);
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);

/// How long fencing counters live, unless locks may live for longer.
const FENCING_EXPIRY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The limits of the time for which a waiter may be silent.
const WAITER_LEASE_MIN: Duration = Duration::from_millis(100);
const WAITER_LEASE_MAX: Duration = Duration::from_secs(60);

/// How many rounds fit into that time by default, and at least: a waiter whose renewal takes a
/// whole round keeps its place.
const ROUNDS_PER_LEASE: u32 = 4;
const ROUNDS_PER_LEASE_MIN: u32 = 2;

/// The limits of the time for one attempt to connect.
const CONNECT_TIMEOUT_MIN: Duration = Duration::from_millis(1);
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// The least default of that time, and how many rounds fit into it otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ROUNDS: u32 = 10;

/// The part of an ensemble's session timeout that one attempt may take by default. When a silent
/// server is left, two sevenths of the session timeout remain: time for one attempt at another.
#[cfg(feature = "zookeeper")]
const ATTEMPTS_PER_SESSION: u32 = 5;

/// The idle time of a TCP connection, unless it is set, and its limits. The longest that Linux
/// takes is 32,767 s.
const KEEPALIVE: Duration = Duration::from_secs(60);
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);
const KEEPALIVE_MAX: Duration = Duration::from_secs(9 * 60 * 60);

impl ClientSettings {
    pub(super) fn check(&self) -> Result<Settings, ConfigError> {
        let nodes = self.check_nodes()?;
        if nodes.group().is_some() && self.restart_guard == Some(false) {
            let reason = "a group without it would give locks away at every failover";
            return Err(refused("restart_guard", reason));
        }
        if nodes.group().is_some() && self.failover_bound.is_some_and(|bound| bound.is_zero()) {
            return Err(refused(
                "failover_bound",
                "a replaced master does not stop at once",
            ));
        }
        let skew = self.clock_skew.unwrap_or(CLOCK_SKEW);
        if skew > CLOCK_SKEW_MAX {
            let reason = format!("{skew:?} is more than 60 s: set the servers' clocks");
            return Err(refused("clock_skew", reason));
        }
        let factor = self.drift_factor.unwrap_or(0.01);
        let Some(drift) = Drift::from_factor(factor) else {
            let reason = format!("{factor} is not between 0 and {}", Drift::FACTOR_MAX);
            return Err(refused("drift_factor", reason));
        };
        let mut rules = Rules::new(nodes.votes(), drift);
        rules.node_timeout = self
            .node_timeout
            .unwrap_or_else(|| nodes.default_node_timeout());
        if nodes.group().is_some() {
            rules.skew = skew;
        }
        rules.min_validity = self.min_validity.unwrap_or_default();
        (rules.retry_base, rules.retry_cap) = self.retry.unwrap_or(RETRY);
        rules.hold_max = self.max_hold;
        let lease = self.check_waiter_lease(rules.node_timeout)?;
        rules.waiter_lease = lease.filter(|_| self.queue.unwrap_or(true));
        let max_ttl = self.max_ttl.unwrap_or(MAX_TTL);
        check_times(&rules, max_ttl)?;
        let client_name = self
            .client_name
            .clone()
            .unwrap_or_else(|| "redlatch".to_owned());
        let key_prefix = self.key_prefix.clone().unwrap_or_default();
        let owner = self.owner.clone().unwrap_or_default();
        check_names(&client_name, &key_prefix, &owner)?;
        let connecting = self.check_connections(&nodes, rules.node_timeout)?;
        rules.connect_timeout = connecting.timeout;
        Ok(Settings {
            nodes,
            rules: Arc::new(rules),
            max_ttl,
            key_prefix,
            client_name,
            owner,
            wait_for_all: self.wait_for_all.unwrap_or(false),
            io_thread: self.io_thread.unwrap_or(false),
            connecting,
            restart_guard: self.restart_guard.unwrap_or(true),
            #[cfg(feature = "groups")]
            failover_bound: self.failover_bound,
            handoff_limit: self.handoff_limit.unwrap_or(HandoffLimit::DEFAULT),
            fencing_expiry: self.check_fencing_expiry(max_ttl)?,
            listener: None,
        })
    }

    fn check_waiter_lease(&self, node_timeout: Duration) -> Result<Option<Ttl>, ConfigError> {
        let default = WAITER_LEASE.max(node_timeout.saturating_mul(ROUNDS_PER_LEASE));
        let lease = self.waiter_lease.unwrap_or(default);
        let least = WAITER_LEASE_MIN.max(node_timeout.saturating_mul(ROUNDS_PER_LEASE_MIN));
        let most = WAITER_LEASE_MAX.max(default);
        if !(least..=most).contains(&lease) {
            let reason = format!("{lease:?} is not between {least:?} and {most:?}");
            return Err(refused("waiter_lease", reason));
        }
        Ok(Ttl::from_duration(lease))
    }

    fn check_fencing_expiry(&self, max_ttl: Duration) -> Result<Ttl, ConfigError> {
        let expiry = self.fencing_expiry.unwrap_or(FENCING_EXPIRY.max(max_ttl));
        let ttl = Ttl::from_duration(expiry).filter(|_| expiry >= max_ttl);
        ttl.ok_or_else(|| {
            let reason = format!("{expiry:?} is not between max_ttl ({max_ttl:?}) and 365 days");
            refused("fencing_expiry", reason)
        })
    }

    fn check_connections(
        &self,
        nodes: &NodeSettings,
        node_timeout: Duration,
    ) -> Result<ConnectOptions, ConfigError> {
        let default = match nodes {
            NodeSettings::Redis(_) => CONNECT_TIMEOUT.max(node_timeout.saturating_mul(ROUNDS)),
            #[cfg(feature = "zookeeper")]
            NodeSettings::ZooKeeper(ensemble) => {
                CONNECT_TIMEOUT.min(ensemble.session_timeout / ATTEMPTS_PER_SESSION)
            }
        };
        let timeout = self.connect_timeout.unwrap_or(default);
        if !(CONNECT_TIMEOUT_MIN..=CONNECT_TIMEOUT_MAX).contains(&timeout) {
            let reason = format!("{timeout:?} is not between 1 ms and 600 s");
            return Err(refused("connect_timeout", reason));
        }
        let keepalive = self.keepalive.unwrap_or(Some(KEEPALIVE));
        let limits = KEEPALIVE_MIN..=KEEPALIVE_MAX;
        if let Some(idle) = keepalive.filter(|idle| !limits.contains(idle)) {
            let reason = format!("{idle:?} is not between 1 s and 9 h");
            return Err(refused("tcp_keepalive", reason));
        }
        Ok(ConnectOptions { timeout, keepalive })
    }
}

fn check_times(rules: &Rules, max_ttl: Duration) -> Result<(), ConfigError> {
    let millisecond = Duration::from_millis(1);
    if !(millisecond..=NODE_TIMEOUT_MAX).contains(&rules.node_timeout) {
        let reason = format!("{:?} is not between 1 ms and 60 s", rules.node_timeout);
        return Err(refused("node_timeout", reason));
    }
    let base = rules.retry_base;
    let cap = rules.retry_cap;
    if base < RETRY_BASE_MIN || cap < base {
        let reason = format!("{base:?} to {cap:?}: at least 100 µs, and the cap not below it");
        return Err(refused("retry", reason));
    }
    if max_ttl > TTL_LIMIT {
        return Err(refused(
            "max_ttl",
            format!("{:?} is more than 365 days", max_ttl),
        ));
    }
    let shortest = rules
        .drift
        .shortest_ttl(rules.min_validity)
        .map(Ttl::as_duration);
    if shortest.is_none_or(|shortest| max_ttl < shortest) {
        let most = max_ttl;
        let least = rules.min_validity;
        let (name, reason) = if least.is_zero() {
            ("max_ttl", format!("{most:?} leaves no validity"))
        } else {
            (
                "min_validity",
                format!("{least:?} is more than a ttl of {most:?} leaves"),
            )
        };
        return Err(refused(name, reason));
    }
    Ok(())
}

fn check_names(name: &str, key_prefix: &[u8], owner: &[u8]) -> Result<(), ConfigError> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        let reason = format!("{name:?} is not printable ASCII without spaces");
        return Err(refused("client_name", reason));
    }
    let length = key_prefix.len();
    let most = KEY_PREFIX_MAX;
    if length > most {
        return Err(refused(
            "key_prefix",
            format!("{length} bytes, more than {most}"),
        ));
    }
    if is_reserved(key_prefix) {
        let reason = "it contains \":redlatch:\", as keys of queues and counters do";
        return Err(refused("key_prefix", reason));
    }
    let length = owner.len();
    let most = OWNER_MAX;
    if length > most {
        return Err(refused(
            "owner",
            format!("{length} bytes, more than {most}"),
        ));
    }
    Ok(())
}

pub(super) fn refused(name: &'static str, reason: impl Into<String>) -> ConfigError {
    ConfigError::Setting {
        name,
        reason: reason.into(),
    }
}

/// The longest prefix: about half of the longest key.
const KEY_PREFIX_MAX: usize = 32 * 1024;

/// Could this key belong to another lock, as its fencing counter, its queue, or a waiter's lease or
/// holders? Their keys are the lock's key with `:redlatch:` and a suffix behind it.
pub(crate) fn is_reserved(key: &[u8]) -> bool {
    const INFIX: &[u8] = b":redlatch:";
    key.windows(INFIX.len()).any(|part| part == INFIX)
}
