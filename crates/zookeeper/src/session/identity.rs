//! Who the client is to the ensemble, over all connections of a session.

use super::SessionOptions;
use crate::message::{ConnectReply, ConnectRequest, PASSWORD_LENGTH};
use crate::validity::{Terms, Validity};
use redlatch_protocol::time::Time;
use std::fmt;
use std::time::Duration;

/// A session that the ensemble has begun.
pub(super) struct Identity {
    pub(super) id: i64,
    password: [u8; PASSWORD_LENGTH],
    pub(super) terms: Terms,
    pub(super) validity: Validity,
}

impl Identity {
    /// The request that begins a session, or continues this one.
    pub(super) fn connect_request(
        known: Option<&Self>,
        options: &SessionOptions,
        last_zxid: i64,
    ) -> ConnectRequest {
        // A session keeps the timeout that it was granted.
        let timeout = known.map_or(options.timeout, |known| known.terms.timeout());
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let new = ConnectRequest::new(timeout_ms, last_zxid);
        match known {
            None => new,
            Some(known) => ConnectRequest { session: known.id, password: known.password, ..new },
        }
    }

    /// The session that this reply begins. Its request was sent at `sent_at`.
    pub(super) fn begun(sent_at: Time, now: Time, reply: &ConnectReply, drift: u32) -> Self {
        let terms = terms(reply, drift);
        let mut validity = Validity::new(terms);
        validity.connected(sent_at, now, terms);
        Self { id: reply.session, password: reply.password, terms, validity }
    }

    /// The session is continued on a new connection.
    pub(super) fn resumed(&mut self, sent_at: Time, now: Time, reply: &ConnectReply, drift: u32) {
        self.terms = terms(reply, drift);
        self.password = reply.password;
        self.validity.connected(sent_at, now, self.terms);
    }
}

fn terms(reply: &ConnectReply, drift: u32) -> Terms {
    let timeout_ms = u64::try_from(reply.timeout_ms).expect("a session without a timeout is gone");
    Terms::new(Duration::from_millis(timeout_ms), drift)
}

/// Without the password: who has it can end the session.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("id", &self.id).finish_non_exhaustive()
    }
}
