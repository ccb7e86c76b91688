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
use crate::node::session::SameServer;
use crate::node::{Conversation, NodeError, Phase};
use crate::time::Time;

impl<W> Rounds<W> {
    /// Compares the servers of all nodes after the greeting of one, and withdraws votes of those
    /// that are one server.
    pub(super) fn compare_servers(&mut self, now: Time, greeted: Node) {
        for index in 0..self.nodes() {
            let node = Node::new(index);
            let Some(same) = SameServer::find(&mut self.sessions, index) else {
                continue;
            };
            if same.is_news && node != greeted {
                self.note_greeting(node);
            }
            // Where it is over because the earlier node is another server from now on, that may
            // have given this server's vote in the rounds that are open.
            if !same.is_over || node != greeted {
                self.withdraw_votes(now, node, &same.error, same.is_over, |_| true);
            }
        }
    }

    /// The node may have restarted, and grant to others what it has granted in the rounds that are
    /// open. A round that waits for slow nodes may take longer than a lock of others.
    pub(super) fn withdraw_claims(&mut self, now: Time, node: Node) {
        let loss = self.sessions[node.index()].loss();
        let lost = loss
            .cloned()
            .unwrap_or(NodeError::TimedOut(Phase::Connecting));
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
        for round in 0..self.entries.len() {
            let entry = &mut self.entries[round];
            let ticket = entry.ticket(round);
            let has_voted = entry.tally.voted().contains(node);
            if is_meant(entry) && entry.withdraw_vote(node, error, also_later) {
                // A request that is still to be written would be written after its removal.
                if !has_voted && self.sessions[node.index()].cancel(ticket) {
                    entry.unsent.insert(node);
                }
                self.settle(now, round, false);
            }
        }
    }
}
