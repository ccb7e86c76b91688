//! Rounds of custom commands: for which nodes they wait, and what follows on all of them.

use super::Rounds;
use super::entry::Entry;
use super::result::RoundResult;
use crate::engine::{Action, CustomCommand, Node, NodeSet, Request, Verb};
use crate::node::report::NodeAnswer;
use crate::node::session::Session;
use crate::time::Time;
use std::sync::Arc;

impl<W> Entry<W> {
    fn custom(&self) -> Option<&Arc<dyn CustomCommand>> {
        self.request.as_ref()?.custom()
    }

    /// What is reported of a node that has done what the round asks of it.
    pub(super) fn success(&self) -> NodeAnswer {
        match self.custom() {
            Some(command) if command.is_accept() => NodeAnswer::Accepted,
            Some(_) => NodeAnswer::Answered,
            None if self.verb().is_some_and(Verb::is_question) => NodeAnswer::Answered,
            None => NodeAnswer::Granted,
        }
    }

    pub(super) fn custom_result(&mut self, sessions: &[Session]) -> RoundResult {
        let said = self.said.iter_mut().map(Option::take).collect();
        let watcher = self.request.as_ref().and_then(Request::waiter);
        let is_told = |watcher| sessions.iter().all(|session| session.watches(&watcher));
        let is_watched = watcher.is_some_and(is_told);
        RoundResult::Custom { said, is_watched, reports: self.reports(sessions) }
    }

    /// Can the answers of more nodes than a majority help, and are there nodes that are likely to
    /// answer?
    pub(super) fn waits_for_more(&self, sessions: &[Session]) -> bool {
        let awaited = |command: &Arc<dyn CustomCommand>| {
            command.waits_for_more(&self.said, &self.tally, self.awaited(sessions))
        };
        self.custom().is_some_and(awaited)
    }

    /// Is what a majority has said enough to go on with, although the answers of other nodes would
    /// help?
    pub(super) fn could_end(&self) -> bool {
        self.custom().is_some_and(|command| command.could_end(&self.said))
    }

    /// The request that follows on all nodes, if all have carried this one out.
    fn follow_up(&self) -> Option<Request> {
        let (request, command) = (self.request.as_ref()?, self.custom()?);
        let is_everywhere = self.tally.granted.len() == self.tally.nodes();
        let action = Action::Custom(command.follow_up().filter(|_| is_everywhere)?);
        Some(Request { action, nodes: NodeSet::all(self.tally.nodes()), ..request.clone() })
    }

    /// Does the entry of a decided round stay until all nodes have answered?
    pub(super) fn is_followed(&self) -> bool {
        self.custom().is_some_and(|command| command.follow_up().is_some())
    }
}

impl<W> Rounds<W> {
    /// Goes on with a decided round after which something follows. That is sent when all nodes have
    /// carried the request out, and not before: the answers of a majority would not do, since a
    /// node that has not carried it out, and one that has forgotten it, are a majority too.
    pub(super) fn follow_on(&mut self, now: Time, slot: usize) {
        let entry = &self.entries[slot];
        if let Some(request) = entry.follow_up() {
            for node in (0..self.nodes()).map(Node::new) {
                self.sessions[node.index()].send(now, None, &request);
            }
        }
        if self.entries[slot].tally.is_complete() {
            self.end_round(slot);
        }
    }
}
