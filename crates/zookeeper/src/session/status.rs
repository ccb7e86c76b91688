//! What a session is, as its owner sees it.

use super::{Problem, Session, State};
use redlatch_protocol::time::Time;
use std::time::Duration;

impl Session {
    /// Until when the znodes of this session exist unless they are deleted, as far as is proven.
    pub fn valid_until(&self) -> Time {
        self.identity.as_ref().map_or(Time::ZERO, |identity| identity.validity.valid_until())
    }

    /// The session's number, if it has begun.
    pub fn id(&self) -> Option<i64> {
        self.identity.as_ref().map(|identity| identity.id)
    }

    /// Why there is no connection, or was none before this one.
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// The number of the server to connect to, below `SessionOptions::servers`.
    pub fn server(&self) -> usize {
        self.servers.current()
    }

    /// Is there no connection, and none being made? Then the socket must be closed.
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }

    /// Does something need a connection, and is the pause since the last attempt over?
    pub fn wants_connection(&self, now: Time) -> bool {
        matches!(self.state, State::Down { retry_at } if now >= retry_at) && self.is_needed()
    }

    pub(super) fn is_needed(&self) -> bool {
        let has_znodes = self.identity.is_some() && !self.beats.is_empty();
        has_znodes || !self.waiting.is_empty() || !self.pending.is_empty()
    }

    /// Has a server accepted the session on this connection?
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// The timeout that the ensemble has granted, if the session has begun.
    pub fn timeout(&self) -> Option<Duration> {
        self.identity.as_ref().map(|identity| identity.terms.timeout())
    }

    /// Is the end of the session written, and not answered yet?
    pub fn is_ending(&self) -> bool {
        matches!(self.state, State::Ending)
    }
}
