//! Rounds about registers: for which nodes they wait, and deletions that reach all of them.

use super::Rounds;
use super::entry::Entry;
use super::result::RoundResult;
use crate::clock::Time;
use crate::engine::register::{RegisterCommand, RegisterRequest, Replies};
use crate::engine::{Action, Node, NodeSet, Request, Verb, quorum};
use crate::node::report::NodeAnswer;
use crate::node::session::Session;

impl<W> Entry<W> {
    fn register(&self) -> Option<&RegisterRequest> {
        match self.request.as_ref().map(|request| &request.action) {
            Some(Action::Register(register)) => Some(register),
            _ => None,
        }
    }

    /// What is reported of a node that has done what the round asks of it.
    pub(super) fn success(&self) -> NodeAnswer {
        match self.register().map(|register| &register.command) {
            Some(RegisterCommand::Accept { .. }) => NodeAnswer::Accepted,
            Some(_) => NodeAnswer::Answered,
            None if self.verb().is_some_and(Verb::is_question) => NodeAnswer::Answered,
            None => NodeAnswer::Granted,
        }
    }

    /// The result of the round.
    pub(super) fn register_result(&mut self, sessions: &[Session]) -> RoundResult {
        let replies = Replies(self.registers.0.iter_mut().map(Option::take).collect());
        let watcher = self.request.as_ref().and_then(Request::waiter);
        let is_told = |watcher| sessions.iter().all(|session| session.watches(&watcher));
        let is_watched = watcher.is_some_and(is_told);
        RoundResult::Register { replies, is_watched, reports: self.reports(sessions) }
    }

    /// Can the answers of more nodes than a majority help, and are there nodes that are likely to
    /// answer?
    ///
    /// The mark of every node counts, and the answer of the one that gets a state. On a read, if
    /// the nodes disagree and some of them may still be a majority. On an accept that no majority
    /// has carried out: if all nodes have refused it, it was not made.
    pub(super) fn waits_for_more(&self, sessions: &[Session]) -> bool {
        let Some(register) = self.register() else { return false };
        match register.command {
            RegisterCommand::Mark(_) | RegisterCommand::Install { .. } => !self.tally.is_complete(),
            RegisterCommand::Read { .. } => {
                let most = self.registers.largest() + self.awaited(sessions);
                self.registers.agreed().is_none() && most >= quorum(self.tally.nodes())
            }
            RegisterCommand::Accept { .. } => !self.is_confirmed() && self.awaited(sessions) > 0,
            // Those of nodes that have no vote do not count.
            RegisterCommand::Prepare(_) | RegisterCommand::Copy => {
                !self.registers.are_enough() && self.awaited(sessions) > 0
            }
            RegisterCommand::Collect(_) => false,
        }
    }

    /// Is what a majority has said about a register enough to go on with, although the answers of
    /// other nodes would help?
    pub(super) fn could_end(&self) -> bool {
        let command = self.register().map(|register| &register.command);
        let is_helped =
            matches!(command, Some(RegisterCommand::Read { .. } | RegisterCommand::Accept { .. }));
        is_helped && self.registers.are_enough()
    }

    /// The request that removes the keys of the register, if this one has deleted it on all nodes.
    fn collection(&self) -> Option<Request> {
        let (request, register) = (self.request.as_ref()?, self.register()?);
        let is_everywhere = self.tally.granted.len() == self.tally.nodes();
        let command = match &register.command {
            RegisterCommand::Accept { ballot, value, .. } if value.is_empty() && is_everywhere => {
                RegisterCommand::Collect(Some(*ballot))
            }
            _ => return None,
        };
        let action = Action::Register(Box::new(RegisterRequest { command, ..register.clone() }));
        Some(Request { action, nodes: NodeSet::all(self.tally.nodes()), ..request.clone() })
    }

    /// Does the entry of a decided round stay until all nodes have answered?
    pub(super) fn is_deletion(&self) -> bool {
        match self.register().map(|register| &register.command) {
            Some(RegisterCommand::Accept { value, .. }) => value.is_empty(),
            _ => false,
        }
    }
}

impl<W> Rounds<W> {
    /// Goes on with a decided round that deletes a register. When all nodes have accepted that, and
    /// not before, its keys are removed: the answers of a majority would not do, since a node that
    /// has the value still, and one that has forgotten the deletion, are a majority too.
    pub(super) fn bring_deletion_on(&mut self, now: Time, slot: usize) {
        let entry = &self.entries[slot];
        if let Some(request) = entry.collection() {
            for node in (0..self.nodes()).map(Node::new) {
                self.sessions[node.index()].send(now, None, &request);
            }
        }
        if self.entries[slot].tally.is_complete() {
            self.end_round(slot);
        }
    }
}
