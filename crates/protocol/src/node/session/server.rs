//! What a session knows about the node's server, and how it is with the node.

use super::{Session, State};
use crate::engine::Request;
use crate::node::command::script_of;
use crate::node::driver::STRAYS_FOR;
use crate::node::{Identity, NodeAnswer, NodeError, NodeReport, Phase, StaleConnections};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The server that answered last.
#[derive(Debug, Default)]
pub(super) struct LastServer {
    pub(super) identity: Option<Identity>,
    /// Earlier connections, which may still deliver what was written on them.
    pub(super) stale: StaleConnections,
    /// How long the last answer took that a round waited for.
    #[cfg(feature = "diagnostics")]
    pub(super) round_trip: Option<Duration>,
}

impl LastServer {
    /// A server has introduced itself.
    pub(super) fn greeted(&mut self, identity: Identity) {
        // A server that reports no `run_id` is assumed to be the same as before.
        let before = self.identity.take().and_then(|identity| identity.run_id);
        self.identity = Some(Identity {
            run_id: identity.run_id.clone().or(before),
            ..identity
        });
    }
}

impl Session {
    /// The report of this node with its answer.
    pub fn report(&self, answer: NodeAnswer) -> NodeReport {
        let name = Arc::clone(&self.options.name);
        let mut report = NodeReport::new(name, self.options.kind(), answer);
        report.former_reign = self.trust.group.former();
        report
    }
}

// The state of a session.

impl Session {
    pub fn name(&self) -> &Arc<str> {
        &self.options.name
    }

    /// The step that the session waits for.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Down { .. } => Phase::Connecting,
            State::Connecting {
                phase: Phase::Resolving,
                ..
            } if self.options.is_looked_up => Phase::Locating,
            State::Connecting { phase, .. } => phase,
            State::Greeting { .. } => Phase::Greeting,
            State::Ready => Phase::Answering,
        }
    }

    /// The error for an answer that is missing at the end of a round.
    pub(in crate::node) fn late(&self) -> NodeError {
        self.of_place(NodeError::TimedOut(self.phase()))
    }

    /// This error of a connection that is being made, or was lost; of one to a group with the place
    /// that was meant.
    pub(super) fn of_place(&self, problem: NodeError) -> NodeError {
        match self.options.group {
            Some(_) => self.of_announced(problem),
            None => problem,
        }
    }

    /// The number of unanswered commands, and of pending releases.
    pub fn load(&self) -> (usize, usize) {
        (self.flight.len(), self.pending_releases.queue.len())
    }

    /// Must bytes that have arrived be read before this request is written? Otherwise a stray reply
    /// could be matched to the request. On an idle connection, any bytes are stray. If commands are
    /// unanswered, bytes behind their replies are stray, and only a script's reply proves which
    /// command it answers: those of the commands by which a key is watched have no proof.
    ///
    /// The removal of an attempt that this node has not granted may be answered with an error,
    /// since the key may hold other data. It must be read if it is there: behind an error that is
    /// read later, the reply to a plain `SET` is not a vote.
    pub(in crate::node) fn must_be_read_before(&self, request: &Request) -> Option<Duration> {
        let is_tracked = request
            .custom()
            .is_some_and(|command| command.watcher().is_some());
        let is_unproven = self.flight.is_empty() || is_tracked || script_of(request).is_none();
        if !self.is_ready() || !is_unproven {
            return None;
        }
        let is_error_likely = !self.connection.has_granted && !self.flight.is_empty();
        Some(if is_error_likely {
            Duration::ZERO
        } else {
            STRAYS_FOR
        })
    }

    /// Is there no room for this request, and would it be refused, or be left in the queue because
    /// no caller waits for its answer?
    pub(in crate::node) fn is_crowded(&self, request: &Request) -> bool {
        let is_unheard = self.is_silent || !request.is_answered();
        is_unheard && self.is_ready() && !self.flight.has_room(request)
    }

    /// Are there unanswered or pending removals, and has the connection not been silent for
    /// `node_timeout`?
    pub(in crate::node) fn has_removals(&self, now: Time) -> bool {
        let is_any =
            self.flight.has(|it| it.is_removal()) || !self.pending_releases.queue.is_empty();
        is_any && !self.is_down() && self.is_alive(now)
    }

    /// Is there a connection that can be used immediately?
    pub(in crate::node) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Why there is no connection, if the last attempt failed or the connection was lost.
    pub(in crate::node) fn loss(&self) -> Option<&NodeError> {
        self.problem.as_ref().filter(|_| self.is_down())
    }

    /// The `run_id` of the server, from the last connection.
    pub(in crate::node) fn run_id(&self) -> Option<&str> {
        self.server
            .identity
            .as_ref()
            .and_then(|identity| identity.run_id.as_deref())
    }

    /// Does a request or a removal wait until it can be written?
    pub(super) fn has_unwritten(&self) -> bool {
        !(self.waiting.is_empty() && self.pending_releases.queue.is_empty())
    }
}
