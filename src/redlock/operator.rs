//! What an operator asks of the nodes: their state and their keys, the release of a lock by force,
//! and the markers of replicated groups.

#[cfg_attr(not(feature = "groups"), path = "operator/no_groups.rs")]
mod groups;
mod node_keys;
#[cfg(feature = "registers")]
mod quorum;

use groups::Groups;
use node_keys::AllKeys;

use super::Redlock;
use crate::backend::{KeyListing, Operator};
use crate::clock;
use crate::config::{RedisNode, Settings};
use crate::engine::{Command, NodeSet, Request, Ttl, quorum};
use crate::error::{Error, NoQuorum};
use crate::inspect::Seen;
use crate::net::{Endpoint, RoundOutcome};
use crate::node::{NodeError, NodeStatus, Standards};
use redlatch_protocol::inspect::ForcedRemoval;
use std::sync::Arc;

/// What only an operator needs to know of the nodes.
pub(super) struct Diagnostics {
    standards: Standards,
    groups: Groups,
    #[cfg(feature = "registers")]
    registers: quorum::RegisterKeeping,
}

impl Diagnostics {
    pub(super) fn new(nodes: &[RedisNode], endpoints: Vec<Endpoint>, settings: &Settings) -> Self {
        Self {
            standards: standards(settings),
            groups: Groups::new(nodes, endpoints),
            #[cfg(feature = "registers")]
            registers: quorum::RegisterKeeping::new(settings),
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
        let add_answers = self.diagnostics.groups.ask_others(self.rules.node_timeout);
        let mut statuses = self.examine(NodeSet::all(self.rules.nodes));
        add_answers(&mut statuses);
        #[cfg(feature = "registers")]
        if self.quorum().is_ok() {
            self.note_votes(&mut statuses);
        }
        statuses
    }

    #[cfg(feature = "groups")]
    fn change_markers(
        &self,
        change: crate::node::script::MarkerChange,
    ) -> Vec<crate::node::NodeReport> {
        self.change_group_markers(change)
    }

    fn unreachable(&self, error: &NodeError) -> Vec<NodeStatus> {
        self.net.unreachable(error)
    }

    fn standards(&self) -> Standards {
        self.diagnostics.standards
    }

    #[cfg(feature = "registers")]
    fn quorum(&self) -> Result<&dyn crate::backend::Quorum, crate::error::RegisterError> {
        self.keeping_registers()
    }
}

impl Redlock {
    /// Asks these nodes about the state of their servers.
    pub(super) fn examine(&self, nodes: NodeSet) -> Vec<NodeStatus> {
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
