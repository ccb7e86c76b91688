//! The conversation with one node, over however many connections it takes.
//!
//! ```text
//!            connecting()            connected()             greeting answered
//!   Down ─────────────────▶ Connecting ─────────▶ Greeting ───────────────────▶ Ready
//!    ▲                          │                    │                            │
//!    └───── closed(), no answer in time, bytes that cannot be trusted ────────────┘
//! ```
//!
//! The owner of the socket connects when [`Session::wants_connection`], writes [`Session::output`],
//! passes on what it reads to [`Session::received`], and closes the socket when
//! [`Session::is_down`]. Answers are fetched with [`Session::poll_answer`].
//!
//! Three things hold at any time. Replies are matched to commands by their order on the connection;
//! a connection on which that could have slipped is closed, never mended. A removal is either on
//! the connection behind what it removes, or owed, and what is owed is written first on the next
//! connection. And what is unanswered is bounded in number and bytes; what finds no room waits, in
//! its order, for as long as the node answers. So there is no more of it than there are callers,
//! and locks that they have given up.

mod least_uptime;
mod options;
mod pending;
mod replies;
mod reply_order;
mod room;
mod status;

pub use options::{Answer, SessionOptions};

use super::Ticket;
use super::command::KnownScripts;
use super::flight::Flight;
use super::former::FormerConnections;
use super::handshake::Handshake;
use super::identity::Identity;
use super::node_error::{NodeError, Phase};
use super::pending_releases::PendingReleases;
use super::waiting::Waiting;
use crate::clock::Time;
use crate::engine::{Backoff, Jitter, Request};
use crate::resp::Decoder;
use least_uptime::LeastUptime;
use reply_order::ReplyOrder;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The conversation with one node. The module says how it is driven.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    state: State,
    decoder: Decoder,
    /// The beginning of a reply that has not come as a whole.
    input: Vec<u8>,
    flight: Flight,
    scripts: KnownScripts,
    /// Requests that wait for the connection to be ready, or for room on it.
    waiting: Waiting,
    pending_releases: PendingReleases,
    answers: VecDeque<Answer>,
    backoff: Backoff,
    /// When a command was last answered.
    answered_at: Time,
    /// Has it been silent for too long to be waited for, and not been heard of since?
    is_silent: bool,
    /// Before this nothing that is owed is paid: the node has just refused to take it.
    pay_at: Time,
    /// Since when connections were given up because they could not be trusted, and how many.
    distrusted: (Time, u32),
    /// Has a command been answered on this connection?
    is_proven: bool,
    reply_order: ReplyOrder,
    identity: Option<Identity>,
    former: FormerConnections,
    has_greeted: bool,
    least_uptime: LeastUptime,
    problem: Option<NodeError>,
    /// The URL of an earlier node that is the same server.
    same_server: Option<Arc<str>>,
}

#[derive(Debug)]
enum State {
    Down { retry_at: Time },
    Connecting { since: Time, phase: Phase },
    Greeting { since: Time, handshake: Handshake },
    Ready,
}

impl Session {
    /// A session that has no connection yet.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        let (base, cap) = options.reconnect;
        Self {
            backoff: Backoff::new(base, cap, Jitter::from_seed(options.seed)),
            // Far enough from the numbers of any other client, and from what a script can count.
            flight: Flight::after(options.seed >> 24),
            options,
            state: State::Down { retry_at: Time::ZERO },
            decoder: Decoder::new(),
            input: Vec::new(),
            scripts: KnownScripts::default(),
            waiting: Waiting::default(),
            pending_releases: PendingReleases::default(),
            answers: VecDeque::new(),
            answered_at: Time::ZERO,
            is_silent: false,
            pay_at: Time::ZERO,
            distrusted: (Time::ZERO, 0),
            is_proven: false,
            reply_order: ReplyOrder::default(),
            identity: None,
            former: FormerConnections::default(),
            has_greeted: false,
            least_uptime: LeastUptime::NONE,
            problem: None,
            same_server: None,
        }
    }

    /// Sends a request, or puts it down for as soon as there is a connection and room on it. With a
    /// ticket there will be an answer to it, at once if it cannot be sent; without one, nobody is
    /// told.
    pub fn send(&mut self, now: Time, ticket: Option<Ticket>, request: &Request) {
        // Nothing may find a key that should be gone, and nobody overtakes who waits for room.
        self.fill(now);
        match &self.state {
            State::Ready if self.flight.has_room(request) => {
                self.write(now, ticket, request.clone());
            }
            State::Down { retry_at } if now < *retry_at => {
                let problem =
                    self.problem.clone().unwrap_or(NodeError::TimedOut(Phase::Connecting));
                self.lose(now, ticket, request.clone(), &problem, false);
            }
            _ if request.verb().is_removal() => self.remove_later(now, ticket, request.clone()),
            _ => match ticket {
                Some(ticket) if self.may_wait() => self.waiting.push(ticket, request.clone()),
                _ => self.lose(now, ticket, request.clone(), &NodeError::Overloaded, false),
            },
        }
    }

    /// Nobody waits for this answer any more. If the request has not been sent yet, it never will
    /// be, except a removal. Answers whether that is so.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        self.waiting.cancel(ticket) || self.pending_releases.unwait(ticket)
    }

    /// Is there a reason to connect, and has the pause since the last try passed?
    #[must_use]
    pub fn wants_connection(&self, now: Time) -> bool {
        let State::Down { retry_at } = self.state else { return false };
        now >= retry_at && !(self.waiting.is_empty() && self.pending_releases.is_empty())
    }

    /// Is there no connection, and none under way? Then the socket is to be closed.
    #[must_use]
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }

    /// A connection is being made. `phase` says what is being waited for.
    pub fn connecting(&mut self, now: Time, phase: Phase) {
        let since = match self.state {
            // The address was found; the time that may pass counts from the beginning.
            State::Connecting { since, .. } => since,
            _ => now,
        };
        self.state = State::Connecting { since, phase };
    }

    /// The connection stands. The greeting is in the output.
    pub fn connected(&mut self, now: Time) {
        debug_assert!(self.flight.is_empty() && self.input.is_empty(), "a new connection");
        self.decoder = Decoder::new();
        self.scripts = KnownScripts::default();
        self.reply_order = ReplyOrder::default();
        let (credentials, former) = (&self.options.credentials, self.former.clone());
        let handshake = Handshake::begin(credentials, former, self.flight.output_mut());
        self.state = State::Greeting { since: now, handshake };
    }

    /// The connection was lost, or could not be made.
    pub fn closed(&mut self, now: Time, problem: NodeError) {
        let problem = match &mut self.state {
            State::Down { .. } => return,
            // A server that turns a client away says why, and then closes.
            State::Greeting { handshake, .. } => handshake.complaint().unwrap_or(problem),
            State::Connecting { .. } | State::Ready => problem,
        };
        // A connection that worked and was closed while nothing was asked of it says nothing
        // against the node: servers restart, and close what lies idle.
        let was_idle = std::mem::take(&mut self.is_proven) && self.flight.is_empty();
        let pause = if was_idle { Duration::ZERO } else { self.backoff.next_delay(Duration::ZERO) };
        let retry_at = now.after(pause);
        let was_ready = matches!(self.state, State::Ready);
        self.state = State::Down { retry_at };
        self.problem = Some(problem.clone());
        self.input.clear();
        let may_deliver = was_ready && !(self.flight.is_empty() && self.reply_order.is_settled());
        if let Some(server) = self.identity.as_ref().filter(|_| may_deliver) {
            self.former.add(server);
        }
        for command in self.flight.clear() {
            self.lose(now, command.ticket, command.request, &problem, true);
        }
        while let Some((ticket, request)) = self.waiting.pop() {
            self.lose(now, Some(ticket), request, &problem, false);
        }
        for ticket in self.pending_releases.unwait_all() {
            self.fail(ticket, &problem, false);
        }
    }

    /// Bytes have come.
    pub fn received(&mut self, now: Time, bytes: &[u8]) {
        self.is_silent = false;
        let mut input = std::mem::take(&mut self.input);
        let rest = if input.is_empty() {
            self.decode(now, bytes)
        } else {
            input.extend_from_slice(bytes);
            self.decode(now, &input)
        };
        if self.is_down() {
            return;
        }
        let begun = if input.is_empty() {
            &bytes[bytes.len() - rest..]
        } else {
            &input[input.len() - rest..]
        };
        if let Some(problem) = self.stray(begun) {
            return self.distrust(now, problem);
        }
        // Only the beginning of a reply is kept, in the buffer that is there.
        if input.is_empty() {
            input.extend_from_slice(&bytes[bytes.len() - rest..]);
        } else {
            input.drain(..input.len() - rest);
        }
        self.input = input;
        self.fill(now);
    }

    /// The bytes to write to the connection.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.flight.output()
    }

    /// The first `count` bytes of the output were written.
    pub fn wrote(&mut self, count: usize) {
        self.flight.wrote(count);
    }

    /// Time has passed: gives up a connection on which nothing was answered for too long. What has
    /// arrived must be passed on before, or a node would be called silent that is not.
    pub fn tick(&mut self, now: Time) {
        self.is_silent |= !self.is_alive(now, self.options.patience);
        for ticket in self.pending_releases.expire(now) {
            self.fail(ticket, &NodeError::TimedOut(self.phase()), false);
        }
        if let Some((limit, phase)) = self.patience() {
            if now >= limit {
                self.closed(now, NodeError::TimedOut(phase));
            }
        }
        self.fill(now);
        self.turn_away(now);
    }

    /// When [`tick`](Self::tick), or a new connection, will have something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        match self.state {
            State::Down { retry_at }
                if !(self.waiting.is_empty() && self.pending_releases.is_empty()) =>
            {
                Some(retry_at)
            }
            _ => {
                let limit = self.patience().map(|(limit, _)| limit);
                let deadlines = [limit, self.pays_at(), self.turns_away_at()];
                deadlines.into_iter().flatten().min()
            }
        }
    }

    /// The next answer. It is a failed vote if this node is the same server as an earlier one.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        let answer = self.answers.pop_front()?;
        Some(answer.failed_by(self.same_server()))
    }
}

#[cfg(test)]
mod tests;
