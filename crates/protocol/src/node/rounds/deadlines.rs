//! Rounds that end at their deadline.
//!
//! There may be thousands of rounds, and the next deadline is needed after every read. So it is not
//! searched for: `ends_at` is a lower bound of all deadlines, recomputed only when it has passed.

use super::Rounds;
use super::entry::Entry;
use crate::engine::{Node, NodeSet, Request, Verb, quorum};
use crate::node::node_error::NodeError;
use crate::node::report::NodeStatus;
use crate::node::session::Session;
use crate::time::Time;
use std::time::Duration;

/// The least time for which a round that could end waits for answers that may help.
const SPARE_MIN: Duration = Duration::from_millis(5);

impl<W> Rounds<W> {
    /// When [`tick`](Self::tick) must be called, or a new connection must be made.
    pub fn next_deadline(&self) -> Option<Time> {
        // `ends_at` may be the deadline of a round that is over. Then `tick` ends nothing.
        let rounds = (self.awaited > 0).then_some(self.ends_at);
        let deadlines = rounds.into_iter().chain(self.waits.next_end());
        let deadlines = deadlines.chain(self.reaching.retries_at);
        deadlines.chain(self.sessions.iter().filter_map(Session::next_deadline)).min()
    }

    /// Has a majority of the nodes answered on the connections that there are? Then rounds take no
    /// longer than their deadline.
    pub fn is_connected(&self) -> bool {
        let answering = self.sessions.iter().filter(|session| session.has_answered());
        answering.count() >= quorum(self.nodes())
    }

    /// Counts a new waiter, whose round has this deadline.
    pub(super) fn await_until(&mut self, deadline: Time) {
        let is_first = self.awaited == 0;
        self.ends_at = if is_first { deadline } else { self.ends_at.min(deadline) };
        self.awaited += 1;
    }

    /// Ends the attempt that this removal undoes, if its deadline has passed. Parts of the attempt
    /// may wait for a connection or for room, and must not be written after the removal.
    pub(super) fn end_attempt(&mut self, now: Time, request: &Request) {
        let is_early = now < self.ends_at && !self.has_overtime;
        if self.awaited == 0 || is_early || !request.verb().is_removal() {
            return;
        }
        let is_attempt = |other: &Request| {
            let verb = other.verb();
            (verb.is_acquisition() || verb == Verb::Queue) && is_same_token(other, request)
        };
        for slot in 0..self.entries.len() {
            if self.entries[slot].request.as_ref().is_some_and(is_attempt) {
                self.settle(now, slot, true);
            }
        }
    }

    /// Ends the rounds whose deadline has passed, and drops extensions whose ttl has passed.
    pub(super) fn end_rounds(&mut self, now: Time) {
        if self.awaited == 0 || now < self.ends_at {
            return;
        }
        let mut next: Option<Time> = None;
        self.has_overtime = false;
        for slot in 0..self.entries.len() {
            let entry = &self.entries[slot];
            let Some(request) = &entry.request else { continue };
            if entry.waiter.is_none() {
                let is_over = match entry.is_followed() {
                    true => now >= request.deadline,
                    false => request.ttl().and_then(|ttl| ttl.left(request.started, now)).is_none(),
                };
                if is_over {
                    self.end_round(slot);
                }
                continue;
            }
            let deadline = request.deadline;
            let mut end = entry.end(now, &self.sessions, self.wait_for_all);
            if now >= end {
                // A lock that only waits for other nodes is not late, and may wait on.
                let is_granted =
                    entry.reach.waits_until.is_some() && now < request.connect_deadline;
                self.settle(now, slot, !is_granted);
                let entry = &self.entries[slot];
                if entry.waiter.is_none() {
                    continue;
                }
                end = entry.end(now, &self.sessions, self.wait_for_all);
            }
            let entry = &mut self.entries[slot];
            entry.is_prolonged |= now >= deadline;
            self.has_overtime |= entry.is_prolonged || entry.reach.waits_until.is_some();
            next = Some(next.map_or(end, |next| next.min(end)));
        }
        self.ends_at = next.unwrap_or(self.ends_at);
    }
}

fn is_same_token(one: &Request, other: &Request) -> bool {
    let token = |request: &Request| request.lock().map(|lock| lock.token);
    token(one) == token(other)
}

impl<W> Entry<W> {
    /// When the round ends, as things are. One that could end waits for other answers for as long
    /// again as the majority took, unless all are waited for: a node that is frozen does not delay
    /// it by much. Beyond its deadline, a round waits for nodes that have never answered on their
    /// connection: until a majority has answered, and then for as long again as that took.
    pub(super) fn end(&self, now: Time, sessions: &[Session], waits_for_all: bool) -> Time {
        let Some(request) = &self.request else { return Time::MAX };
        if let Some(until) = self.reach.waits_until {
            return until;
        }
        if let Some(at) = self.majority_at.filter(|_| self.could_end() && !waits_for_all) {
            let spare = at.since(request.started).max(SPARE_MIN);
            return request.deadline.min(at.after(spare));
        }
        if now < request.deadline {
            return request.deadline;
        }
        let (voted, missing) = (self.tally.voted(), sessions.iter().enumerate());
        let missing = missing.filter(|(index, _)| !voted.contains(Node::new(*index)));
        let awaited = missing.filter_map(|(_, session)| session.is_awaited_until());
        let (count, last) = awaited.fold((0, Time::ZERO), |(n, last), at| (n + 1, last.max(at)));
        let end = match self.majority_at {
            Some(at) => last.min(at.after(at.since(request.started))),
            None if self.answered().len() + count >= quorum(request.nodes.len()) => last,
            None => Time::ZERO,
        };
        end.min(request.connect_deadline).max(request.deadline)
    }

    /// The nodes that were asked and have answered.
    fn answered(&self) -> NodeSet {
        let asked = self.request.as_ref().map_or(NodeSet::EMPTY, |request| request.nodes);
        let answered = self.tally.granted.union(self.tally.refused);
        answered.without(answered.without(asked))
    }

    /// Notes when a majority of the nodes that were asked has answered. Returns whether the round
    /// may end earlier because of the last answer.
    pub(super) fn note_majority(&mut self, now: Time) -> bool {
        let asked = self.request.as_ref().map_or(0, |request| request.nodes.len());
        if self.majority_at.is_none() && self.answered().len() >= quorum(asked) {
            self.majority_at = Some(now);
        }
        self.is_prolonged || self.could_end()
    }

    /// Notes which nodes have not answered a ping in time, where nothing worse is known.
    pub(super) fn note_late_pings(&self, statuses: &mut [NodeStatus]) {
        for (status, problem) in statuses.iter_mut().zip(&self.problems) {
            let is_late = matches!(problem, Some(NodeError::TimedOut(_)));
            let problem = problem.clone().filter(|_| is_late);
            status.last_error = status.last_error.take().or(problem);
        }
    }
}
