//! Rounds of custom commands: for which nodes they wait, and what follows on all of them.

use super::Rounds;
use super::entry::Entry;
use crate::engine::{Command, CustomCommand, Node, NodeSet, Request};
use crate::node::SharedRequest;
use crate::node::report::NodeAnswer;
use crate::node::session::Session;
use crate::time::Time;
use std::sync::Arc;

impl<W> Entry<W> {
    pub(super) fn custom(&self) -> Option<&Arc<dyn CustomCommand>> {
        self.request.as_ref()?.custom()
    }

    /// What is reported of a node that has done what the round asks of it.
    pub(super) fn success(&self) -> NodeAnswer {
        match self.custom() {
            Some(command) if command.is_accept() => NodeAnswer::Accepted,
            Some(_) => NodeAnswer::Answered,
            None if self.request.as_deref().is_some_and(Request::is_question) => {
                NodeAnswer::Answered
            }
            None => NodeAnswer::Granted,
        }
    }

    /// Do all nodes tell the watcher when what was read changes?
    pub(super) fn is_watched(&self, sessions: &[Session]) -> bool {
        let watcher = self.request.as_deref().and_then(Request::waiter);
        watcher.is_some_and(|watcher| sessions.iter().all(|session| session.watches(&watcher)))
    }

    /// Can the answers of more nodes than a majority help, and are there nodes that are likely to
    /// answer?
    pub(super) fn waits_for_more(&self, sessions: &[Session]) -> bool {
        self.custom().is_some_and(|command| {
            command.waits_for_more(&self.said(), &self.tally, self.awaited(sessions))
        })
    }

    /// Is what a majority has said enough to go on with, although the answers of other nodes would
    /// help?
    pub(super) fn could_end(&self) -> bool {
        self.custom()
            .is_some_and(|command| command.could_end(&self.said()))
    }

    /// The request that follows on all nodes, if all have carried this one out.
    fn follow_up(&self) -> Option<SharedRequest> {
        let request = self.request.as_deref()?;
        let command = self.custom()?;
        let is_everywhere = self.tally.granted.len() == self.tally.nodes();
        let is_followed = is_everywhere && command.is_followed();
        let command = Command::Custom(is_followed.then(|| command.follow_up(&self.said()))??);
        let nodes = NodeSet::all(self.tally.nodes());
        Some(Request::into(Request {
            command,
            nodes,
            ..*request
        }))
    }

    /// Does the entry of a decided round stay until all nodes have answered?
    pub(super) fn is_followed(&self) -> bool {
        self.custom().is_some_and(|command| command.is_followed())
    }
}

impl<W> Rounds<W> {
    /// Goes on with a decided round after which something follows. That is sent when all nodes have
    /// carried the request out, and not before: the answers of a majority would not do, since a
    /// node that has not carried it out, and one that has forgotten it, are a majority too.
    pub(super) fn follow_on(&mut self, now: Time, slot: usize) {
        let entry = &self.entries[slot];
        if let Some(request) = entry.follow_up() {
            for node in (0..self.sessions.len()).map(Node::new) {
                self.sessions[node.index()].send(now, None, request.clone());
            }
        }
        if self.entries[slot].tally.is_complete() {
            self.end_round(slot);
        }
    }
}
