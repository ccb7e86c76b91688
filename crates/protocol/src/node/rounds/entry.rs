//! One round: its request, its waiter, and the votes so far.

use super::propagation::LockSpread;
use super::{RoundOutcome, Rounds};
use crate::engine::{
    Command, Counters, CustomCommand, Node, NodeSet, QueueState, Request, Said, Tally, Token,
    Verdict, Vote, Votes, quorum, until_quorum,
};
use crate::node::command::NodeReply;
use crate::node::node_error::NodeError;
use crate::node::report::{NodeAnswer, NodeReport};
use crate::node::session::{Answer, Session};
use crate::node::{SharedRequest, Ticket};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The room of a round. It is reused, so a round allocates nothing.
#[derive(Debug)]
pub(super) struct Entry<W> {
    serial: u64,
    /// `None` if there is no round in this entry.
    pub(super) request: Option<SharedRequest>,
    /// `None` if the round is decided, and stays only to restore keys.
    pub(super) waiter: Option<W>,
    /// Has the lock been released or handed off since? Then no key of it is restored.
    pub(super) is_forgotten: bool,
    pub(super) tally: Tally,
    /// Nodes to which the request was never written.
    pub(super) unsent: NodeSet,
    pub(super) counters: Counters,
    /// What each node has replied, and why not where that is known.
    pub(super) replies: Vec<Option<NodeReply>>,
    /// When a majority of the nodes that were asked had answered.
    pub(super) majority_at: Option<Time>,
    /// Did the round go on beyond its deadline?
    pub(super) is_prolonged: bool,
    pub(super) spread: LockSpread,
}

impl<W> Entry<W> {
    pub(super) fn vacant(nodes: usize) -> Self {
        Self::with(0, vec![None; nodes])
    }

    fn with(serial: u64, replies: Vec<Option<NodeReply>>) -> Self {
        Self {
            serial,
            request: None,
            waiter: None,
            is_forgotten: false,
            tally: Tally::new(replies.len()),
            unsent: NodeSet::EMPTY,
            counters: Counters::default(),
            replies,
            majority_at: None,
            is_prolonged: false,
            spread: LockSpread::default(),
        }
    }

    /// Empties the entry: the ticket of its round becomes invalid.
    pub(super) fn clear(&mut self) {
        let mut replies = std::mem::take(&mut self.replies);
        replies.fill(None);
        *self = Self::with(self.serial + 1, replies);
    }

    pub(super) fn ticket(&self, round: usize) -> Ticket {
        Ticket {
            round,
            serial: self.serial,
        }
    }

    pub(super) fn is_ping(&self) -> bool {
        self.request
            .as_deref()
            .is_some_and(|it| matches!(it.command, Command::Ping(_)))
    }

    pub(super) fn is_claim(&self) -> bool {
        self.request.as_deref().is_some_and(Request::is_claim)
    }

    /// The token of an attempt, or of the last one of a waiter that enters the queue.
    pub(super) fn attempt(&self) -> Option<Token> {
        let is_attempt = self.is_claim() || self.queue_entry().is_some();
        let request = self.request.as_deref().filter(|_| is_attempt);
        request.and_then(Request::token)
    }

    /// Is it about a share? Only then has a node granted a permit.
    fn is_share(&self) -> bool {
        let share = self.request.as_deref().and_then(Request::share);
        share.is_some()
    }

    pub(super) fn custom(&self) -> Option<&Arc<dyn CustomCommand>> {
        self.request.as_deref()?.custom()
    }

    /// Is what a majority has said enough to go on with, although the answers of other nodes would
    /// help?
    pub(super) fn could_end(&self) -> bool {
        self.custom()
            .is_some_and(|command| command.could_end(&self.said()))
    }

    /// Does the entry of a decided round stay until all nodes have answered?
    pub(super) fn is_followed(&self) -> bool {
        self.custom().is_some_and(|command| command.is_followed())
    }

    /// Must its key be restored on nodes that lost it, or that granted another permit?
    pub(super) fn is_to_restore(&self) -> bool {
        let is_lock = self.request.as_deref().is_some_and(Request::is_to_restore);
        is_lock && self.is_confirmed() && !self.is_forgotten
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.tally.granted_by_majority() == Verdict::Won
    }

    /// Can no further answer change the result?
    pub(super) fn is_decided(&self, wait_for_all: bool, sessions: &[Session]) -> bool {
        if self.tally.is_complete() {
            return true;
        }
        let waits_for_permits = self.is_share() && self.waits_for_permits(sessions);
        let is_settled = self.tally.is_settled() && !waits_for_permits;
        // A ping is about every node, not about a majority of them.
        let is_early = (is_settled || self.is_split(sessions)) && !self.is_ping();
        is_early
            && !wait_for_all
            && !self
                .custom()
                .is_some_and(|command| self.waits_for_more(command, sessions))
    }

    /// Is this a contended attempt that only silent nodes could still turn into a lock? Contended:
    /// a majority has answered, and a node refused. Silent: for as long as a round lasts. If such
    /// an attempt waited for silent nodes, its keys would block the competing attempts on the other
    /// nodes meanwhile.
    fn is_split(&self, sessions: &[Session]) -> bool {
        let tally = &self.tally;
        let is_contended = !tally.refused.is_empty()
            && tally.answered_by_majority() == Verdict::Won
            && self.is_claim();
        is_contended && tally.granted.len() + self.awaited(sessions) < quorum(tally.nodes())
    }

    /// How many nodes have not voted, and are not silent?
    pub(super) fn awaited(&self, sessions: &[Session]) -> usize {
        self.awaited_nodes(sessions).len()
    }

    pub(super) fn awaited_nodes(&self, sessions: &[Session]) -> NodeSet {
        let open = NodeSet::all(sessions.len()).without(self.tally.voted());
        open.iter()
            .filter(|node| !sessions[node.index()].is_silent())
            .collect()
    }

    /// What was replied, with the nodes that have.
    pub(super) fn replied(&self) -> impl Iterator<Item = (Node, &NodeReply)> {
        let replies = (0..).map(Node::new).zip(&self.replies);
        replies.filter_map(|(node, reply)| Some((node, reply.as_ref()?)))
    }

    pub(super) fn problem(&self, node: Node) -> Option<&NodeError> {
        self.replies[node.index()].as_ref()?.problem.as_ref()
    }

    /// What each node has said to a custom command.
    pub(super) fn said(&self) -> Vec<Option<Said>> {
        self.replies
            .iter()
            .map(|reply| reply.as_ref()?.said.clone())
            .collect()
    }

    /// Counts an answer. Returns whether it counted: no node votes twice.
    pub(super) fn count(&mut self, node: Node, answer: Answer) -> bool {
        let Answer {
            mut reply,
            was_sent,
            ..
        } = answer;
        let vote = reply.vote;
        if !self.tally.cast(node, vote) {
            return false;
        }
        if !was_sent {
            self.unsent.insert(node);
        }
        if let Some(counter) = reply.counter {
            self.counters.note(node, counter, vote == Vote::Granted);
        }
        if vote == Vote::Failed {
            // Of two nodes that are one server, only one has said something, or granted a permit.
            reply.said = None;
            reply.permit = None;
        }
        let is_permit = reply.permit.is_some();
        self.replies[node.index()] = Some(reply);
        if is_permit {
            self.count_permits();
        }
        true
    }

    /// Makes a node's vote a failed vote, if the round is undecided; with `also_later`, also the
    /// vote that it would still give. Returns whether that changed anything.
    pub(super) fn withdraw_vote(
        &mut self,
        node: Node,
        error: &NodeError,
        also_later: bool,
    ) -> bool {
        let is_to_fail = also_later || self.tally.voted().contains(node);
        if self.waiter.is_none() || !is_to_fail {
            return false;
        }
        self.tally.granted.remove(node);
        self.tally.refused.remove(node);
        self.tally.failed.insert(node);
        self.counters.nodes.remove(node);
        self.replies[node.index()] = Some(NodeReply::failed(error.clone()));
        self.count_permits();
        true
    }

    /// Stops waiting for the nodes that have not voted. With `is_late`, they have timed out.
    pub(super) fn close(&mut self, round: usize, sessions: &mut [Session], is_late: bool) {
        let ticket = self.ticket(round);
        let voted = self.tally.voted();
        for (index, session) in sessions.iter_mut().enumerate() {
            let node = Node::new(index);
            if voted.contains(node) {
                continue;
            }
            // As the session is before what still waits there is taken back.
            let late = is_late.then(|| session.late());
            if session.cancel(ticket) {
                // It will never answer, and must not be waited for: see `Rounds::settle`.
                self.unsent.insert(node);
                self.tally.cast(node, Vote::Failed);
            }
            if let Some(late) = late {
                self.replies[index] = Some(NodeReply::failed(late));
            }
        }
    }

    pub(super) fn outcome(&mut self, now: Time, sessions: &[Session]) -> RoundOutcome {
        self.note_quarantines(now, sessions);
        let mut votes = Votes::new(self.tally);
        let mut has_problems = false;
        for (node, reply) in self.replied() {
            let Some(problem) = &reply.problem else {
                continue;
            };
            has_problems = true;
            if sessions[node.index()].is_lasting(problem) {
                votes.permanent_failures.insert(node);
            }
        }
        if has_problems {
            votes.quarantine = self.quarantine(sessions);
        }
        votes.same_server = sessions.iter().any(Session::is_another_by_mistake);
        votes.counters = self.counters;
        votes.queue = self.queue_state();
        if self.is_share() {
            votes.permit = self.permit();
        }
        votes.was_prolonged = self.is_prolonged || self.has_waited_beyond(now);
        votes.sent = NodeSet::all(self.tally.nodes()).without(self.unsent);
        let needs_reports = votes.same_server || !self.is_plain() || !votes.quarantine.is_zero();
        let mut outcome = RoundOutcome::of(votes);
        #[cfg(feature = "diagnostics")]
        if self.is_ping() {
            outcome.statuses = self.statuses(now, sessions);
        }
        if self.custom().is_some() {
            outcome.said = self.said();
            outcome.is_watched = self.is_watched(sessions);
            outcome.reports = self.reports(sessions);
        } else if needs_reports {
            // In a quarantine, the caller may have to say why nobody grants its lock.
            outcome.reports = self.reports(sessions);
        }
        outcome
    }

    /// What the answers say about a waiter.
    fn queue_state(&self) -> QueueState {
        let is_awaited = self.replied().any(|(_, reply)| reply.is_awaited);
        let mut state = QueueState {
            is_awaited,
            ..QueueState::default()
        };
        if self.queue_entry().is_some() {
            let views = self
                .replied()
                .filter_map(|(node, it)| Some((node, it.view.as_deref()?.clone())));
            state.note(views, self.replies.len());
            for (node, reply) in self.replied() {
                if matches!(reply.problem, Some(NodeError::NoQueue(_))) {
                    state.without.insert(node);
                }
            }
        }
        state
    }

    /// Did the round succeed, or fail only because the lock is held? Then no reports are needed,
    /// and building them would allocate.
    fn is_plain(&self) -> bool {
        self.is_confirmed() || self.is_claim() && self.tally.answered_by_majority() == Verdict::Won
    }

    pub(super) fn reports(&self, sessions: &[Session]) -> Vec<NodeReport> {
        let success = self.success();
        let tally = &self.tally;
        let asked = self
            .request
            .as_ref()
            .map_or(NodeSet::EMPTY, |request| request.nodes);
        let mut reports = Vec::with_capacity(sessions.len());
        for (index, session) in sessions.iter().enumerate() {
            let node = Node::new(index);
            let answer = match session
                .same_server()
                .or_else(|| self.problem(node).cloned())
            {
                Some(problem) => NodeAnswer::Failed(problem),
                None if !asked.contains(node) => NodeAnswer::NotAsked,
                None if tally.granted.contains(node) => success.clone(),
                None if tally.refused.contains(node) => NodeAnswer::Refused,
                None => NodeAnswer::Pending,
            };
            reports.push(session.report(answer));
        }
        reports
    }
}

impl<W> Rounds<W> {
    /// An entry without a round in it.
    pub(super) fn vacancy(&mut self) -> usize {
        self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry::vacant(self.sessions.len()));
            self.entries.len() - 1
        })
    }

    /// Removes a round from its entry.
    pub(super) fn end_round(&mut self, round: usize) {
        if let Some(request) = &self.entries[round].request {
            self.propagation.forget(request, round);
            if let Some(waiter) = request.waiter().filter(|_| request.is_turn()) {
                self.end_turn(&waiter);
            }
            self.entries[round].clear();
            self.vacant.push(round);
        }
    }
}

// Quarantines in a round: for how long no majority can grant the lock, whoever has answered.

impl<W> Entry<W> {
    /// Notes the quarantines of nodes that refused the lock, or have not answered. Such a refusal
    /// does not say that another client holds it: nobody may, and the node reserves it for a waiter
    /// until its grants count.
    pub(super) fn note_quarantines(&mut self, now: Time, sessions: &[Session]) {
        let is_attempt = self.is_claim() && !self.is_confirmed();
        let Some(request) = &self.request else { return };
        if !is_attempt && request.queue_entry().is_none() {
            return;
        }
        for (index, (reply, session)) in self.replies.iter_mut().zip(sessions).enumerate() {
            let is_known = reply.as_ref().is_some_and(|reply| reply.problem.is_some());
            let is_granted = self.tally.granted.contains(Node::new(index));
            if is_known || is_granted || !session.is_ready() {
                continue;
            }
            if let Some(problem) = session.quarantine(now, request) {
                reply
                    .get_or_insert_with(|| NodeReply::of(Vote::Failed))
                    .problem = Some(problem);
            }
        }
    }

    /// How long no majority can grant anything, or when it is worth while to ask again.
    pub(super) fn quarantine(&self, sessions: &[Session]) -> Duration {
        let left = self.replied().filter_map(|(node, reply)| {
            let left = reply.problem.as_ref()?.quarantine()?;
            Some(sessions[node.index()].may_count_in(left))
        });
        until_quorum(self.replies.len(), left).unwrap_or_default()
    }
}
