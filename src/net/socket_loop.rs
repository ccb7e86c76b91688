//! The event loop: the sockets of all nodes and one poll over them. It decides nothing about locks:
//! [`Rounds`] knows what to write and what the replies mean.

use super::change_queue::ChangeQueue;
use super::connection::Connection;
use super::follower::Follower;
use super::leader_followers::EventLoop;
use super::order::{Message, Order};
use super::resolver::Resolver;
use super::{ConnectOptions, Endpoint};
use crate::clock::{self, Time};
use crate::engine::{NODES_MAX, Node, Request};
use crate::node::{RoundResult, Rounds};
use mio::{Events, Poll, Token, Waker};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The waker's token, which no socket has.
const WAKER: Token = Token(NODES_MAX);

/// The size of the read buffer, in bytes. The reply to a lock command has a few bytes.
const READ_SIZE: usize = 16 * 1024;

/// For how long the result of a poll counts as current. Bytes that arrive before a request is
/// written are no reply to it, so before writing, the loop polls again for such bytes if the last
/// poll is older than this. Bytes that arrive within so short a time, about a round trip, cannot be
/// distinguished from a reply anyway.
const POLL_CURRENT_FOR: Duration = Duration::from_millis(1);

/// How many rounds the last drop waits at most for nodes that reply. Removals for which a
/// connection has no room at once take several rounds.
pub(super) const LINGER_ROUNDS: u32 = 10;

/// The rounds of all threads of a client.
type AllRounds = Rounds<Arc<Follower<RoundResult>>>;

/// The sockets, and the rounds that run over them.
#[derive(Debug)]
pub(super) struct SocketLoop {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    rounds: AllRounds,
    resolver: Resolver,
    buffer: Box<[u8]>,
    /// When the last poll returned.
    polled_at: Time,
    /// How long a node may take to reply to a removal when the connections are closed.
    node_timeout: Duration,
    /// Where to put changes of the nodes' states, if there is a listener.
    changes: Option<Arc<ChangeQueue>>,
    /// Has a majority of the nodes answered on its connections?
    is_connected: Arc<AtomicBool>,
    is_poisoned: bool,
}

impl SocketLoop {
    /// An event loop whose connections are not open yet, and its waker.
    pub(super) fn new(
        connections: Vec<Connection>,
        rounds: AllRounds,
        node_timeout: Duration,
        changes: Option<Arc<ChangeQueue>>,
    ) -> io::Result<(Self, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let event_loop = Self {
            poll,
            events: Events::with_capacity(2 * NODES_MAX),
            connections,
            rounds,
            resolver: Resolver::new(Arc::clone(&waker)),
            buffer: vec![0; READ_SIZE].into_boxed_slice(),
            polled_at: Time::ZERO,
            node_timeout,
            changes,
            is_connected: Arc::default(),
            is_poisoned: false,
        };
        Ok((event_loop, waker))
    }

    /// Whether a majority of the nodes has answered on its connections: kept up to date.
    pub(super) fn is_connected(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_connected)
    }

    /// Waits for events for up to `timeout` and records which sockets are ready. Returns whether
    /// the poll succeeded.
    fn poll_sockets(&mut self, timeout: Option<Duration>) -> bool {
        let has_more = self.connections.iter().any(Connection::has_more);
        let timeout = if has_more { Some(Duration::ZERO) } else { timeout };
        let mut polled = self.poll.poll(&mut self.events, timeout);
        // A signal may end the wait early: the next turn of the loop computes its timeout anew from
        // the deadlines. But before deadlines are looked at, all bytes that have arrived must be
        // read, however long the signal stopped this thread.
        while polled.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
            polled = self.poll.poll(&mut self.events, Some(Duration::ZERO));
        }
        // After any other error, nothing is read, and the rounds end at their deadlines.
        if polled.is_err() {
            return false;
        }
        for event in &self.events {
            if let Some(connection) = self.connections.get_mut(Connection::index(event.token())) {
                connection.record_readiness(event);
            }
        }
        self.polled_at = clock::now();
        while let Some((index, found)) = self.resolver.poll() {
            self.connections[index].resolved(found, &mut self.rounds);
        }
        true
    }

    /// Waits for events for up to `timeout` and reads from all sockets that are ready.
    fn read_all(&mut self, timeout: Option<Duration>) {
        if self.poll_sockets(timeout) {
            for connection in &mut self.connections {
                connection.read(&mut self.buffer, &mut self.rounds);
            }
        }
    }

    /// Waits until the nodes have replied to the removals that were written to them. It does not
    /// wait for a node that has been silent for `node_timeout`, nor longer than
    /// [`LINGER_ROUNDS`] for nodes that reply slowly. Without this wait, a server that finds the
    /// connection closed when it writes a reply would not read the remaining commands, and would
    /// keep the keys.
    fn linger(&mut self) {
        // First read: a node whose replies were not read yet is not silent.
        self.read_all(Some(Duration::ZERO));
        self.flush();
        let mut now = clock::now();
        let end = now.after(self.node_timeout * LINGER_ROUNDS);
        while now < end && self.rounds.has_removals(now, self.node_timeout) {
            self.read_all(Some(self.node_timeout));
            self.flush();
            now = clock::now();
            self.rounds.tick(now);
        }
    }

    /// What must be done before a request is written.
    fn prepare(&mut self, request: &Request) {
        self.make_room(request);
        self.read_before(|rounds, node| rounds.must_be_read_before(node, request));
    }

    /// If so many commands are unanswered that this request would be refused or left waiting, reads
    /// the replies that have arrived: a thread that drops one guard after another reads none. If
    /// the node is silent instead, it is marked as silent here, because a round that is not sent
    /// may end at once, and then no thread waits for replies.
    fn make_room(&mut self, request: &Request) {
        if self.rounds.is_crowded(request) {
            self.flush();
            self.read_all(Some(Duration::ZERO));
            self.rounds.tick(clock::now());
        }
    }

    /// Before this is written, reads bytes that have arrived and that could be mistaken for the
    /// reply. A connection with bytes that are no reply to any command is closed by that.
    fn read_before(&mut self, must_be_read: impl Fn(&AllRounds, Node) -> bool) {
        if clock::now().since(self.polled_at) >= POLL_CURRENT_FOR {
            self.poll_sockets(Some(Duration::ZERO));
        }
        for connection in self.connections.iter_mut().filter(|connection| connection.is_readable())
        {
            if must_be_read(&self.rounds, connection.node()) {
                connection.read(&mut self.buffer, &mut self.rounds);
            }
        }
    }

    /// Delivers the outcomes of all decided rounds. Returns whether there were any.
    fn deliver(&mut self) -> bool {
        let mut is_any = false;
        if let Some(changes) = &self.changes {
            // First: a thread that gets an outcome may report these changes next.
            while let Some(change) = self.rounds.poll_change() {
                changes.push(change);
            }
        }
        while let Some((follower, result)) = self.rounds.poll() {
            follower.deliver(result);
            is_any = true;
        }
        is_any
    }
}

impl EventLoop for SocketLoop {
    type Order = Order;
    type Message = Message;
    type Outcome = RoundResult;

    fn catch_up(&mut self) {
        self.poll_sockets(Some(Duration::ZERO));
        // Connections that have ended must be known before anything is sent. Other bytes can wait
        // until a request is opened for which they matter.
        for connection in self.connections.iter_mut().filter(|connection| connection.is_finished())
        {
            connection.read(&mut self.buffer, &mut self.rounds);
        }
    }

    fn open(&mut self, order: Order, follower: Arc<Follower<RoundResult>>) {
        match order {
            Order::Round(request) => {
                self.prepare(&request);
                self.rounds.open(clock::now(), request, follower);
            }
            Order::Wait(wait) => {
                // It may watch the lock's key, and those replies have no proof.
                self.read_before(|_, _| true);
                self.rounds.wait(clock::now(), &wait, follower);
            }
        }
        self.deliver();
    }

    fn post(&mut self, message: Message) {
        match message {
            Message::Post(request) => {
                self.prepare(&request);
                self.rounds.post(clock::now(), &request);
            }
            Message::EndWaits(waiter) => self.rounds.end_waits(waiter),
        }
    }

    fn flush(&mut self) -> bool {
        for connection in &mut self.connections {
            connection.follow_session(&mut self.rounds, self.poll.registry(), &self.resolver);
            connection.write(&mut self.rounds);
        }
        self.deliver()
    }

    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool) {
        // Writing decides a round if it finds the connection broken. If that was the leader's own
        // round, no event may follow, and a leader that slept would sleep for ever.
        let is_decided = self.flush();
        let timeout = if is_decided || !may_sleep() {
            Some(Duration::ZERO)
        } else {
            let next_addresses = self.connections.iter().filter_map(Connection::next_deadline);
            let deadline = self.rounds.next_deadline().into_iter().chain(next_addresses).min();
            deadline.map(|deadline| deadline.since(clock::now()))
        };
        self.read_all(timeout);
        self.rounds.tick(clock::now());
        self.is_connected.store(self.rounds.is_connected(), Ordering::Relaxed);
        self.deliver();
    }

    fn set_poisoned(&mut self) {
        self.is_poisoned = true;
    }

    fn next_follower(&self) -> Option<&Arc<Follower<RoundResult>>> {
        self.rounds.waiters().next()
    }
}

impl Drop for SocketLoop {
    fn drop(&mut self) {
        if !self.is_poisoned {
            // Pending output, removals above all, is written now or never.
            self.flush();
            self.linger();
        }
        for connection in &mut self.connections {
            connection.close(self.poll.registry());
        }
    }
}

/// A connection that is not open yet to each of these nodes.
pub(super) fn connections(endpoints: Vec<Endpoint>, options: ConnectOptions) -> Vec<Connection> {
    let nodes = endpoints.into_iter().enumerate();
    let new = |(index, endpoint)| Connection::new(Node::new(index), endpoint, options);
    nodes.map(new).collect()
}
