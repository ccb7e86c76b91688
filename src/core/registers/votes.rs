//! Which nodes have a vote on registers, as events report it.

use super::{Asked, Survey};
use crate::core::Core;
use crate::engine::{NoVote, Node, NodeSet};
use crate::event::Listener;
use crate::node::{NodeChange, NodeState};
use crate::registers::RegisterReply;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was reported last of each node.
#[derive(Debug, Default)]
pub(super) struct ReportedVotes(Mutex<Reported>);

#[derive(Debug)]
struct Reported {
    with: NodeSet,
    without: NodeSet,
}

impl Default for Reported {
    fn default() -> Self {
        Self { with: NodeSet::EMPTY, without: NodeSet::EMPTY }
    }
}

impl Core {
    /// A look at the marks has shown that these nodes vote, or do so now.
    pub(super) fn note_voters(&self, survey: &Survey, voters: NodeSet) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.has_listener()) else { return };
        for seen in survey.census.seen() {
            let vote = match voters.contains(seen.node) {
                true => Ok(()),
                false => Err(seen.no_vote(Some(survey.census.epoch()))),
            };
            self.note_vote(listener, &survey.asked, seen.node, vote);
        }
    }

    /// Nodes that had no vote may have answered as members: another client has repaired them.
    pub(super) fn note_answers(&self, asked: &Asked) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.has_listener()) else { return };
        let without = self.registers.membership.reported.lock().without;
        for node in without.iter() {
            let reply = asked.replies.0[node.index()].as_ref();
            if reply.is_some_and(|it| !matches!(it, RegisterReply::NoMember(_))) {
                self.note_vote(listener, asked, node, Ok(()));
            }
        }
    }

    /// Has the next event report this change of a node, if it is one. A callback may panic or use
    /// this client, so it is not called in the middle of what a call does.
    fn note_vote(&self, listener: &Listener, asked: &Asked, node: Node, vote: Result<(), NoVote>) {
        let mut reported = self.registers.membership.reported.lock();
        let Reported { with, without } = &mut *reported;
        let (now, before) = if vote.is_ok() { (with, without) } else { (without, with) };
        if !now.contains(node) {
            now.insert(node);
            before.remove(node);
            let state = NodeState::Votes(vote);
            listener.node_changes().push(NodeChange { url: asked.url(node), state });
        }
    }
}

impl ReportedVotes {
    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
