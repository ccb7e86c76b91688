//! Connecting: from the first phase to the greeting, within one time limit.

use super::connection::Connection;
use super::{Session, State};
use crate::clock::Time;
use crate::node::handshake::Handshake;
use crate::node::identity::Identity;
use crate::node::node_error::Phase;

impl Session {
    /// Is something waiting for a connection, and is the pause since the last attempt over?
    #[must_use]
    pub fn wants_connection(&self, now: Time) -> bool {
        let State::Down { retry_at } = self.state else { return false };
        now >= retry_at && !(self.waiting.is_empty() && self.pending_releases.is_empty())
    }

    /// Is there no connection, and none being made? Then the socket must be closed.
    #[must_use]
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }

    /// A connection is being made. `phase` is the step that it waits for.
    pub fn connecting(&mut self, now: Time, phase: Phase) {
        let since = match self.state {
            State::Connecting { since, .. } => {
                self.step_done(now);
                since
            }
            // The time limit counts from the first phase.
            _ => {
                self.connects_until = now.after(self.options.connect_timeout);
                self.arrival.begin(now);
                now
            }
        };
        self.state = State::Connecting { since, phase };
    }

    /// The connection is established. The greeting is in the output.
    pub fn connected(&mut self, now: Time) {
        debug_assert!(
            self.flight.is_empty() && self.connection.input.is_empty(),
            "a new connection starts empty"
        );
        self.step_done(now);
        self.connection = Connection::default();
        self.notifications = std::mem::take(&mut self.notifications).after();
        let (credentials, former) = (&self.options.credentials, self.server.former.clone());
        let handshake = Handshake::begin(credentials, former, self.flight.output_mut());
        self.state = State::Greeting { since: now, handshake };
    }

    /// A step of the attempt to connect is done. If the time for the attempt has passed meanwhile,
    /// no thread drove the connections then, and the time begins again: otherwise a client that
    /// is seldom used would never reach a node that takes several of its calls to connect.
    pub(super) fn step_done(&mut self, now: Time) {
        self.arrival.step(now);
        if now >= self.connects_until {
            self.connects_until = now.after(self.options.connect_timeout);
        }
    }

    /// The greeting was answered.
    pub(super) fn greeted(&mut self, now: Time, identity: Identity) {
        self.server.greeted(now, identity, self.answered_at);
        self.has_greeted = true;
        self.arrival.greeted(now);
        self.problem = None;
        self.state = State::Ready;
    }
}
