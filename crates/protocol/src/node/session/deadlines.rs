//! The deadlines of a session. Each follows from what the session does, so that none is set or
//! cleared. What has none waits for a tick that comes for something else: a pending release whose
//! ttl has passed.

use super::{Session, State};
use crate::node::NodeError;
use crate::time::Time;

impl Session {
    /// When [`tick`](Self::tick) must be called, or a new connection must be made.
    pub fn next_deadline(&self) -> Option<Time> {
        let of_state = match &self.state {
            State::Down { retry_at } => self.has_unwritten().then_some(*retry_at),
            State::Ready if self.has_unwritten() => {
                let deadlines = [
                    self.given_up_at(),
                    self.removes_again_at(),
                    self.fails_waiting_at(),
                ];
                deadlines.into_iter().flatten().min()
            }
            _ => self.given_up_at(),
        };
        let of_group = self.looks_at().into_iter().chain(self.inquires_at());
        of_state.into_iter().chain(of_group).min()
    }

    /// When the connection is given up: the attempt to connect has taken too long, or the node was
    /// silent for too long.
    fn given_up_at(&self) -> Option<Time> {
        match &self.state {
            State::Down { .. } => None,
            State::Connecting { .. } | State::Greeting { .. } => Some(self.connects_until),
            State::Ready => self
                .silence()
                .map(|since| since.after(self.options.silence_max)),
        }
    }

    /// When a removal is sent again that the node has refused.
    fn removes_again_at(&self) -> Option<Time> {
        let has_room = self.pending_releases.has_room_for_next(&self.flight);
        has_room.then_some(self.pending_at)
    }

    /// When what waits for room fails, because the node is silent.
    fn fails_waiting_at(&self) -> Option<Time> {
        if self.waiting.is_empty() {
            return None;
        }
        self.silent_at()
    }

    /// When the master is to be looked for although there is a connection, or one is being made.
    pub fn looks_at(&self) -> Option<Time> {
        self.options.group.as_ref()?;
        self.looks_in_group_at()
    }

    /// When the servers of a group are to be asked about their histories.
    pub fn inquires_at(&self) -> Option<Time> {
        self.options.group.as_ref()?;
        self.inquires_in_group_at()
    }

    /// Closes a connection that has been silent for too long. Pass all bytes that have arrived to
    /// [`received`](Self::received) first: otherwise a node that did answer counts as silent.
    pub fn tick(&mut self, now: Time) {
        self.is_silent |= !self.is_alive(now);
        if !self.pending_releases.queue.is_empty() {
            for ticket in self.pending_releases.expire(now) {
                self.fail(ticket, &NodeError::TimedOut(self.phase()), false);
            }
        }
        if self.given_up_at().is_some_and(|limit| now >= limit) {
            self.closed(now, NodeError::TimedOut(self.phase()));
        }
        if self.has_unwritten() {
            self.fill(now);
            self.fail_waiting(now);
        }
    }

    /// Since when an answer is missing: to the oldest command, to the greeting, or to connecting.
    pub(in crate::node) fn unanswered_since(&self) -> Option<Time> {
        match &self.state {
            State::Down { .. } => None,
            State::Connecting { since, .. } | State::Greeting { since, .. } => Some(*since),
            State::Ready => self.flight.oldest(),
        }
    }

    /// Since when the node has been silent although an answer is missing.
    pub(super) fn silence(&self) -> Option<Time> {
        let since = self.unanswered_since()?;
        Some(if self.is_ready() {
            since.max(self.answered_at)
        } else {
            since
        })
    }

    /// When the node will have been silent for `node_timeout`.
    pub(super) fn silent_at(&self) -> Option<Time> {
        self.silence()
            .map(|since| since.after(self.options.node_timeout))
    }

    pub(super) fn is_alive(&self, now: Time) -> bool {
        self.silent_at().is_none_or(|at| now < at)
    }

    /// Was the node silent for as long as a round lasts at the last [`tick`](Self::tick), and has
    /// it sent nothing since?
    pub(in crate::node) fn is_silent(&self) -> bool {
        self.is_silent
    }
}
