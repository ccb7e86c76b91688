//! How a session stands: what can be asked of it without changing anything.

use super::{Session, State};
use crate::clock::Time;
use crate::engine::Request;
use crate::node::command::has_proof;
use crate::node::node_error::{NodeError, Phase};
use crate::node::report::NodeStatus;
use std::sync::Arc;
use std::time::Duration;

impl Session {
    /// What the node is called in reports.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.options.name
    }

    /// What is being waited for.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Down { .. } => Phase::Connecting,
            State::Connecting { phase, .. } => phase,
            State::Greeting { .. } => Phase::Greeting,
            State::Ready => Phase::Answering,
        }
    }

    /// How many commands are unanswered, and how many removals are owed.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.flight.len(), self.pending_releases.len())
    }

    /// Could what has arrived from this node be taken for the answer to this request, if it were
    /// read only after the request has been written? If nothing is asked, whatever has arrived is
    /// no answer to anything. If something is, what comes behind its answer would be taken for that
    /// of the next command, and only a script's answer proves that it is its own.
    pub(in crate::node) fn must_be_read_before(&self, request: &Request) -> bool {
        let is_ready = matches!(self.state, State::Ready);
        is_ready && (self.flight.is_empty() || !has_proof(request))
    }

    /// Is so much unanswered that this request would be turned away, or would be left lying because
    /// nobody waits for it?
    pub(in crate::node) fn is_crowded(&self, request: &Request) -> bool {
        let would_lie = self.is_silent || !request.verb().is_answered();
        would_lie && self.is_ready() && !self.flight.has_room(request)
    }

    /// Are removals under way, on a connection that has not been silent for `patience`?
    pub(in crate::node) fn has_removals(&self, now: Time, patience: Duration) -> bool {
        let is_connected = !matches!(self.state, State::Down { .. });
        let is_any = self.flight.has_removals() || !self.pending_releases.is_empty();
        is_any && is_connected && self.is_alive(now, patience)
    }

    /// Is there nothing that has been waited for for `patience` without a sign of life?
    pub(super) fn is_alive(&self, now: Time, patience: Duration) -> bool {
        self.silence().is_none_or(|since| now < since.after(patience))
    }

    /// Was the node silent for as long as a round may last, when last that was looked at, and has
    /// it not been heard of since?
    pub(in crate::node) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Has a greeting been answered since this was last asked?
    pub(in crate::node) fn take_greeted(&mut self) -> bool {
        std::mem::take(&mut self.has_greeted)
    }

    /// Is there a connection that can be used at once?
    pub(in crate::node) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Why there is no connection, if there is none and one was tried.
    pub(in crate::node) fn loss(&self) -> Option<&NodeError> {
        self.problem.as_ref().filter(|_| self.is_down())
    }

    /// Since when the node owes an answer: to the oldest command, or to the one who connects.
    pub(in crate::node) fn unanswered_since(&self) -> Option<Time> {
        match &self.state {
            State::Down { .. } => None,
            State::Connecting { since, .. } | State::Greeting { since, .. } => Some(*since),
            State::Ready => self.flight.oldest(),
        }
    }

    /// The random name of the server, as of the last connection.
    pub(in crate::node) fn run_id(&self) -> Option<&str> {
        self.identity.as_ref().and_then(|identity| identity.run_id.as_deref())
    }

    /// Why the replies of this node do not count, if it is the same server as an earlier node.
    pub(in crate::node) fn same_server(&self) -> Option<NodeError> {
        self.same_server.clone().map(|url| NodeError::SameServer { url })
    }

    /// Sets the URL of the earlier node that is the same server, if there is one. Returns what
    /// [`same_server`](Self::same_server) was before.
    pub(in crate::node) fn set_same_server(&mut self, url: Option<Arc<str>>) -> Option<NodeError> {
        let before = std::mem::replace(&mut self.same_server, url);
        before.map(|url| NodeError::SameServer { url })
    }

    /// How the client stands with the node.
    pub(in crate::node) fn status(&self, now: Time, round_trip: Option<Duration>) -> NodeStatus {
        let is_connected = matches!(self.state, State::Ready);
        let identity = self.identity.as_ref();
        let uptime = identity.and_then(|identity| identity.uptime).filter(|_| is_connected);
        NodeStatus {
            url: Arc::clone(&self.options.name),
            is_connected,
            server: identity.and_then(|identity| identity.server.clone()),
            version: identity.and_then(|identity| identity.version.clone()),
            uptime: uptime
                .map(|uptime| uptime.saturating_add(now.since(self.least_uptime.greeted_at))),
            quarantine: self.quarantine_left(now).filter(|_| is_connected),
            round_trip,
            last_error: self.same_server().or_else(|| self.problem.clone()),
        }
    }

    /// Until when silence is borne, and what for.
    pub(super) fn patience(&self) -> Option<(Time, Phase)> {
        self.silence().map(|since| (since.after(self.options.silence_max), self.phase()))
    }

    /// Since when something has been waited for on this connection, without a sign of life.
    pub(super) fn silence(&self) -> Option<Time> {
        match &self.state {
            State::Down { .. } => None,
            State::Connecting { since, .. } | State::Greeting { since, .. } => Some(*since),
            State::Ready => self.flight.oldest().map(|sent| sent.max(self.answered_at)),
        }
    }
}
