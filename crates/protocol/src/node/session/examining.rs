//! What a server has said about its state, and the status that follows from it.
//!
//! Questions about the server's state are asked along with a ping, on the connection of the locks.
//! They are written all at once, before the ping, and nobody waits for their answers: the ping's is
//! behind them. A question that the server refuses changes nothing for locks.

use super::Session;
use crate::engine::{Command, Question, Request};
use crate::node::command::{Form, NoReply, NodeReply};
use crate::node::diagnostics::Examination;
use crate::node::{Host, NodeError, NodeStatus};
use crate::time::Time;
use std::time::Duration;

impl Session {
    /// Notes on which machine the node is. Call it after [`connected`](Self::connected).
    pub fn leads_to(&mut self, host: Option<Host>) {
        self.connection.examination.host = host;
    }

    /// Notes how long an answer took that a round has waited for.
    pub(in crate::node) fn note_round_trip(&mut self, took: Option<Duration>) {
        self.server.round_trip = took.or(self.server.round_trip);
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
    pub(super) fn examined(
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

    pub(in crate::node) fn status(&self, now: Time) -> NodeStatus {
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
            round_trip: self.server.round_trip,
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
            // `add_warnings` knows the time of day, and a round of its own asks about registers.
            ..NodeStatus::unknown(&self.options.name)
        }
    }
}
