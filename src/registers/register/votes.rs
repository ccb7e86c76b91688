//! Which nodes have a vote on registers, as events say it.

use super::nodes::{GroupInspection, RegisterNodes, RegisterRound};
use crate::backend::ReportedVotes;
use crate::engine::{NoVote, Node, NodeSet};
use crate::event::Listener;
use crate::node::{NodeChange, NodeState};
use redlatch_registers::RegisterReply;

impl RegisterNodes<'_> {
    /// A look at the marks has shown that these nodes vote, or do so now.
    pub(super) fn note_voters(&self, inspection: &GroupInspection, voters: NodeSet) {
        for seen in inspection.view.seen() {
            let vote = match voters.contains(seen.node) {
                true => Ok(()),
                false => Err(seen.no_vote(Some(inspection.view.epoch()))),
            };
            self.note_vote(&inspection.round, seen.node, vote);
        }
    }

    /// Nodes that had no vote may have answered as members: another client has repaired them.
    pub(super) fn note_answers(&self, round: &RegisterRound) {
        let without = self.caller.memory().reported().without;
        for node in without.iter() {
            let reply = round.replies.0[node.index()].as_ref();
            if reply.is_some_and(|it| !matches!(it, RegisterReply::NoMember(_))) {
                self.note_vote(round, node, Ok(()));
            }
        }
    }

    /// Has the next event report this change of a node, if it is one. A callback may panic or use
    /// this client, so it is not called in the middle of what a call does.
    fn note_vote(&self, round: &RegisterRound, node: Node, vote: Result<(), NoVote>) {
        let Some(changes) = self.core.events.listener().map(Listener::node_changes) else {
            return;
        };
        let mut reported = self.caller.memory().reported();
        let ReportedVotes { with, without } = &mut *reported;
        let (now, before) = if vote.is_ok() {
            (with, without)
        } else {
            (without, with)
        };
        if !now.contains(node) {
            now.insert(node);
            before.remove(node);
            changes.push(NodeChange {
                url: round.url(node),
                state: NodeState::Votes(vote),
            });
        }
    }
}
