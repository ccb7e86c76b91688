//! What about a replicated group is a cause for a warning.

use super::NodeWarning;
use crate::node::diagnostics::{NodeStatus, Role, group_clocks, sentinels};
use std::time::Duration;

/// What about this group, as its servers and its Sentinels say, breaks a promise, or would in a
/// fault. `is_alone`: may no failover of it go unnoticed, because too few nodes are left?
pub(super) fn warnings(status: &NodeStatus, is_alone: bool) -> Vec<NodeWarning> {
    let mut warnings = of_group(status);
    warnings.extend(sentinels::warnings(status, is_alone));
    warnings.extend(group_clocks::warning(status));
    warnings
}

/// How long after the last acknowledgement that was in time a master still takes writes, besides
/// `min-replicas-max-lag`: it counts whole seconds, and looks once a second.
const LAG_GRAIN: Duration = Duration::from_secs(2);

/// What about a replicated group makes its bound wrong, or costs needless waits.
fn of_group(status: &NodeStatus) -> Vec<NodeWarning> {
    let (Some(options), Some(Role::Master { replicas })) = (&status.group_options, status.role)
    else {
        return Vec::new();
    };
    let settings = status.failover;
    let bound = options.bound;
    let named = options.replicas.filter(|named| *named != replicas);
    let differ = named.map(|named| NodeWarning::ReplicasDiffer {
        named,
        connected: replicas,
    });
    // What a majority acknowledges needs no bound of the servers.
    let is_bounded_by_servers = options.replicas.is_none();
    let is_cluster = status.is_cluster == Some(true);
    let known = replicas.max(replicas_known(status));
    let lag = settings
        .min_replicas
        .zip(settings.max_lag)
        .map(|(wanted, lag)| {
            let is_enough = wanted >= u64::from(known.div_ceil(2)) && !lag.is_zero();
            is_enough.then_some(lag + LAG_GRAIN)
        });
    let (setting, needed) = match is_cluster {
        true => ("cluster-node-timeout", settings.cluster_timeout.map(Some)),
        false => ("min-replicas-max-lag", lag.filter(|_| known > 0)),
    };
    let of_bound = needed
        .filter(|_| is_bounded_by_servers)
        .and_then(|needed| match needed {
            None => Some(NodeWarning::NoBound { replicas: known }),
            Some(needed) if needed > bound => Some(NodeWarning::BoundShort {
                setting,
                needed,
                bound,
            }),
            Some(_) => None,
        });
    let may_move = settings.replica_migration == Some(true) && is_cluster;
    let is_counted = options.replicas.is_some();
    let moves = (may_move && is_counted).then_some(NodeWarning::ReplicasMove);
    let after = settings.backlog_ttl.filter(|after| !after.is_zero());
    let backlog = after.map(|after| NodeWarning::BacklogEnds { after });
    let is_refused = settings.may_wait == Some(false) && is_counted;
    let wait = is_refused.then_some(NodeWarning::WaitRefused);
    [of_bound, differ, moves, wait, backlog]
        .into_iter()
        .flatten()
        .collect()
}

/// How many replicas the group has that may be away now: after a failover the former master is, and
/// may still grant locks.
fn replicas_known(status: &NodeStatus) -> u32 {
    let answers = status.sentinels.iter().flat_map(|it| &it.answers);
    let listed = answers.map(|it| it.replicas).max().unwrap_or(0);
    listed.max(u32::from(status.persistence.has_replicated == Some(true)))
}
