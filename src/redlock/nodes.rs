//! What each node of the configuration gets: how it is found, if it is a replicated group, and the
//! options of its session.

use crate::config::{RedisNode, Settings};
use crate::entropy::draw;
use crate::net::{Endpoint, LookupAuth, TlsTarget};
use crate::node::{Credentials, GroupOptions, SessionOptions, tag_of};
use crate::node_url::{Address, Failover, Login, NodeUrl};
use std::sync::Arc;
use std::time::Duration;

/// How long a replaced master is believed, unless it is set: as long as the servers of a cluster
/// take with the default settings; less, if a majority of the group must vouch for it.
const FAILOVER_BOUND: Duration = Duration::from_secs(15);
const VOUCHED_BOUND: Duration = Duration::from_secs(5);

/// How long the others have who know the master, after the first answer.
const SOON: Duration = Duration::from_secs(1);

/// Where this node is, and how connections to it are secured.
pub(super) fn endpoint(RedisNode { url, tls }: &RedisNode, settings: &Settings) -> Endpoint {
    let is_of_each_host = url
        .failover()
        .is_some_and(|failover| !failover.has_one_name);
    let mut tls = tls.clone();
    if is_of_each_host {
        tls = tls.map(TlsTarget::of_each_host);
    }
    Endpoint {
        address: url.address().clone(),
        auth: lookup_auth(url, tls.clone(), settings),
        tls,
    }
}

/// How those are asked who know the master of a group.
fn lookup_auth(url: &NodeUrl, tls: Option<TlsTarget>, settings: &Settings) -> LookupAuth {
    let login = match url
        .failover()
        .and_then(|failover| failover.sentinel.clone())
    {
        Some(login) => login,
        None => Login {
            user: url.user().map(<[u8]>::to_vec),
            password: url.password().map(<[u8]>::to_vec),
        },
    };
    let places = match url.address() {
        Address::Sentinel {
            sentinels: places, ..
        }
        | Address::Cluster { seeds: places, .. } => places.len(),
        Address::Tcp { .. } | Address::Unix { .. } => 0,
    };
    let asking = (0..places).map(|_| Arc::default()).collect();
    let bound = url
        .failover()
        .map(|failover| failover_bound(failover, settings));
    let soon = bound.map_or(SOON, |bound| SOON.min(bound / 4));
    LookupAuth {
        login,
        tls,
        asking,
        soon,
        learned: Arc::default(),
    }
}

fn failover_bound(failover: &Failover, settings: &Settings) -> Duration {
    let default = if failover.replicas.is_some() {
        VOUCHED_BOUND
    } else {
        FAILOVER_BOUND
    };
    settings.failover_bound.unwrap_or(default)
}

pub(super) fn session_options(url: &NodeUrl, settings: &Settings) -> SessionOptions {
    // If there are no random numbers now, reconnecting is less spread out; locking, later, is what
    // needs them.
    let seed = draw().map_or(0, |entropy| entropy.seed);
    let mut options = SessionOptions::new(&url.to_string(), seed);
    let client_name = Some(&*settings.client_name);
    options.credentials = Credentials::new(url.user(), url.password(), url.database(), client_name);
    options.quarantine = settings.restart_guard.then_some(settings.max_ttl);
    if let Some(failover) = url.failover() {
        let bound = failover_bound(failover, settings);
        let tag = match url.address() {
            Address::Cluster { slots, .. } => tag_of(slots[0]),
            _ => String::new(),
        };
        let max_ttl = settings.max_ttl;
        let replicas = failover.replicas;
        let group = GroupOptions {
            tag: tag.into_bytes().into(),
            bound,
            max_ttl,
            replicas,
        };
        options.quarantine = Some(max_ttl.saturating_add(bound));
        options.group = Some(Arc::new(group));
        options.is_looked_up = !matches!(url.address(), Address::Tcp { .. });
    }
    options.node_timeout = settings.rules.node_timeout;
    options.connect_timeout = settings.connecting.timeout;
    options.silence_max = settings.rules.node_timeout * 10;
    // A caller cannot tell an I/O thread that waits from one that is stopped.
    options.is_waited_for = !settings.io_thread;
    options
}
