//! Requests for which the connection has no room wait until earlier commands are answered, as long
//! as the node answers at all.
//!
//! Removals are written first, and half of the room is reserved for them: every key that was set
//! can be removed, which makes room. All other requests are written in order of arrival.

use super::{Session, State};
use crate::clock::Time;
use crate::engine::Request;
use crate::node::Ticket;
use crate::node::node_error::NodeError;
use std::time::Duration;

impl Session {
    /// Writes waiting requests while there is room. It is called whenever there may be room: so no
    /// request waits while there is room, and a later request cannot overtake one that waits. All
    /// bytes that have arrived must be processed first: none of them answers a command written
    /// here.
    pub(super) fn fill(&mut self, now: Time) {
        if !self.is_ready() {
            return;
        }
        self.write_pending_releases(now);
        while self.waiting.first().is_some_and(|request| self.flight.has_room(request)) {
            let Some((ticket, request)) = self.waiting.pop() else { return };
            let (ticket, request) = self.adapted(now, Some(ticket), &request);
            self.write(now, ticket, request.into_owned());
        }
    }

    pub(super) fn write(&mut self, now: Time, ticket: Option<Ticket>, request: Request) {
        self.prove(now, &request);
        self.listen(now, &request);
        self.examine(now, &request);
        let form = self.connection.scripts.form(&request);
        self.flight.push(now, ticket, request, form);
    }

    /// Would this request be written at once?
    pub(in crate::node) fn has_room(&self, request: &Request) -> bool {
        self.is_ready() && self.waiting.is_empty() && self.flight.has_room(request)
    }

    /// How long a round lasts.
    pub(in crate::node) fn round(&self) -> Duration {
        self.options.node_timeout
    }

    /// May one more request wait? A node that left commands unanswered for as long as a round lasts
    /// is not likely to make room. While the connection is being made, a few requests may wait
    /// even so.
    pub(super) fn may_wait(&self) -> bool {
        !self.is_silent || !self.is_ready() && self.waiting.are_few()
    }

    /// Fails the requests that wait for room if the node is silent.
    pub(super) fn fail_waiting(&mut self, now: Time) {
        while self.is_silent && self.is_ready() {
            let Some((ticket, request)) = self.waiting.pop() else { return };
            self.lose(now, Some(ticket), request, &NodeError::Overloaded, false);
        }
    }

    /// When [`fail_waiting`](Self::fail_waiting) fails the waiting requests if the node stays
    /// silent.
    pub(super) fn fails_waiting_at(&self) -> Option<Time> {
        let waits = self.is_ready() && !self.waiting.is_empty();
        self.silence().filter(|_| waits).map(|since| since.after(self.options.node_timeout))
    }

    /// Is the node likely to accept removals?
    pub(super) fn is_well(&self, now: Time) -> bool {
        !matches!(self.state, State::Down { .. }) && !self.is_silent && now >= self.pending_at
    }
}
