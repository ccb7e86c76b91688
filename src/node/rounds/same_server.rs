//! Two nodes that are one server: found out by its random name, and given one vote.

use super::Rounds;
use crate::clock::Time;
use crate::engine::{Node, NodeSet};
use crate::node::node_error::NodeError;
use crate::node::session::Session;
use std::sync::Arc;

impl<W> Rounds<W> {
    /// Finds which nodes are the same server as another one. Names that a node had on an earlier
    /// connection count as long as no new one is known: better to doubt a node than to count it
    /// twice.
    pub(super) fn compare_identities(&mut self) {
        self.duplicates = NodeSet::EMPTY;
        self.twins = None;
        let names: Vec<_> = self.sessions.iter().map(Session::run_id).collect();
        for (second, name) in names.iter().enumerate() {
            let first = names[..second].iter().position(|other| name.is_some() && other == name);
            if let Some(first) = first {
                let second = Node::new(second);
                self.duplicates.insert(second);
                self.twins.get_or_insert((Node::new(first), second));
            }
        }
    }

    /// Are two nodes certainly one server, now? If a connection to either is gone, only a new one
    /// can tell, and that is made when there is something to send.
    pub(super) fn has_living_twins(&self) -> bool {
        let is_ready = |node: Node| self.sessions[node.index()].is_ready();
        self.twins.is_some_and(|(first, second)| is_ready(first) && is_ready(second))
    }

    /// Why a node has no vote of its own, if it is the same server as one before it.
    pub(super) fn duplication(&self, node: Node) -> Option<NodeError> {
        let (first, _) = self.twins.filter(|_| self.duplicates.contains(node))?;
        let url = Arc::clone(self.sessions[first.index()].name());
        Some(NodeError::SameServer { url })
    }

    /// Takes back the votes that a server gave by its second name before it was recognised, in the
    /// rounds that are not decided yet: it is about to vote by its first.
    pub(super) fn retract_duplicates(&mut self, now: Time) {
        let duplicates = self.duplicates.iter();
        let problems: Vec<_> = duplicates.filter_map(|n| Some((n, self.duplication(n)?))).collect();
        for slot in 0..self.entries.len() {
            for (node, problem) in &problems {
                self.entries[slot].retract(*node, problem);
            }
            if !problems.is_empty() {
                self.settle(now, slot, false);
            }
        }
    }
}
