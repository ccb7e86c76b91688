//! Votes that do not count any more: of a node whose connection was lost, and of one of two nodes
//! that are one server.
//!
//! The greetings of two nodes that are one server report the same `run_id`. Then the replies of the
//! node that is later in the configuration do not count.
//!
//! No lock command is written before the greeting of its connection was read. So if the later
//! node's own greeting reveals the duplicate, that node has no votes from this server yet. If a
//! greeting of the earlier node reveals it, the later node may have voted: its votes are withdrawn.
//!
//! So in no round do two votes of one server count, in whatever order greetings and votes come. A
//! round that other servers decide before both greetings of the duplicate were read has a majority
//! of different servers, and stands. As soon as both are known, no lock is granted any more.

use super::Rounds;
use super::entry::Entry;
use crate::engine::Node;
use crate::node::session::Session;
use crate::node::{Conversation, NodeError, Phase};
use crate::time::Time;
use std::sync::Arc;

impl<W> Rounds<W> {
    /// Finds the nodes that are the same server as an earlier node, after a greeting. The `run_id`
    /// of a node's last connection counts until there is a new one: that is the safe side.
    pub(super) fn compare_run_ids(&mut self, now: Time, greeted: Node) {
        for index in 0..self.nodes() {
            let node = Node::new(index);
            let run_id = self.sessions[index].run_id();
            let mut earlier = self.sessions[..index].iter().filter(|_| run_id.is_some());
            let first = earlier.find(|session| session.run_id() == run_id);
            let url = first.map(|first| Arc::clone(first.name()));
            let before = self.sessions[index].set_same_server(url);
            if before.is_some() != self.sessions[index].same_server().is_some() && node != greeted {
                self.note_greeting(node);
            }
            if let Some(error) = self.sessions[index].same_server() {
                self.withdraw_votes(now, node, &error, false, |_| true);
            } else if let Some(error) = before.filter(|_| node != greeted) {
                // The earlier node is another server from now on, but may have given this server's
                // vote in the rounds that are open.
                self.withdraw_votes(now, node, &error, true, |_| true);
            }
        }
    }

    /// Are two nodes certainly one server now? Both must be connected: after a lost connection only
    /// a new greeting proves it, and a connection is made only when there is a request to send.
    pub(super) fn has_duplicate_server(&self) -> bool {
        let is_connected = |url: &str| {
            self.sessions
                .iter()
                .any(|other| &**other.name() == url && other.is_ready())
        };
        let is_twin = |session: &Session| match session.same_server() {
            Some(NodeError::SameServer { url }) => {
                session.is_another_by_mistake() && session.is_ready() && is_connected(&url)
            }
            _ => false,
        };
        self.sessions.iter().any(is_twin)
    }

    /// The node may have restarted, and grant to others what it has granted in the rounds that are
    /// open. A round that waits for slow nodes may take longer than a lock of others.
    pub(super) fn withdraw_claims(&mut self, now: Time, node: Node) {
        let lost = self.sessions[node.index()].loss().cloned();
        let lost = lost.unwrap_or(NodeError::TimedOut(Phase::Connecting));
        self.withdraw_votes(now, node, &lost, false, Entry::is_claim);
    }

    /// Makes the node's votes in those undecided rounds that are meant failed votes; with
    /// `also_later`, also the votes that it would still give in them.
    fn withdraw_votes(
        &mut self,
        now: Time,
        node: Node,
        error: &NodeError,
        also_later: bool,
        is_meant: impl Fn(&Entry<W>) -> bool,
    ) {
        for slot in 0..self.entries.len() {
            let entry = &mut self.entries[slot];
            let ticket = entry.ticket(slot);
            let has_voted = entry.tally.voted().contains(node);
            if is_meant(entry) && entry.withdraw_vote(node, error, also_later) {
                // A request that is still to be written would be written after its removal.
                if !has_voted && self.sessions[node.index()].cancel(ticket) {
                    entry.unsent.insert(node);
                }
                self.settle(now, slot, false);
            }
        }
    }
}
