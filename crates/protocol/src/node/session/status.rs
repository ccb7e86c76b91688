//! The answers and the status of a session.

use super::{Answer, Session, State};
use crate::engine::{Request, Verb};
use crate::node::command::has_proof;
use crate::node::node_error::{NodeError, Phase};
use crate::node::report::NodeStatus;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

impl Session {
    /// The next answer. It is a failed vote if this node is the same server as an earlier node.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        let answer = self.answers.pop_front()?;
        Some(answer.failed_by(self.same_server()))
    }

    /// The name of the node in reports: its URL.
    pub fn name(&self) -> &Arc<str> {
        &self.options.name
    }

    /// The step that the session waits for.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Down { .. } => Phase::Connecting,
            State::Connecting { phase, .. } => phase,
            State::Greeting { .. } => Phase::Greeting,
            State::Ready => Phase::Answering,
        }
    }

    /// The number of unanswered commands, and of pending releases.
    pub fn load(&self) -> (usize, usize) {
        (self.flight.len(), self.pending_releases.len())
    }

    /// Must bytes that have arrived be read before this request is written? Otherwise a stray reply
    /// could be matched to the request. On an idle connection, any bytes are stray. If commands are
    /// unanswered, bytes behind their replies are stray, and only a script's reply proves which
    /// command it answers: those of the commands by which a key is watched have no proof.
    pub(in crate::node) fn must_be_read_before(&self, request: &Request) -> bool {
        let is_ready = matches!(self.state, State::Ready);
        let is_tracked = request.verb() == Verb::Custom && request.waiter().is_some();
        is_ready && (self.flight.is_empty() || is_tracked || !has_proof(request))
    }

    /// Is there no room for this request, and would it be refused, or be left in the queue because
    /// no caller waits for its answer?
    pub(in crate::node) fn is_crowded(&self, request: &Request) -> bool {
        let is_unheard = self.is_silent || !request.verb().is_answered();
        is_unheard && self.is_ready() && !self.flight.has_room(request)
    }

    /// Are there unanswered or pending removals, and has the connection not been silent for
    /// `node_timeout`?
    pub(in crate::node) fn has_removals(&self, now: Time, node_timeout: Duration) -> bool {
        let is_connected = !matches!(self.state, State::Down { .. });
        let is_any = self.flight.has_removals() || !self.pending_releases.is_empty();
        is_any && is_connected && self.is_alive(now, node_timeout)
    }

    /// Is the node's silence shorter than `node_timeout`?
    pub(super) fn is_alive(&self, now: Time, node_timeout: Duration) -> bool {
        self.silence().is_none_or(|since| now < since.after(node_timeout))
    }

    /// Was the node silent for as long as a round lasts at the last [`tick`](Self::tick), and has
    /// it sent nothing since?
    pub(in crate::node) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Has a greeting been answered since the last call?
    pub(in crate::node) fn take_greeted(&mut self) -> bool {
        std::mem::take(&mut self.has_greeted)
    }

    /// Is there a connection that can be used immediately?
    pub(in crate::node) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Why there is no connection, if the last attempt failed or the connection was lost.
    pub(in crate::node) fn loss(&self) -> Option<&NodeError> {
        self.problem.as_ref().filter(|_| self.is_down())
    }

    /// Since when an answer is missing: to the oldest command, to the greeting, or to connecting.
    pub(in crate::node) fn unanswered_since(&self) -> Option<Time> {
        match &self.state {
            State::Down { .. } => None,
            State::Connecting { since, .. } | State::Greeting { since, .. } => Some(*since),
            State::Ready => self.flight.oldest(),
        }
    }

    /// The `run_id` of the server, from the last connection.
    pub(in crate::node) fn run_id(&self) -> Option<&str> {
        self.server.identity.as_ref().and_then(|identity| identity.run_id.as_deref())
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

    /// When [`tick`](Self::tick) must be called, or a new connection must be made.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.state {
            State::Down { retry_at }
                if !(self.waiting.is_empty() && self.pending_releases.is_empty()) =>
            {
                Some(retry_at)
            }
            _ => {
                let limit = self.given_up_at().map(|(limit, _)| limit);
                let deadlines = [limit, self.pays_at(), self.fails_waiting_at()];
                deadlines.into_iter().flatten().min()
            }
        }
    }

    /// The status of the node, as the client sees it.
    pub(in crate::node) fn status(&self, now: Time, round_trip: Option<Duration>) -> NodeStatus {
        let is_connected = matches!(self.state, State::Ready);
        let identity = self.server.identity.as_ref();
        let uptime = identity.and_then(|identity| identity.uptime).filter(|_| is_connected);
        let examination = Some(self.connection.examination.clone()).filter(|_| is_connected);
        let examination = examination.unwrap_or_default();
        NodeStatus {
            url: Arc::clone(&self.options.name),
            is_connected,
            server: identity.and_then(|identity| identity.server.clone()),
            version: identity.and_then(|identity| identity.version.clone()),
            uptime: uptime.map(|uptime| {
                uptime.saturating_add(now.since(self.server.least_uptime.greeted_at))
            }),
            quarantine: self.quarantine_left(now).filter(|_| is_connected),
            round_trip,
            address: examination.host.and_then(|host| host.address),
            persistence: examination.persistence,
            memory: examination.memory(),
            role: examination.role,
            is_cluster: examination.is_cluster,
            clock: None, // `judge` knows the time of day.
            queue: self.queue_support().filter(|_| is_connected),
            registers: None, // A round of its own asks for it.
            zxid: None,
            last_error: self.same_server().or_else(|| self.problem.clone()),
            host: examination.host,
            clock_reading: examination.clock,
            warnings: Vec::new(),
        }
    }

    /// When the connection, or the attempt to make one, is given up, and the phase it is in.
    pub(super) fn given_up_at(&self) -> Option<(Time, Phase)> {
        let limit = match self.state {
            State::Down { .. } => None,
            State::Connecting { .. } | State::Greeting { .. } => Some(self.connects_until),
            State::Ready => self.silence().map(|since| since.after(self.options.silence_max)),
        };
        limit.map(|limit| (limit, self.phase()))
    }

    /// Since when the node has been silent although an answer is missing.
    pub(super) fn silence(&self) -> Option<Time> {
        match &self.state {
            State::Down { .. } => None,
            State::Connecting { since, .. } | State::Greeting { since, .. } => Some(*since),
            State::Ready => self.flight.oldest().map(|sent| sent.max(self.answered_at)),
        }
    }
}
