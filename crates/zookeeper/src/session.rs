//! The session with an ensemble: the protocol state, over one connection after another.
//!
//! ```text
//!           connecting()             connected()             connect reply
//!   Down ──────────────▶ Connecting ─────────────▶ Greeting ──────────────▶ Ready
//!    ▲                       │                        │                       │
//!    └── closed(), no answer in time, bytes that cannot be trusted ───────────┘
//!
//!   identity: None ── the first connect reply ──▶ Some ── expired, ended by end() ──▶ None
//! ```
//!
//! The owner of the socket connects to [`EnsembleSession::server`] when
//! [`EnsembleSession::wants_connection`], writes [`EnsembleSession::output`], gives the bytes that
//! it reads to [`EnsembleSession::received`], and closes the socket when
//! [`EnsembleSession::is_down`]. [`EnsembleSession::poll`] returns what has happened. Invariants:
//!
//! - The identity outlives connections. It ends when the ensemble says so, or answers with another
//!   one, and then all znodes of the session are gone or about to be.
//! - Replies belong to requests by their order; a reply with another xid ends the connection.
//! - A delete is repeated on one connection after another until it is answered or the session has
//!   ended, and it is written before other requests.
//! - While the session has znodes, a write is sent in every seventh of its timeout, and a server
//!   that is silent for so long is left: see the module `validity`.

mod beats;
mod flight;
mod outcome;
mod replies;

use super::jute::frame;
use super::message::{ConnectRequest, EnsembleRequest, PASSWORD_LENGTH, Secret};
use super::validity::Validity;
use beats::Beats;
use flight::{Owner, PendingDelete, RequestsInFlight};
pub use outcome::{EnsembleAnswer, Failure, Problem, Response, SessionEvent};
use redlatch_protocol::engine::{Backoff, Jitter};
use redlatch_protocol::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How much memory for received bytes is kept when there are none, in bytes.
const INPUT_KEPT: usize = 64 * 1024;

/// The session with an ensemble. Its owner chooses a ticket for each request, and gets it back with
/// the answer.
#[derive(Debug)]
pub struct EnsembleSession<T> {
    options: EnsembleSessionOptions,
    state: State,
    servers: ServerOrder,
    identity: Option<SessionIdentity>,
    /// The largest zxid of any reply, over all sessions: a server that is behind is not used.
    last_zxid: i64,
    flight: RequestsInFlight<T>,
    /// The beginning of an incomplete frame.
    input: Vec<u8>,
    beats: Beats,
    /// Requests that wait for a connection.
    waiting: VecDeque<(Owner<T>, EnsembleRequest)>,
    /// Deletes that are not answered and not in flight.
    pending: VecDeque<PendingDelete<T>>,
    outcomes: VecDeque<SessionEvent<T>>,
    problem: Option<Problem>,
}

/// Who the client is to the ensemble, over all connections of a session.
#[derive(Debug)]
struct SessionIdentity {
    id: i64,
    password: Secret<[u8; PASSWORD_LENGTH]>,
    validity: Validity,
}

/// Nothing is written behind the end of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down { retry_at: Time },
    Connecting { since: Time },
    Greeting { since: Time, sent_at: Time },
    Ready { since: Time },
    Ending,
}

impl<T: Copy> EnsembleSession<T> {
    pub fn new(options: EnsembleSessionOptions) -> Self {
        Self {
            servers: ServerOrder::new(options.servers, options.reconnect, options.seed),
            options,
            state: State::Down {
                retry_at: Time::ZERO,
            },
            identity: None,
            last_zxid: 0,
            flight: RequestsInFlight::default(),
            input: Vec::new(),
            beats: Beats::default(),
            waiting: VecDeque::new(),
            pending: VecDeque::new(),
            outcomes: VecDeque::new(),
            problem: None,
        }
    }

    /// Sends a request, or keeps it until there is a connection. It gets one [`EnsembleAnswer`].
    pub fn send(&mut self, now: Time, ticket: T, request: EnsembleRequest) {
        self.beats.used_at = now;
        match self.state {
            State::Ready { .. } => self.write(now, Owner::Caller(ticket), &request),
            _ => self.waiting.push_back((Owner::Caller(ticket), request)),
        }
    }

    /// Deletes a znode of this session, now or on a later connection of it. With a ticket it gets
    /// an answer when it is carried out, or the session has ended. If it has to be repeated, a
    /// znode that is not there counts as deleted by it.
    pub fn delete(&mut self, now: Time, ticket: Option<T>, path: Arc<str>) {
        self.beats.used_at = now;
        self.beats.remove(&path);
        self.pending.push_back(PendingDelete {
            ticket,
            path,
            may_be_done: false,
        });
        self.write_pending(now);
    }

    /// Keeps this znode alive: the session has created it.
    pub fn keep(&mut self, path: Arc<str>) {
        self.beats.add(path);
    }

    /// Does not keep this znode alive any more: another request than [`delete`](Self::delete) has
    /// deleted it.
    pub fn forget(&mut self, path: &str) {
        self.beats.remove(path);
    }

    /// Ends the session, and with it all its znodes, if there is a connection. Otherwise the
    /// ensemble ends it when its timeout has passed. Deletes in flight are carried out before.
    pub fn end(&mut self, now: Time) {
        if let State::Ready { .. } = self.state {
            self.write(now, Owner::End, &EnsembleRequest::CloseSession);
            self.state = State::Ending;
        }
    }

    /// What has happened, in its order; `None` if there is nothing more to tell.
    pub fn poll(&mut self) -> Option<SessionEvent<T>> {
        self.outcomes.pop_front()
    }

    /// A connection is being made.
    pub fn connecting(&mut self, now: Time) {
        debug_assert!(self.is_down(), "one connection at a time");
        self.state = State::Connecting { since: now };
    }

    /// The connection is established. The connect request is in the output.
    pub fn connected(&mut self, now: Time) {
        let State::Connecting { since } = self.state else {
            debug_assert!(false, "connecting() comes before connected()");
            return;
        };
        // A session keeps the timeout that it was granted.
        let timeout_ms = i32::try_from(self.timeout_or_wanted().as_millis()).unwrap_or(i32::MAX);
        let mut request = ConnectRequest::new(timeout_ms, self.last_zxid);
        if let Some(known) = &self.identity {
            request.session = known.id;
            request.password = known.password;
        }
        request.encode(self.flight.output.end());
        self.state = State::Greeting {
            since,
            sent_at: now,
        };
    }

    /// The bytes to write to the connection.
    pub fn output(&self) -> &[u8] {
        self.flight.output.unwritten()
    }

    /// The first `count` bytes of the output were written.
    pub fn wrote(&mut self, count: usize) {
        self.flight.output.wrote(count);
    }

    /// Takes the bytes that were read from the connection.
    pub fn received(&mut self, now: Time, bytes: &[u8]) {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut used = 0;
        while !self.is_down() {
            match frame(&input[used..]) {
                Ok(None) => break,
                Ok(Some((body, taken))) => {
                    self.take_frame(now, body);
                    used += taken;
                }
                Err(error) => self.closed(now, Problem::Protocol(error)),
            }
        }
        if !self.is_down() {
            // A long list does not keep its memory.
            if used < input.len() || input.capacity() <= INPUT_KEPT {
                input.drain(..used);
                self.input = input;
            }
            self.flight.heard_at = now;
        }
    }

    /// The connection was lost, or could not be made.
    pub fn closed(&mut self, now: Time, problem: Problem) {
        let has_lasted = match self.state {
            State::Down { .. } => return,
            State::Ready { since } => now.since(since) >= self.beat(),
            State::Connecting { .. } | State::Greeting { .. } | State::Ending => false,
        };
        if problem == Problem::Disconnected && matches!(self.state, State::Ready { .. }) {
            self.flight.closed_by_server();
        }
        let failure = match &problem {
            Problem::Refused(error) => Failure::Server(*error),
            _ => Failure::Unanswered,
        };
        if matches!(self.state, State::Connecting { .. }) {
            self.outcomes.push_back(SessionEvent::Unreached);
        }
        let retry_at = self.servers.failed(now, has_lasted);
        self.go_down(retry_at, &failure);
        self.problem = Some(problem);
    }

    fn write(&mut self, now: Time, owner: Owner<T>, request: &EnsembleRequest) {
        let validity = self
            .identity
            .as_mut()
            .map(|identity| &mut identity.validity);
        match self.flight.write(now, owner, request, validity) {
            Ok(()) => self.beats.sent_at = now,
            Err((owner, error)) => self.fail(owner.ticket(), Failure::TooLong(error)),
        }
    }

    fn write_pending(&mut self, now: Time) {
        while let State::Ready { .. } = self.state {
            let Some(delete) = self.pending.pop_front() else {
                return;
            };
            let request = EnsembleRequest::Delete(Arc::clone(&delete.path));
            self.write(now, Owner::Delete(delete), &request);
        }
    }
}

#[derive(Clone, Debug)]
pub struct EnsembleSessionOptions {
    /// How many servers there are to connect to; one at least.
    pub servers: usize,
    /// The wanted timeout of the session. The ensemble has the last word: between 2 and 20 ticks.
    pub timeout: Duration,
    /// How far two correct clocks may drift apart: a share of the time measured.
    pub drift_parts_per_billion: u32,
    /// User, colon, password, for every connection.
    pub credentials: Option<Secret<Arc<[u8]>>>,
    /// How long one attempt to connect may take, the connect reply included.
    pub connect_timeout: Duration,
    /// The upper bounds of the pause when all servers have failed: of the first pause, and of any.
    pub reconnect: (Duration, Duration),
    /// A random number, from which the order of the servers and the pauses follow.
    pub seed: u64,
}

impl EnsembleSessionOptions {
    /// The defaults, with this number of servers.
    pub fn new(servers: usize, seed: u64) -> Self {
        Self {
            servers,
            timeout: Duration::from_secs(10),
            drift_parts_per_billion: 10_000_000,
            credentials: None,
            connect_timeout: Duration::from_secs(2),
            reconnect: (Duration::from_millis(10), Duration::from_millis(500)),
            seed,
        }
    }
}

// What a session is, as its owner sees it.
impl<T: Copy> EnsembleSession<T> {
    /// Until when the znodes of this session exist unless they are deleted, as far as is proven.
    pub fn valid_until(&self) -> Time {
        self.identity
            .as_ref()
            .map_or(Time::ZERO, |identity| identity.validity.valid_until())
    }

    /// The session's number, if it has begun.
    pub fn id(&self) -> Option<i64> {
        self.identity.as_ref().map(|identity| identity.id)
    }

    /// Why there is no connection, or was none before this one.
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.options.servers
    }

    /// The number of the server to connect to, below `EnsembleSessionOptions::servers`.
    pub fn server(&self) -> usize {
        self.servers.order[self.servers.at]
    }

    /// Is there no connection, and none being made? Then the socket must be closed.
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }

    /// Does something need a connection, and is the pause since the last attempt over?
    pub fn wants_connection(&self, now: Time) -> bool {
        matches!(self.state, State::Down { retry_at } if now >= retry_at) && self.is_needed()
    }

    fn is_needed(&self) -> bool {
        let has_znodes = self.identity.is_some() && !self.beats.is_empty();
        has_znodes || !self.waiting.is_empty() || !self.pending.is_empty()
    }

    /// Has a server accepted the session on this connection?
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// The timeout that the ensemble has granted, if the session has begun.
    pub fn timeout(&self) -> Option<Duration> {
        self.identity
            .as_ref()
            .map(|identity| identity.validity.timeout())
    }

    /// Is the end of the session written, and not answered yet?
    pub fn is_ending(&self) -> bool {
        matches!(self.state, State::Ending)
    }
}

// What a session does by itself when time passes.
impl<T: Copy> EnsembleSession<T> {
    /// When [`tick`](Self::tick) must be called, or a new connection be made.
    pub fn next_deadline(&self) -> Option<Time> {
        let due = match self.state {
            State::Down { retry_at } => self.is_needed().then_some(retry_at),
            State::Ready { .. } => Some(self.beats.due(self.beat())),
            State::Connecting { .. } | State::Greeting { .. } | State::Ending => None,
        };
        due.into_iter().chain(self.limit()).min()
    }

    /// Gives up a connection that takes too long or is silent, and keeps the session alive. Pass
    /// all bytes that have arrived to [`received`](Self::received) before.
    pub fn tick(&mut self, now: Time) {
        if self.limit().is_some_and(|limit| now >= limit) {
            return self.closed(now, Problem::TimedOut);
        }
        if matches!(self.state, State::Ready { .. }) && now >= self.beats.due(self.beat()) {
            if self.beats.is_idle(now) && self.flight.requests.is_empty() {
                return self.end(now);
            }
            self.write_pending(now);
            let (request, checks) = self.beats.next(now);
            self.write(now, Owner::Beat(checks), &request);
        }
    }

    /// When the connection is given up: it takes too long to be made, or the server has been silent
    /// for too long although it should say something.
    fn limit(&self) -> Option<Time> {
        match self.state {
            State::Down { .. } => None,
            State::Connecting { since } | State::Greeting { since, .. } => {
                Some(since.after(self.options.connect_timeout))
            }
            State::Ready { .. } | State::Ending => self
                .flight
                .silent_since()
                .map(|since| since.after(self.beat())),
        }
    }

    /// A seventh of the session's timeout.
    fn beat(&self) -> Duration {
        self.timeout_or_wanted() / 7
    }

    fn timeout_or_wanted(&self) -> Duration {
        self.timeout().unwrap_or(self.options.timeout)
    }
}

// Whose turn it is to be connected to, and the pauses between attempts.

/// The servers of an ensemble: in a random order, one after the other, again and again. When all
/// have failed in a row there is a random pause, below a ceiling that doubles with each such round.
#[derive(Debug)]
struct ServerOrder {
    order: Vec<usize>,
    at: usize,
    /// Attempts that failed in a row since the last pause.
    failures: usize,
    backoff: Backoff,
}

impl ServerOrder {
    fn new(count: usize, (first, longest): (Duration, Duration), seed: u64) -> Self {
        debug_assert!(count > 0, "an ensemble has a server");
        let mut jitter = Jitter::from_seed(seed);
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let other = jitter.next_u64() % (last as u64 + 1);
            order.swap(last, other as usize);
        }
        Self {
            order,
            at: 0,
            failures: 0,
            backoff: Backoff::new(first, longest, jitter),
        }
    }

    /// The current server failed, and the next one has its turn. `has_lasted`: whether it was of
    /// use for a while before. Returns when the next attempt may begin.
    fn failed(&mut self, now: Time, has_lasted: bool) -> Time {
        self.at = (self.at + 1) % self.order.len();
        if has_lasted {
            self.failures = 0;
            self.backoff.reset();
        }
        self.failures += 1;
        if self.failures < self.order.len() {
            return now;
        }
        self.failures = 0;
        now.after(self.backoff.next_delay(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests;
