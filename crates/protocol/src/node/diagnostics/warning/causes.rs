//! What in the answers of nodes is a cause for a warning.

use super::NodeWarning;
use crate::node::diagnostics::{CrashLoss, NodeStatus, Role};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// What the warnings about nodes depend on besides the nodes.
#[derive(Clone, Copy, Debug)]
pub struct Standards {
    /// Is `Builder::restart_guard` on?
    pub restart_guard: bool,
    /// The drift allowance of the longest ttl.
    pub allowed: Duration,
}

/// Fills in what follows from the answers of all nodes: by how much the clocks differ, and the
/// warnings. The wall clock shows `wall_micros` at `now`.
pub fn add_warnings(
    statuses: &mut [NodeStatus],
    standards: Standards,
    now: Time,
    wall_micros: u64,
) {
    let count = statuses.len();
    for index in 0..count {
        let (earlier, rest) = statuses.split_at_mut(index);
        let status = &mut rest[0];
        status.clock = status
            .clock_reading
            .map(|it| it.difference(now, wall_micros));
        status.warnings = of_server(status, standards);
        // With three nodes or more, the others go on.
        #[cfg(feature = "groups")]
        status
            .warnings
            .extend(super::of_group::warnings(status, count < 3));
        status.warnings.extend(same_host(earlier, status));
        let is_alone = count > 1 && status.role == Some(Role::Standalone);
        status
            .warnings
            .extend(is_alone.then_some(NodeWarning::Standalone));
    }
}

fn of_server(status: &NodeStatus, standards: Standards) -> Vec<NodeWarning> {
    let memory = &status.memory;
    let max = memory.max.filter(|max| *max > 0);
    // Without a limit, the policy never applies.
    let policy = memory
        .policy
        .as_ref()
        .filter(|policy| max.is_some() && *policy != "noeviction");
    let evicts = policy.map(|policy| NodeWarning::Evicts {
        policy: policy.clone(),
    });
    // A server that evicts is not short of memory.
    let short = memory
        .used
        .zip(max)
        .filter(|(used, max)| policy.is_none() && *used >= *max - *max / 10)
        .map(|(used, max)| NodeWarning::MemoryShort { used, max });
    let replication = match status.role {
        _ if status.group_options.is_some() => None,
        Some(Role::Replica) => Some(NodeWarning::Replica),
        Some(Role::Master { replicas: 0 }) | None => None,
        // Of an ensemble, one is not judged without the others.
        Some(Role::Standalone | Role::Leader | Role::Follower | Role::Observer) => None,
        Some(Role::Master { replicas }) => Some(NodeWarning::HasReplicas { count: replicas }),
    };
    let is_cluster = status.is_cluster == Some(true) && status.group_options.is_none();
    let cluster = is_cluster.then_some(NodeWarning::Cluster);
    let allowed = standards.allowed;
    let clock = status
        .clock
        .filter(|clock| clock.by > allowed.saturating_add(clock.error))
        .map(|clock| NodeWarning::ClockOff { clock, allowed });
    let loss = status
        .persistence
        .crash_loss()
        .filter(|loss| !standards.restart_guard && *loss != CrashLoss::Nothing);
    let forgets = loss.map(|loss| NodeWarning::Forgets { loss });
    let of_server = [evicts, short, replication, cluster, clock, forgets];
    of_server.into_iter().flatten().collect()
}

/// Is the node on the machine of an earlier one? The same server is an error, and no warning.
fn same_host(earlier: &[NodeStatus], status: &NodeStatus) -> Option<NodeWarning> {
    let host = status.host?;
    let first = earlier
        .iter()
        .find(|other| other.host.is_some_and(|other| other.is_same(host)))?;
    Some(NodeWarning::SameHost {
        url: Arc::clone(&first.url),
        is_here: host.is_here,
    })
}
