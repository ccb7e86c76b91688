//! What a session knows about the node's server and tells of it: who it is, and what it has said
//! about its state.
//!
//! Questions about the server's state are asked along with a ping, on the connection of the locks.
//! They are written all at once, before the ping, and nobody waits for their answers: the ping's is
//! behind them. A question that the server refuses changes nothing for locks.

use super::{Session, State};
use crate::engine::{Command, Question, Request};
use crate::node::command::{Form, NoReply, NodeReply, script_of};
use crate::node::examination::Examination;
use crate::node::{
    Host, Identity, NodeAnswer, NodeError, NodeReport, NodeStatus, Phase, StaleConnections,
};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The server that answered last.
#[derive(Debug, Default)]
pub(super) struct LastServer {
    pub(super) identity: Option<Identity>,
    /// Earlier connections, which may still deliver what was written on them.
    pub(super) stale: StaleConnections,
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

    /// Notes on which machine the node is. Call it after [`connected`](Self::connected).
    pub fn leads_to(&mut self, host: Option<Host>) {
        self.connection.examination.host = host;
    }

    /// Asks the questions that belong to this ping.
    pub(super) fn examine(&mut self, now: Time, request: &Request) {
        let group = self.options.group.as_deref();
        for question in self.connection.examination.questions(group) {
            let ask = Request {
                command: Command::Ask(question),
                ..*request
            };
            self.flight.push(now, None, ask.into(), Form::Digest);
        }
    }

    /// Takes the answer to a question that was written at `sent_at`.
    pub(super) fn told(
        &mut self,
        question: Question,
        read: Result<NodeReply, NoReply>,
        between: (Time, Time),
    ) -> Result<(), NodeError> {
        let examination = &mut self.connection.examination;
        match read {
            Err(NoReply::Nonsense(problem)) => return Err(problem),
            Err(NoReply::Failed(NodeError::Server(error))) if error.kind.is_refusal() => {
                examination.refuse(question, between);
            }
            read => {
                let told = read
                    .ok()
                    .and_then(|it| it.said?.get::<Examination>().cloned());
                examination.note(question, told.unwrap_or_default(), between);
            }
        }
        Ok(())
    }
}

// The state and the status of a session.

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

    /// Is it known at which address the node is tried?
    pub(super) fn is_found(&self) -> bool {
        let is_sought = matches!(
            self.state,
            State::Connecting {
                phase: Phase::Resolving,
                ..
            }
        );
        !is_sought && !self.is_down()
    }

    /// The error for an answer that is missing at the end of a round.
    pub(in crate::node) fn late(&self) -> NodeError {
        self.of_announced(NodeError::TimedOut(self.phase()))
    }

    /// The number of unanswered commands, and of pending releases.
    pub fn load(&self) -> (usize, usize) {
        (self.flight.len(), self.pending_releases.queue.len())
    }

    /// Must bytes that have arrived be read before this request is written? Otherwise a stray reply
    /// could be matched to the request. On an idle connection, any bytes are stray. If commands are
    /// unanswered, bytes behind their replies are stray, and only a script's reply proves which
    /// command it answers: those of the commands by which a key is watched have no proof.
    pub(in crate::node) fn must_be_read_before(&self, request: &Request) -> bool {
        let is_tracked = request
            .custom()
            .is_some_and(|command| command.watcher().is_some());
        self.is_ready() && (self.flight.is_empty() || is_tracked || script_of(request).is_none())
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

    pub(in crate::node) fn status(&self, now: Time, round_trip: Option<Duration>) -> NodeStatus {
        let is_connected = self.is_ready();
        let identity = self.server.identity.as_ref();
        let uptime = identity
            .and_then(|identity| identity.uptime)
            .filter(|_| is_connected);
        let examination = if is_connected {
            self.connection.examination.clone()
        } else {
            Examination::default()
        };
        NodeStatus {
            is_connected,
            server: identity.and_then(|identity| identity.server.clone()),
            version: identity.and_then(|identity| identity.version.clone()),
            uptime: uptime
                .map(|uptime| uptime.saturating_add(now.since(self.trust.uptime.greeted_at))),
            quarantine: self.quarantine_left(now).filter(|_| is_connected),
            round_trip,
            address: examination.host.and_then(|host| host.address),
            persistence: examination.persistence,
            memory: examination.memory(),
            role: examination.role,
            is_cluster: examination.is_cluster,
            group: self.trust.group.status(now).filter(|_| is_connected),
            queue: self.queue_support(now).filter(|_| is_connected),
            last_error: self.same_server().or_else(|| self.problem.clone()),
            host: examination.host,
            clock_reading: examination.clock,
            group_options: self.options.group.clone(),
            failover: examination.failover,
            sentinels: None,
            // `add_warnings` knows the time of day, and a round of its own asks about registers.
            ..NodeStatus::unknown(&self.options.name)
        }
    }
}
