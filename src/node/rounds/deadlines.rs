//! Rounds that end at their deadline.
//!
//! There may be thousands of rounds, and the next deadline is needed after every read. So it is not
//! searched for: `ends_at` is a lower bound of all deadlines, recomputed only when it has passed.

use super::Rounds;
use super::entry::Entry;
use crate::clock::Time;
use crate::engine::{Request, Verb};
use crate::node::node_error::NodeError;
use crate::node::report::NodeStatus;
use crate::node::session::Session;

impl<W> Rounds<W> {
    /// When [`tick`](Self::tick) must be called, or a new connection must be made.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        // `ends_at` may be the deadline of a round that is over. Then `tick` ends nothing.
        let rounds = (self.awaited > 0).then_some(self.ends_at);
        rounds.into_iter().chain(self.sessions.iter().filter_map(Session::next_deadline)).min()
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
        if self.awaited == 0 || now < self.ends_at || !request.verb().is_removal() {
            return;
        }
        let is_its = |other: &Request| {
            let verb = other.verb();
            (verb.is_acquisition() || verb == Verb::Queue) && is_same_token(other, request)
        };
        for slot in 0..self.entries.len() {
            if self.entries[slot].request.as_ref().is_some_and(is_its) {
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
        for slot in 0..self.entries.len() {
            let entry = &self.entries[slot];
            let Some(request) = &entry.request else { continue };
            if entry.waiter.is_none() {
                if request.ttl().and_then(|ttl| ttl.left(request.started, now)).is_none() {
                    self.leave(slot);
                }
            } else if now >= request.deadline {
                self.settle(now, slot, true);
            } else {
                next = Some(next.map_or(request.deadline, |next| next.min(request.deadline)));
            }
        }
        self.ends_at = next.unwrap_or(self.ends_at);
    }
}

fn is_same_token(one: &Request, other: &Request) -> bool {
    let token = |request: &Request| request.lock().map(|lock| lock.token);
    token(one) == token(other)
}

impl<W> Entry<W> {
    /// Notes which nodes have not answered a ping in time, where nothing worse is known.
    pub(super) fn note_late_pings(&self, statuses: &mut [NodeStatus]) {
        for (status, problem) in statuses.iter_mut().zip(&self.problems) {
            let is_late = matches!(problem, Some(NodeError::TimedOut(_)));
            let problem = problem.clone().filter(|_| is_late);
            status.last_error = status.last_error.take().or(problem);
        }
    }
}
