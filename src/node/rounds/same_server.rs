//! Two nodes that are one server. The greetings show it, by the server's `run_id`, and then the
//! replies of the node that comes second in the configuration do not count.
//!
//! No lock command is written before the greeting of its connection was read, so a node whose own
//! greeting shows it has no votes yet from this server. It has some if a later greeting of the
//! earlier node shows it: these are withdrawn.

use super::Rounds;
use crate::clock::Time;
use crate::engine::Node;
use crate::node::node_error::NodeError;
use crate::node::session::Session;
use std::sync::Arc;

impl<W> Rounds<W> {
    /// A node was greeted: finds the nodes that are the same server as an earlier node. The
    /// `run_id` of a node's last connection counts as long as there is no new one: that is the safe
    /// side.
    pub(super) fn compare_run_ids(&mut self, now: Time, greeted: Node) {
        for index in 0..self.nodes() {
            let node = Node::new(index);
            let run_id = self.sessions[index].run_id();
            let mut earlier = self.sessions[..index].iter().filter(|_| run_id.is_some());
            let first = earlier.find(|session| session.run_id() == run_id);
            let url = first.map(|first| Arc::clone(first.name()));
            let before = self.sessions[index].set_same_server(url);
            if let Some(error) = self.sessions[index].same_server() {
                self.withdraw_votes(now, node, &error, false);
            } else if let Some(error) = before.filter(|_| node != greeted) {
                // The earlier node is another server from now on, but may have given this server's
                // vote in the rounds that are open.
                self.withdraw_votes(now, node, &error, true);
            }
        }
    }

    /// Are two nodes certainly one server, now? If a connection to either is lost, only a new one
    /// can tell, and that is made when there is something to send.
    pub(super) fn has_connected_twins(&self) -> bool {
        let is_connected = |url: &str| {
            self.sessions.iter().any(|other| &**other.name() == url && other.is_ready())
        };
        let is_twin = |session: &Session| match session.same_server() {
            Some(NodeError::SameServer { url }) => session.is_ready() && is_connected(&url),
            _ => false,
        };
        self.sessions.iter().any(is_twin)
    }

    /// Makes the node's votes in the undecided rounds failed votes; with `also_later`, also the
    /// votes that it would still give in them.
    fn withdraw_votes(&mut self, now: Time, node: Node, error: &NodeError, also_later: bool) {
        for slot in 0..self.entries.len() {
            if self.entries[slot].withdraw_vote(node, error, also_later) {
                self.settle(now, slot, false);
            }
        }
    }
}
