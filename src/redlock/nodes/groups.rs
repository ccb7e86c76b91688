//! What a node gets that is a replicated group.

use crate::config::Settings;
use crate::net::{LookupAuth, TlsTarget};
use crate::node::{GroupOptions, SessionOptions, tag_of};
use crate::node_url::{Address, Failover, Login, NodeUrl};
use std::sync::Arc;
use std::time::Duration;

/// How long a replaced master is believed, unless it is set: as long as the servers of a cluster
/// take with the default settings.
const FAILOVER_BOUND: Duration = Duration::from_secs(15);

/// How long ago a server may have been named whose replicas acknowledge each vote: for longer than
/// it takes to greet it. Meanwhile its successor may have been promoted and proven, and have given
/// a lock that is not known here, and this server may have been elected again without being told.
/// Sentinels take longer for two elections, of which each waits for `down-after-milliseconds`.
const NAMED_WITHIN: Duration = Duration::from_secs(3);

/// How long the others have who know the master, after the first answer.
const SOON: Duration = Duration::from_secs(1);

/// How those are asked who know the master of a group.
pub(super) fn lookup_auth(
    url: &NodeUrl,
    tls: Option<TlsTarget>,
    settings: &Settings,
) -> LookupAuth {
    let servers = Login {
        user: url.user().map(<[u8]>::to_vec),
        password: url.password().map(<[u8]>::to_vec),
    };
    let of_sentinels = url
        .failover()
        .and_then(|failover| failover.sentinel.clone());
    let login = of_sentinels.unwrap_or_else(|| servers.clone());
    let places = match url.address() {
        Address::Sentinel {
            sentinels: places, ..
        }
        | Address::Cluster { seeds: places, .. } => places.len(),
        Address::Tcp { .. } | Address::Unix { .. } => 0,
    };
    let asking = (0..places).map(|_| Arc::default()).collect();
    let limit = url
        .failover()
        .map(|failover| named_within(failover, settings));
    let soon = limit.map_or(SOON, |limit| SOON.min(limit / 4));
    LookupAuth {
        login,
        tls,
        asking,
        soon,
        servers,
        ..LookupAuth::default()
    }
}

/// No vote of a replaced master counts that replicas would have to acknowledge.
fn failover_bound(failover: &Failover, settings: &Settings) -> Duration {
    if failover.replicas.is_some() {
        return Duration::ZERO;
    }
    settings.failover_bound.unwrap_or(FAILOVER_BOUND)
}

fn named_within(failover: &Failover, settings: &Settings) -> Duration {
    if failover.replicas.is_some() {
        return NAMED_WITHIN;
    }
    failover_bound(failover, settings)
}

/// What the session of a group is told of it.
pub(super) fn adapt(options: &mut SessionOptions, url: &NodeUrl, settings: &Settings) {
    let Some(failover) = url.failover() else {
        return;
    };
    let tag = match url.address() {
        Address::Cluster { slots, .. } => tag_of(slots[0]),
        _ => String::new(),
    };
    let group = GroupOptions {
        tag: tag.into_bytes().into(),
        bound: failover_bound(failover, settings),
        named_within: named_within(failover, settings),
        max_ttl: settings.max_ttl,
        replicas: failover.replicas,
        skew: settings.rules.skew,
    };
    options.quarantine = Some(group.quarantine());
    options.group = Some(Arc::new(group));
    options.is_looked_up = !matches!(url.address(), Address::Tcp { .. });
}
