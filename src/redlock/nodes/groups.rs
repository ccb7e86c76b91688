//! What a node gets that is a replicated group.

use crate::config::Settings;
use crate::net::{LookupAuth, TlsTarget};
use crate::node::{GroupOptions, SessionOptions, tag_of};
use crate::node_url::{Address, Failover, Login, NodeUrl};
use std::sync::Arc;
use std::time::Duration;

/// How long a replaced master is believed, unless it is set: as long as the servers of a cluster
/// take with the default settings; less, if a majority of the group must vouch for it.
const FAILOVER_BOUND: Duration = Duration::from_secs(15);
const VOUCHED_BOUND: Duration = Duration::from_secs(5);

/// How long the others have who know the master, after the first answer.
const SOON: Duration = Duration::from_secs(1);

/// How those are asked who know the master of a group.
pub(super) fn lookup_auth(
    url: &NodeUrl,
    tls: Option<TlsTarget>,
    settings: &Settings,
) -> LookupAuth {
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

/// What the session of a group is told of it.
pub(super) fn adapt(options: &mut SessionOptions, url: &NodeUrl, settings: &Settings) {
    let Some(failover) = url.failover() else {
        return;
    };
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
