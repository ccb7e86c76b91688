//! What an operator asks of those nodes that are replicated groups.

use crate::clock;
use crate::config::RedisNode;
use crate::engine::{Command, Node, NodeSet, Request};
use crate::net::{Endpoint, RoundOutcome, ask_clocks, ask_sentinels};
use crate::node::script::MarkerChange;
use crate::node::{NodeReport, NodeStatus};
use crate::redlock::Redlock;
use std::sync::Arc;
use std::time::Duration;

/// How long Sentinels and servers have to answer over connections of their own, if that is longer
/// than `node_timeout`: no lock waits for it.
const ASKING_TIMEOUT: Duration = Duration::from_millis(500);

/// What is known of the nodes that are groups.
pub(super) struct Groups {
    nodes: NodeSet,
    /// Of all nodes.
    endpoints: Vec<Endpoint>,
}

impl Groups {
    pub(super) fn new(nodes: &[RedisNode], endpoints: Vec<Endpoint>) -> Self {
        let groups = (0..nodes.len()).filter(|index| nodes[*index].url.failover().is_some());
        Self {
            nodes: groups.map(Node::new).collect(),
            endpoints,
        }
    }

    /// Asks the Sentinels of all groups, and all their servers for the time. What is returned waits
    /// for their answers, and adds them to the statuses of all nodes.
    pub(super) fn ask_others(
        &self,
        node_timeout: Duration,
    ) -> impl FnOnce(&mut [NodeStatus]) + use<> {
        let until = clock::now().after(node_timeout.max(ASKING_TIMEOUT));
        let nodes = self.nodes;
        let asked: Vec<_> = self
            .endpoints
            .iter()
            .enumerate()
            .map(|(index, at)| {
                let is_group = nodes.contains(Node::new(index));
                let sentinels = ask_sentinels(&at.address, &at.auth, until);
                let clocks = is_group.then(|| ask_clocks(at, until)).flatten();
                (sentinels, clocks)
            })
            .collect();
        |statuses| {
            for (status, (sentinels, clocks)) in statuses.iter_mut().zip(asked) {
                if let Some(wait) = sentinels {
                    status.set_sentinels(wait());
                }
                if let Some(wait) = clocks {
                    status.set_server_clocks(wait());
                }
            }
        }
    }
}

impl Redlock {
    /// Changes the markers of those nodes that are groups, whose reports it returns.
    pub(super) fn change_group_markers(&self, change: MarkerChange) -> Vec<NodeReport> {
        let groups = self.diagnostics.groups.nodes;
        if groups.is_empty() {
            return Vec::new();
        }
        let change = Command::Custom(Arc::new(change));
        let request = Request {
            nodes: groups,
            ..Request::to_all(&self.rules, clock::now(), change)
        };
        let RoundOutcome { reports, .. } = self.net.submit(request);
        let mut of_groups = Vec::new();
        for (index, report) in reports.into_iter().enumerate() {
            if groups.contains(Node::new(index)) {
                of_groups.push(report);
            }
        }
        of_groups
    }
}
