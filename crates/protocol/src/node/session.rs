//! The session with one node: the protocol state, across reconnects.
//!
//! ```text
//!            connecting()            connected()             greeting answered
//!   Down ─────────────────▶ Connecting ─────────▶ Greeting ───────────────────▶ Ready
//!    ▲                          │                    │                            │
//!    └───── closed(), no answer in time, bytes that cannot be trusted ────────────┘
//! ```
//!
//! The owner of the socket connects when [`Session::wants_connection`], calls
//! [`Session::about_to_write`] and writes [`Session::output`], gives the bytes that it reads to
//! [`Session::received`], and closes the socket when [`Session::is_down`]. [`Session::poll`]
//! returns what has happened: answers, above all. Invariants:
//!
//! - Replies are matched to commands by order; a connection whose order is wrong is closed.
//! - A removal is in flight behind what it removes, or a pending release: written first on the next
//!   connection.
//! - Unanswered commands are bounded in number and bytes. Requests without room wait in order while
//!   the node answers: at most one for each caller, and for each lock that a caller gave up.

mod connection;
mod custom;
mod deadlines;
mod events;
#[cfg(feature = "diagnostics")]
mod examining;
#[cfg_attr(not(feature = "groups"), path = "session/no_group.rs")]
mod group;
mod notifications;
mod outbox;
mod replies;
mod server;
mod trust;

pub use events::SessionEvent;
pub use notifications::Hint;
pub(super) use trust::SameServer;

use super::command::NodeReply;
use super::flight::{Flight, Queued, RequestQueue};
use super::handshake::Handshake;
use super::pending_releases::PendingReleases;
use super::wrong_server::NamedServer;
use super::{Credentials, GroupOptions, NodeError, NodeKind, Phase, SharedRequest, Ticket};
use crate::engine::{Backoff, Jitter};
use crate::time::Time;
use connection::{Arrival, Connection};
use notifications::Notifications;
use server::LastServer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use trust::Trust;

#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The name of the node in reports: its URL.
    pub name: Arc<str>,
    pub credentials: Credentials,
    /// How long a node may be silent before a contended attempt stops waiting for it: as long as
    /// a round lasts.
    pub node_timeout: Duration,
    /// How long one attempt to connect may take, from its first phase to the end of the greeting.
    pub connect_timeout: Duration,
    /// How long a node may be silent with commands unanswered before its connection is given up.
    pub silence_max: Duration,
    /// Does a round without a majority wait for this node while it is silent?
    pub is_waited_for: bool,
    /// The upper bounds of the pause between two connections: of the first pause, and of any.
    pub reconnect: (Duration, Duration),
    /// How long a node must have been running before its grants count.
    pub quarantine: Option<Duration>,
    /// Set if the node is a replicated group.
    pub group: Option<Arc<GroupOptions>>,
    /// Is its master named by other servers?
    pub is_looked_up: bool,
    /// The seed for the jitter of those pauses, and for the first command number.
    pub seed: u64,
}

impl SessionOptions {
    /// Is this node a slot of a cluster?
    fn is_slot(&self) -> bool {
        self.named_server() == NamedServer::Slot
    }

    fn named_server(&self) -> NamedServer {
        self.group
            .as_ref()
            .map_or(NamedServer::Plain, |group| group.named_server())
    }

    fn kind(&self) -> NodeKind {
        match &self.group {
            None => NodeKind::Server,
            Some(_) => NodeKind::Group,
        }
    }

    /// The options that `config` documents as defaults, except that grants count at once.
    pub fn new(name: &str, seed: u64) -> Self {
        Self {
            name: Arc::from(name),
            credentials: Credentials::default(),
            node_timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(2),
            silence_max: Duration::from_millis(500),
            is_waited_for: true,
            reconnect: (Duration::from_millis(10), Duration::from_millis(500)),
            quarantine: None,
            group: None,
            is_looked_up: false,
            seed,
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub ticket: Ticket,
    pub reply: NodeReply,
    /// Was the request written, or queued to be written? Then the node may have acted on it.
    pub was_sent: bool,
    /// How long the reply took, if there is one.
    pub took: Option<Duration>,
}

/// The session with one node. The module documentation describes how to use it.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    state: State,
    connection: Connection,
    server: LastServer,
    trust: Trust,
    flight: Flight,
    notifications: Notifications,
    /// Requests that wait until the connection is ready or has room.
    waiting: RequestQueue<()>,
    pending_releases: PendingReleases,
    answers: VecDeque<Answer>,
    backoff: Backoff,
    answered_at: Time,
    /// Has the node been silent for `node_timeout`, and sent nothing since?
    is_silent: bool,
    /// No pending release is written before this time: the node has just refused one.
    pending_at: Time,
    /// Distrusted connections: the time of the first one that counts, and their number.
    distrusted: (Time, u32),
    /// When the attempt to connect is given up, from the first phase to the end of the greeting.
    connects_until: Time,
    arrival: Arrival,
    /// Has a greeting been answered, which was not taken out yet?
    has_greeted: bool,
    /// Has a connection ended, which was not taken out yet, and was it ready?
    went_down: Option<bool>,
    problem: Option<NodeError>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each node, not one per command"
)]
enum State {
    Down { retry_at: Time },
    Connecting { since: Time, phase: Phase },
    Greeting { since: Time, handshake: Handshake },
    Ready,
}

impl Session {
    pub fn new(options: SessionOptions) -> Self {
        let (base, cap) = options.reconnect;
        let skew = options
            .group
            .as_ref()
            .map_or(Duration::ZERO, |group| group.skew());
        Self {
            backoff: Backoff::new(base, cap, Jitter::from_seed(options.seed)),
            // Far enough from the numbers of any other client, and from what a script can count.
            flight: Flight::after(options.seed >> 24, options.group.clone()),
            options,
            state: State::Down {
                retry_at: Time::ZERO,
            },
            connection: Connection::default(),
            server: LastServer::default(),
            trust: Trust::default(),
            notifications: Notifications::default(),
            waiting: RequestQueue::default(),
            pending_releases: PendingReleases::new(skew),
            answers: VecDeque::new(),
            answered_at: Time::ZERO,
            is_silent: false,
            pending_at: Time::ZERO,
            distrusted: (Time::ZERO, 0),
            connects_until: Time::ZERO,
            arrival: Arrival::default(),
            has_greeted: false,
            went_down: None,
            problem: None,
        }
    }

    /// Sends a request, or queues it until there is a connection with room. One with a ticket gets
    /// an answer, immediately if it cannot be sent.
    pub fn send(
        &mut self,
        now: Time,
        mut ticket: Option<Ticket>,
        request: impl Into<SharedRequest>,
    ) {
        let mut request = request.into();
        if let Some(group) = self.options.group.clone() {
            self.greet_again(now, &group);
        }
        // Pending releases and requests that wait for room are written first.
        self.fill(now);
        if request.waiter().is_some() {
            self.adapt(now, &mut ticket, &mut request);
        }
        match &self.state {
            State::Ready if self.flight.has_room(&request) => self.write(now, ticket, request),
            State::Down { retry_at } if now < *retry_at => {
                let problem = self.problem.clone();
                let problem = problem.unwrap_or(NodeError::TimedOut(Phase::Connecting));
                self.lose(now, ticket, request, &problem, false);
            }
            _ if request.is_removal() => self.remove_later(now, ticket, request),
            _ if ticket.is_some() && self.may_wait() => self.waiting.push(ticket, request, ()),
            _ => self.lose(now, ticket, request, &NodeError::Overloaded, false),
        }
    }

    /// The connection was lost, or could not be made.
    pub fn closed(&mut self, now: Time, problem: NodeError) {
        let problem = match &mut self.state {
            State::Down { .. } => return,
            // A server that refuses a client sends the reason, and then closes.
            State::Greeting { handshake, .. } => handshake.problem.take().unwrap_or(problem),
            State::Connecting { .. } | State::Ready => problem,
        };
        self.arrival.closed(&problem);
        let problem = self.of_place(problem);
        // No pause if an idle connection was closed: servers restart, and close idle connections.
        let was_idle = std::mem::take(&mut self.connection.is_proven) && self.flight.is_empty();
        let pause = if was_idle {
            Duration::ZERO
        } else {
            self.backoff.next_delay(Duration::ZERO)
        };
        // The pause counts from the failure, of which the next call may learn long after: what
        // leaves a round unanswered has failed by its end.
        let retry_at = self.silent_at().map_or(now, |at| at.min(now)).after(pause);
        let was_ready = self.is_ready();
        self.went_down = Some(was_ready || self.went_down == Some(true));
        self.state = State::Down { retry_at };
        self.problem = Some(problem.clone());
        self.connection.input.clear();
        self.notifications.lose();
        let may_deliver = was_ready && !(self.flight.is_empty() && self.trust.order.is_settled());
        if let Some(server) = self.server.identity.as_ref().filter(|_| may_deliver) {
            self.server.stale.add(server);
        }
        for command in self.flight.clear() {
            self.lose(now, command.ticket, command.request, &problem, true);
        }
        if self.options.group.is_some() {
            self.lose_reign(now, &problem);
        }
        while let Some(Queued {
            ticket, request, ..
        }) = self.waiting.pop()
        {
            self.lose(now, ticket, request, &problem, false);
        }
        for ticket in self.pending_releases.queue.unwait_all() {
            self.fail(ticket, &problem, false);
        }
    }

    pub fn received(&mut self, now: Time, bytes: &[u8]) {
        self.is_silent = false;
        let mut input = std::mem::take(&mut self.connection.input);
        let is_whole = input.is_empty();
        if !is_whole {
            input.extend_from_slice(bytes);
        }
        let unread = if is_whole { bytes } else { &input };
        let rest = self.decode(now, unread);
        if self.is_down() {
            return;
        }
        if let Some(problem) = self.unsolicited_beginning(&unread[unread.len() - rest..]) {
            return self.distrust(now, problem);
        }
        // Keeps only the incomplete reply, in the existing buffer.
        if is_whole {
            input.extend_from_slice(&bytes[bytes.len() - rest..]);
        } else {
            input.drain(..input.len() - rest);
        }
        self.connection.input = input;
        self.fill(now);
    }

    /// The output is about to be written. In a group, the question behind the votes in it is asked
    /// now: one for all of them.
    pub fn about_to_write(&mut self) {
        if let Some(group) = self.options.group.clone() {
            self.seal(&group);
        }
    }

    pub fn output(&self) -> &[u8] {
        self.flight.output()
    }

    pub fn wrote(&mut self, count: usize) {
        self.flight.wrote(count);
    }
}

#[cfg(test)]
mod tests;
