//! Rounds of custom commands: for which nodes they wait, and what follows on all of them. No other
//! round comes here.

use super::Rounds;
use super::entry::Entry;
use crate::engine::{Command, CustomCommand, NodeSet, Request};
use crate::node::SharedRequest;
use crate::node::report::NodeAnswer;
use crate::node::session::Session;
use crate::time::Time;
use std::sync::Arc;

impl<W> Entry<W> {
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
    pub(super) fn waits_for_more(
        &self,
        command: &Arc<dyn CustomCommand>,
        sessions: &[Session],
    ) -> bool {
        command.waits_for_more(&self.said(), &self.tally, self.awaited(sessions))
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
}

impl<W> Rounds<W> {
    /// Goes on with a decided round after which something follows. That is sent when all nodes have
    /// carried the request out, and not before: the answers of a majority would not do, since a
    /// node that has not carried it out, and one that has forgotten it, are a majority too.
    ///
    /// Nobody waits for it. While somebody waits for another round, who then goes on, it is written
    /// with what is sent next: a node that syncs its disk for each change does so once for both,
    /// and what is sent next does not wait until the disk has what follows.
    pub(super) fn follow_on(&mut self, now: Time, round: usize) {
        let entry = &self.entries[round];
        self.follow_ups.extend(entry.follow_up());
        if self.entries[round].tally.is_complete() {
            self.end_round(round);
        }
        if self.awaited == 0 {
            self.send_follow_ups(now);
        }
    }

    pub(super) fn send_follow_ups(&mut self, now: Time) {
        for request in std::mem::take(&mut self.follow_ups) {
            for session in &mut self.sessions {
                session.send(now, None, request.clone());
            }
        }
    }

    /// Is there a round on which something follows when the nodes have answered that are likely to?
    pub(super) fn awaits_follow_ups(&self, now: Time) -> bool {
        self.entries.iter().any(|entry| {
            let deadline = entry.request.as_deref().map(|request| request.deadline);
            let is_late = deadline.is_none_or(|deadline| now >= deadline);
            entry.is_followed() && !is_late && entry.awaited(&self.sessions) > 0
        })
    }
}
