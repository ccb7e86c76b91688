//! What a session does by itself when time passes.

use super::flight::Owner;
use super::{Problem, Session, State};
use redlatch_protocol::time::Time;
use std::time::Duration;

impl Session {
    /// When [`tick`](Self::tick) must be called, or a new connection be made.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.state {
            State::Down { retry_at } => self.is_needed().then_some(retry_at),
            State::Connecting { since } | State::Greeting { since, .. } => {
                Some(since.after(self.options.connect_timeout))
            }
            State::Ready { .. } => {
                let due = self.beats.due(self.beat());
                Some(self.silent_at().map_or(due, |silent_at| silent_at.min(due)))
            }
            State::Ending => self.silent_at(),
        }
    }

    /// Gives up a connection that takes too long or is silent, and keeps the session alive. Pass
    /// all bytes that have arrived to [`received`](Self::received) before.
    pub fn tick(&mut self, now: Time) {
        let limit = match self.state {
            State::Down { .. } => return,
            State::Connecting { since } | State::Greeting { since, .. } => {
                Some(since.after(self.options.connect_timeout))
            }
            State::Ready { .. } | State::Ending => self.silent_at(),
        };
        if limit.is_some_and(|limit| now >= limit) {
            return self.closed(now, Problem::TimedOut);
        }
        if matches!(self.state, State::Ready { .. }) && now >= self.beats.due(self.beat()) {
            if self.beats.is_idle(now) && self.flight.is_empty() {
                return self.end(now);
            }
            self.write_pending(now);
            let (request, checks) = self.beats.next(now);
            self.write(now, Owner::Beat(checks), &request);
        }
    }

    /// A seventh of the session's timeout.
    pub(super) fn beat(&self) -> Duration {
        let identity = self.identity.as_ref();
        identity.map_or(self.options.timeout, |identity| identity.terms.timeout()) / 7
    }

    /// When the server has been silent for too long, if it should say something.
    fn silent_at(&self) -> Option<Time> {
        self.flight.silent_since().map(|since| since.after(self.beat()))
    }
}
