//! What there is no room for on the connection: it waits until commands before it are answered, as
//! long as the node answers any.
//!
//! Removals go first, and half of the room is theirs alone: whatever was planted can be taken back,
//! and makes room by that. All else is written in the order in which it came.

use super::{Session, State};
use crate::clock::Time;
use crate::engine::Request;
use crate::node::Ticket;
use crate::node::node_error::NodeError;

impl Session {
    /// Writes what waits, as far as there is room for it now. To be called whenever there may be
    /// some: then nobody waits while there is room, and who comes next cannot overtake anybody. And
    /// only when all that has arrived has been taken in: none of it answers what is written here.
    pub(super) fn fill(&mut self, now: Time) {
        if !self.is_ready() {
            return;
        }
        self.write_pending_releases(now);
        while self.waiting.first().is_some_and(|request| self.flight.has_room(request)) {
            let Some((ticket, request)) = self.waiting.pop() else { return };
            self.write(now, Some(ticket), request);
        }
    }

    pub(super) fn write(&mut self, now: Time, ticket: Option<Ticket>, request: Request) {
        self.prove(now, &request);
        let form = self.scripts.form(&request);
        self.flight.push(now, ticket, request, form);
    }

    /// May one more request wait? A node that has commands to answer, and has been silent for as
    /// long as a round may last, is not likely to make room. While it is connected to, a few may
    /// wait all the same.
    pub(super) fn may_wait(&self) -> bool {
        !self.is_silent || !self.is_ready() && self.waiting.are_few()
    }

    /// Tells those who wait for room at a node that is silent that they do so in vain.
    pub(super) fn turn_away(&mut self, now: Time) {
        while self.is_silent && self.is_ready() {
            let Some((ticket, request)) = self.waiting.pop() else { return };
            self.lose(now, Some(ticket), request, &NodeError::Overloaded, false);
        }
    }

    /// When those who wait for room are told that they do so in vain, if nothing is heard.
    pub(super) fn turns_away_at(&self) -> Option<Time> {
        let waits = self.is_ready() && !self.waiting.is_empty();
        self.silence().filter(|_| waits).map(|since| since.after(self.options.patience))
    }

    /// Does the node take removals, as far as is known?
    pub(super) fn is_well(&self, now: Time) -> bool {
        !matches!(self.state, State::Down { .. }) && !self.is_silent && now >= self.pay_at
    }
}
