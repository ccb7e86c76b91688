//! What a session knows about the node's server: who it is, for how long it has certainly kept its
//! data, and what it has told about its state.
//!
//! A server that restarts without its data grants locks that are still held. Its grants count only
//! when it has been up for as long as the longest ttl: then every lock that it lost has expired on
//! the other nodes too. A restart breaks the connection, so each greeting checks the uptime.
//!
//! Questions about the server's state are asked along with a ping, on the connection of the locks.
//! They are written all at once, before the ping, and nobody waits for their answers: the ping's is
//! behind them. A question that the server refuses changes nothing for locks.

use super::Session;
use crate::engine::{Action, Question, Request};
use crate::node::command::{Form, Meaning};
use crate::node::examination::Finding;
use crate::node::former::FormerConnections;
use crate::node::identity::Identity;
use crate::node::node_error::NodeError;
use crate::node::server_error::ServerErrorKind;
use crate::node::warning::Host;
use crate::time::Time;
use std::time::Duration;

/// The server that answered last.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) identity: Option<Identity>,
    pub(super) least_uptime: LeastUptime,
    /// Earlier connections, which may still deliver what was written on them.
    pub(super) former: FormerConnections,
}

impl Server {
    /// Nothing is known yet.
    pub(super) fn unknown() -> Self {
        let former = FormerConnections::default();
        Self { identity: None, least_uptime: LeastUptime::NONE, former }
    }

    /// A server has introduced itself. The one before was heard last at `heard_at`.
    pub(super) fn greeted(&mut self, now: Time, identity: Identity, heard_at: Time) {
        let heard_at = heard_at.max(self.least_uptime.greeted_at);
        self.least_uptime = LeastUptime::of(now, &identity, self.identity.as_ref(), heard_at);
        // A server that reports no `run_id` is assumed to be the same as before.
        let before = self.identity.take().and_then(|identity| identity.run_id);
        self.identity = Some(Identity { run_id: identity.run_id.clone().or(before), ..identity });
    }
}

/// The error of a reported uptime: the time of the start is truncated to whole seconds. A server
/// that started at 10.9 and is asked at 20.0 reports 10.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// A lower bound of a node's uptime.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastUptime {
    /// When the node answered the greeting.
    pub(super) greeted_at: Time,
    /// The lower bound at that time.
    uptime: Duration,
}

impl LeastUptime {
    /// Nothing is known of the node.
    pub(super) const NONE: Self = Self { greeted_at: Time::ZERO, uptime: Duration::ZERO };

    /// The lower bound after a greeting with this identity. `before` is the identity of the
    /// previous greeting, and `heard_at` the time of the last reply before this greeting.
    pub(super) fn of(
        now: Time,
        identity: &Identity,
        before: Option<&Identity>,
        heard_at: Time,
    ) -> Self {
        // Without a reported uptime, the bound counts from this greeting.
        let said = identity.uptime.unwrap_or_default().saturating_sub(UPTIME_GRAIN);
        let is_another = before.is_some_and(|before| {
            before.run_id.is_some() && identity.run_id.is_some() && before.run_id != identity.run_id
        });
        // If this is another server, it replaced the previous one after that one's last reply, so
        // its own uptime counts no further back: its clock may have been set, or it was a replica.
        let most = if is_another { now.since(heard_at) } else { Duration::MAX };
        Self { greeted_at: now, uptime: said.min(most) }
    }
}

impl Session {
    /// How long until the node's grants count. `None` if they count now.
    pub(super) fn quarantine_left(&self, now: Time) -> Option<Duration> {
        let LeastUptime { greeted_at, uptime } = self.server.least_uptime;
        let wanted = self.options.quarantine?;
        let left = wanted.saturating_sub(uptime).saturating_sub(now.since(greeted_at));
        (!left.is_zero()).then_some(left)
    }

    /// The error of an answer to this request that does not count yet.
    pub(in crate::node) fn quarantine(&self, now: Time, request: &Request) -> Option<NodeError> {
        let left = self.quarantine_left(now).filter(|_| !request.counts_in_quarantine());
        left.map(|left| NodeError::Quarantined { left })
    }

    /// Notes on which machine the node is. Call it after [`connected`](Self::connected).
    pub fn leads_to(&mut self, host: Option<Host>) {
        self.connection.examination.host = host;
    }

    /// Asks the questions that belong to this request.
    pub(super) fn examine(&mut self, now: Time, request: &Request) {
        if !matches!(request.action, Action::Ping { asks: true }) {
            return;
        }
        for question in self.connection.examination.questions() {
            let ask = Request { action: Action::Ask(question), ..request.clone() };
            self.flight.push(now, None, ask, Form::Digest);
        }
    }

    /// Takes the answer to a question that was written at `sent_at`.
    pub(super) fn told(
        &mut self,
        question: Question,
        meaning: Meaning,
        between: (Time, Time),
    ) -> Result<(), NodeError> {
        match meaning {
            Meaning::Nonsense(problem) => return Err(problem),
            Meaning::Told(finding) => self.connection.examination.note(finding, between),
            Meaning::Failed(NodeError::Server(error)) if is_lasting(error.kind) => {
                self.connection.examination.refuse(question, between);
            }
            _ => self.connection.examination.note(Finding::unknown(question), between),
        }
        Ok(())
    }
}

/// Will the server refuse the same command again?
fn is_lasting(kind: ServerErrorKind) -> bool {
    matches!(kind, ServerErrorKind::NoPermission | ServerErrorKind::UnknownCommand)
}
