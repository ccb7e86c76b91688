//! A connection: how it is made, how far it has come, for how long rounds wait for it, and what is
//! forgotten with it.
//!
//! A node that has not answered a command on its connection yet needs more than one round trip: to
//! connect, for TLS, for the greeting, for the command. How long one takes is not known before the
//! first connection; after that, the next one should take as long. A node whose connection was not
//! made in time, or took much longer than the last one, is waited for no longer than any other.

use super::{Session, State};
use crate::node::command::KnownScripts;
#[cfg(feature = "diagnostics")]
use crate::node::diagnostics::Examination;
use crate::node::handshake::Handshake;
use crate::node::wrong_server::WrongServer;
use crate::node::{Identity, NodeError, OtherProtocol, Phase, ServerError};
use crate::resp::{Decoder, ProtocolError};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// One connection, from the moment at which it is established.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) decoder: Decoder,
    /// The beginning of an incomplete reply.
    pub(super) input: Vec<u8>,
    pub(super) scripts: KnownScripts,
    /// What the server has told about itself.
    #[cfg(feature = "diagnostics")]
    pub(super) examination: Examination,
    /// Which run of the server it leads to, as that has said on this connection.
    pub(super) run_id: Option<Arc<str>>,
    /// The refusal of a look, and until when there is no other.
    pub(super) hidden_look: Option<(ServerError, Time)>,
    /// Did the last reply have a valid form?
    pub(super) is_proven: bool,
    /// Has the server granted the last lock that it was asked for?
    pub(super) has_granted: bool,
}

/// For how long rounds wait for a connection, in multiples of what the last one took.
const AGAIN: u32 = 2;

/// A node that has not accepted the connection may not be there: the part of the time for which it
/// is waited for anyway.
const UNSEEN: u32 = 4;

/// A connection, from its first step to the first answer to a command.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    began: Time,
    /// When the last step was done, and how long the slowest took.
    last_step: Time,
    slowest: Duration,
    /// From the beginning to the answer to the greeting.
    greeted_after: Duration,
    /// Was a command answered on this connection?
    has_answered: bool,
    /// From the beginning to the first answer, on the last connection that had one.
    took: Option<Duration>,
    /// Did attempts to connect fail since then, because they took too long?
    was_late: bool,
}

impl Arrival {
    fn begin(&mut self, now: Time) {
        let Self { took, was_late, .. } = *self;
        *self = Self {
            began: now,
            last_step: now,
            took,
            was_late,
            ..Self::default()
        };
    }

    pub(super) fn step(&mut self, now: Time) {
        self.slowest = self.slowest.max(now.since(self.last_step));
        self.last_step = now;
    }

    pub(super) fn greeted(&mut self, now: Time) {
        self.step(now);
        self.greeted_after = now.since(self.began);
    }

    /// A command that was written at `sent_at` was answered.
    pub(super) fn answered(&mut self, now: Time, sent_at: Time) {
        if !self.has_answered {
            self.has_answered = true;
            self.was_late = false;
            // There may have been no command for a while.
            self.took = Some(self.greeted_after.saturating_add(now.since(sent_at)));
        }
    }

    pub(super) fn closed(&mut self, problem: &NodeError) {
        self.was_late |= !self.has_answered && matches!(problem, NodeError::TimedOut(_));
        self.has_answered = false;
    }
}

impl Session {
    /// Is something waiting for a connection, and is the pause since the last attempt over?
    pub fn wants_connection(&self, now: Time) -> bool {
        let State::Down { retry_at } = self.state else {
            return false;
        };
        now >= retry_at && self.has_unwritten()
    }

    /// Is there no connection, and none being made? Then the socket must be closed.
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
        self.trust.connected();
        self.notifications = std::mem::take(&mut self.notifications).after();
        let credentials = &self.options.credentials;
        let stale = self.server.stale.clone();
        let handshake = Handshake::begin(credentials, stale, self.flight.output_mut());
        self.state = State::Greeting {
            since: now,
            handshake,
        };
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

    /// Fails if the server is of another kind than the URL names: then none of its answers may
    /// count.
    pub(super) fn expect_named_kind(&self, identity: &Identity) -> Result<(), NodeError> {
        let wrong = WrongServer::check(self.options.named_server(), identity.kind);
        wrong.map_or(Ok(()), |wrong| Err(NodeError::WrongServer(wrong)))
    }

    pub(super) fn greeted(&mut self, now: Time, identity: Identity) {
        self.connection.run_id = identity.run_id.as_deref().map(Arc::from);
        let before = self.server.identity.as_ref();
        self.trust.greeted(now, &identity, before, self.answered_at);
        self.server.greeted(identity);
        self.has_greeted = true;
        self.arrival.greeted(now);
        self.problem = None;
        self.state = State::Ready;
        if let Some(group) = self.options.group.clone() {
            self.greet_group(now, &group);
        }
    }

    /// Until when a round waits for the first answer on this connection, if it has not arrived.
    pub(in crate::node) fn is_awaited_until(&self) -> Option<Time> {
        let Arrival {
            began,
            took,
            has_answered,
            was_late,
            ..
        } = self.arrival;
        if has_answered || was_late || self.is_down() {
            return None;
        }
        Some(match took {
            Some(took) => began
                .after(took.saturating_mul(AGAIN))
                .min(self.connects_until),
            None => self.connects_until,
        })
    }

    /// Until when a round waits for this node although it is silent: so long before its connection
    /// is given up that what undoes the round is still written behind it.
    pub(in crate::node) fn may_answer_until(&self) -> Option<Time> {
        let longest = self
            .options
            .silence_max
            .saturating_sub(self.options.node_timeout);
        let is_waited_for = self.is_ready() && self.options.is_waited_for;
        self.silence()
            .filter(|_| is_waited_for)
            .map(|since| since.after(longest))
    }

    /// No round waits for this node any more while it is silent.
    pub(in crate::node) fn end_patience(&mut self) {
        self.options.is_waited_for = false;
    }

    /// Was a command answered on this connection?
    pub(in crate::node) fn has_answered(&self) -> bool {
        self.arrival.has_answered
    }

    /// Is the first connection being made, so that this node is likely to answer soon after the
    /// others? They are a majority, which took `took` until `at`. Returns until when it is waited
    /// for: for `least` at least if it has accepted the connection, and a quarter of that if it has
    /// not.
    pub(in crate::node) fn arrives_until(
        &self,
        at: Time,
        took: Duration,
        least: Duration,
    ) -> Option<Time> {
        let Arrival {
            last_step,
            slowest,
            has_answered,
            was_late,
            ..
        } = self.arrival;
        if has_answered || was_late || self.arrival.took.is_some() || self.is_down() {
            return None;
        }
        let least = match self.state {
            State::Connecting { phase, .. } if phase != Phase::Securing => least / UNSEEN,
            _ => least,
        };
        let next_step = last_step.after(slowest.saturating_mul(AGAIN));
        Some(at.after(took.max(least)).max(next_step))
    }

    #[cfg(test)]
    pub(in crate::node) fn used(&mut self) {
        self.arrival.answered(Time::ZERO, Time::ZERO);
    }

    /// Could these be the first bytes of another protocol, too few to recognise it?
    pub(super) fn may_be_foreign(&self, bytes: &[u8]) -> bool {
        match self.state {
            State::Ready => OtherProtocol::may_begin_tls(bytes),
            _ => OtherProtocol::may_begin(bytes),
        }
    }

    /// The error for bytes that are not valid RESP.
    pub(super) fn decode_error(&self, bytes: &[u8], error: ProtocolError) -> NodeError {
        match OtherProtocol::recognise(bytes) {
            // A proxy that terminates TLS may send an alert at any time.
            Some(OtherProtocol::Tls) => NodeError::NotRedis(OtherProtocol::Tls),
            // A peer that has spoken RESP is not a web server.
            Some(other) if !matches!(self.state, State::Ready) => NodeError::NotRedis(other),
            _ if self.is_unknown_protocol(bytes, &error) => {
                NodeError::NotRedis(OtherProtocol::Unknown)
            }
            _ => NodeError::Protocol(error),
        }
    }

    /// Is this error about the first byte that the server sent, which begins no RESP value?
    fn is_unknown_protocol(&self, bytes: &[u8], error: &ProtocolError) -> bool {
        let State::Greeting { handshake, .. } = &self.state else {
            return false;
        };
        let ProtocolError::UnknownType(byte) = error else {
            return false;
        };
        handshake.next == 0 && bytes.first() == Some(byte)
    }
}
