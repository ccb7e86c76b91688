//! What an operator asks of the nodes: their state and their keys, the release of a lock by force,
//! and the markers of replicated groups.

mod node_keys;

use node_keys::AllKeys;
#[cfg(feature = "registers")]
pub(crate) use node_keys::{KeyStep, NodeKeys};

use super::Redlock;
use crate::backend::{KeyListing, Operator};
use crate::clock;
use crate::config::{RedisNode, Settings};
use crate::engine::{Command, Node, NodeSet, Request, Ttl, quorum};
use crate::error::{Error, NoQuorum};
use crate::inspect::Seen;
use crate::net::{Endpoint, RoundOutcome, ask_sentinels};
use crate::node::script::MarkerChange;
use crate::node::{NodeError, NodeReport, NodeStatus, Standards};
use redlatch_protocol::inspect::ForcedRemoval;
use std::sync::Arc;
use std::time::Duration;

/// How long Sentinels have to answer, if that is longer than `node_timeout`: no lock waits for it.
const SENTINELS_TIMEOUT: Duration = Duration::from_millis(500);

/// What only an operator needs to know of the nodes.
pub(super) struct Diagnostics {
    standards: Standards,
    /// The nodes that are replicated groups.
    groups: NodeSet,
    endpoints: Vec<Endpoint>,
}

impl Diagnostics {
    pub(super) fn new(nodes: &[RedisNode], endpoints: Vec<Endpoint>, settings: &Settings) -> Self {
        let groups = (0..nodes.len()).filter(|index| nodes[*index].url.failover().is_some());
        Self {
            standards: standards(settings),
            groups: groups.map(Node::new).collect(),
            endpoints,
        }
    }
}

impl Operator for Redlock {
    fn force_release(&self, seen: &Seen) -> Result<bool, Error> {
        let Seen {
            key, locks, others, ..
        } = seen;
        if locks.is_empty() {
            let Some((_, reason)) = others.first() else {
                return Ok(false);
            };
            let urls = others.iter().map(|(url, _)| Arc::clone(url)).collect();
            return Err(Error::NotALock {
                key: Arc::clone(key),
                reason: *reason,
                urls,
            });
        }
        let key = Arc::clone(key);
        let seen = Arc::clone(locks);
        let removal = Command::Custom(Arc::new(ForcedRemoval { key, seen }));
        let request = Request::to_all(&self.rules, clock::now(), removal);
        let RoundOutcome { said, reports, .. } = self.net.submit(request);
        let answers = said.iter().flatten();
        let removed: Vec<bool> = answers.filter_map(|said| said.get().copied()).collect();
        if removed.len() < quorum(self.rules.nodes) {
            return Err(Error::NoQuorum(NoQuorum::new(reports)));
        }
        Ok(removed.contains(&true))
    }

    fn list(&self, pattern: Arc<[u8]>, of_registers: bool) -> Box<dyn KeyListing + '_> {
        Box::new(AllKeys::new(self, pattern, of_registers))
    }

    fn statuses(&self) -> Vec<NodeStatus> {
        let until = clock::now().after(self.rules.node_timeout.max(SENTINELS_TIMEOUT));
        let asked: Vec<_> = self
            .diagnostics
            .endpoints
            .iter()
            .map(|at| ask_sentinels(&at.address, &at.auth, until))
            .collect();
        let mut statuses = self.examine(NodeSet::all(self.rules.nodes));
        for (status, asked) in statuses.iter_mut().zip(asked) {
            if let Some(wait) = asked {
                status.set_sentinels(wait());
            }
        }
        statuses
    }

    fn change_markers(&self, change: MarkerChange) -> Vec<NodeReport> {
        let groups = self.diagnostics.groups;
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

    fn unreachable(&self, error: &NodeError) -> Vec<NodeStatus> {
        self.net.unreachable(error)
    }

    fn standards(&self) -> Standards {
        self.diagnostics.standards
    }
}

impl Redlock {
    /// Asks these nodes about the state of their servers.
    pub(crate) fn examine(&self, nodes: NodeSet) -> Vec<NodeStatus> {
        let request = Request {
            nodes,
            ..Request::examination(&self.rules, clock::now())
        };
        self.net.submit(request).statuses
    }
}

/// What the warnings about nodes depend on.
fn standards(settings: &Settings) -> Standards {
    let Settings {
        max_ttl,
        rules,
        restart_guard,
        ..
    } = settings;
    let validity = Ttl::from_duration(*max_ttl).map(|longest| rules.drift.validity(longest));
    let allowed = max_ttl.saturating_sub(validity.unwrap_or_default());
    Standards {
        restart_guard: *restart_guard,
        allowed,
    }
}
