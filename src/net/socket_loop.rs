//! The event loop: the rounds of all threads of a client over its sockets. It decides nothing about
//! locks: [`Rounds`] knows what to write and what the replies mean, and [`Driver`] in which order
//! that is done.

use super::change_queue::ChangeQueue;
use super::connection::Connection;
use super::follower::Follower;
use super::leader_followers::{EventLoop, Wake};
use super::sockets::PolledSockets;
use super::{ConnectOptions, Endpoint};
use crate::clock::{self, Time};
use crate::engine::{Node, QueueWait, Request, Token};
use crate::node::{Driver, Host, NodeError, Phase, RoundOutcome, Rounds};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a caller waits for.
pub(super) enum Order {
    /// The result of a round.
    Round(Request),
    /// The end of a wait in the nodes' queue.
    Wait(QueueWait),
}

/// What needs no result.
pub(super) enum Message {
    /// Send this request.
    Post(Request),
    /// End the waits of one waiter in the nodes' queue, or of all, now and from now on.
    EndWaits(Option<Token>),
    /// Forget this waiter, about which no request follows.
    #[cfg(feature = "registers")]
    Leave(Token),
}

/// How many rounds the last drop waits at most for nodes that reply. Removals for which a
/// connection has no room at once take several rounds.
pub(super) const LINGER_ROUNDS: u32 = 10;

/// The rounds of all threads of a client.
type AllRounds = Rounds<Arc<Follower<RoundOutcome>>>;

/// The sockets, and the rounds that run over them.
#[derive(Debug)]
pub(super) struct SocketLoop {
    sockets: PolledSockets,
    rounds: AllRounds,
    /// How long a node may take to reply to a removal when the connections are closed.
    node_timeout: Duration,
    /// Where to put changes of the nodes' states, if there is a listener.
    changes: Option<Arc<ChangeQueue>>,
    /// Has a majority of the nodes answered on its connections?
    pub(super) is_connected: Arc<AtomicBool>,
    is_poisoned: bool,
}

impl SocketLoop {
    /// An event loop whose connections are not open yet, and what wakes it.
    pub(super) fn new(
        connections: Vec<Connection>,
        rounds: AllRounds,
        node_timeout: Duration,
        changes: Option<Arc<ChangeQueue>>,
    ) -> io::Result<(Self, Wake)> {
        let (sockets, wake) = PolledSockets::new(connections)?;
        let (is_connected, is_poisoned) = (Arc::default(), false);
        Ok((Self { sockets, rounds, node_timeout, changes, is_connected, is_poisoned }, wake))
    }

    fn driver(&mut self) -> Driver<'_, Arc<Follower<RoundOutcome>>, PolledSockets> {
        Driver::new(&mut self.rounds, &mut self.sockets)
    }

    /// Waits until the nodes have replied to the removals that were written to them. It does not
    /// wait for a node that has been silent for `node_timeout`, nor longer than
    /// [`LINGER_ROUNDS`] for nodes that reply slowly. Without this wait, a server that finds the
    /// connection closed when it writes a reply would not read the remaining commands, and would
    /// keep the keys.
    fn linger(&mut self) {
        // First read: a node whose replies were not read yet is not silent.
        self.driver().read_all(Some(Duration::ZERO));
        self.flush();
        let mut now = clock::now();
        let (node_timeout, end) = (self.node_timeout, now.after(self.node_timeout * LINGER_ROUNDS));
        while now < end && self.rounds.has_removals(now, node_timeout) {
            self.driver().read_all(Some(node_timeout));
            self.flush();
            now = clock::now();
            self.rounds.tick(now);
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
    type Outcome = RoundOutcome;

    fn take_over(&mut self) {
        self.driver().take_over();
        self.deliver();
    }

    fn catch_up(&mut self) {
        self.driver().catch_up();
    }

    fn open(&mut self, order: Order, follower: Arc<Follower<RoundOutcome>>) {
        match order {
            Order::Round(request) => self.driver().open(request, follower),
            Order::Wait(wait) => self.driver().wait(&wait, follower),
        }
        self.deliver();
    }

    fn post(&mut self, message: Message) {
        match message {
            Message::Post(request) => self.driver().post(&request),
            Message::EndWaits(waiter) => self.rounds.end_waits(waiter),
            #[cfg(feature = "registers")]
            Message::Leave(waiter) => self.rounds.leave(&waiter),
        }
    }

    fn flush(&mut self) -> bool {
        self.driver().flush();
        self.deliver()
    }

    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool) {
        // Writing decides a round if it finds the connection broken. If that was the leader's own
        // round, no event may follow, and a leader that slept would sleep for ever.
        let is_decided = self.flush();
        let timeout = if is_decided || !may_sleep() {
            Some(Duration::ZERO)
        } else {
            self.sockets.until(self.rounds.next_deadline())
        };
        let mut driver = self.driver();
        driver.read_all(timeout);
        driver.tick();
        self.is_connected.store(self.rounds.is_connected(), Ordering::Relaxed);
        self.deliver();
    }

    fn set_poisoned(&mut self) {
        self.is_poisoned = true;
    }

    fn next_follower(&self) -> Option<&Arc<Follower<RoundOutcome>>> {
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
        self.sockets.close();
    }
}

/// A connection that is not open yet to each of these nodes.
pub(super) fn connections(endpoints: Vec<Endpoint>, options: ConnectOptions) -> Vec<Connection> {
    let nodes = endpoints.into_iter().enumerate();
    let new = |(index, endpoint)| Connection::new(Node::new(index), endpoint, options);
    nodes.map(new).collect()
}

// What a connection asks of the protocol that runs over it: a trait, so that the rounds over Redis
// nodes and the session with a ZooKeeper ensemble use the same sockets.

/// The protocol's side of all connections of a client. It says when a connection is wanted, what to
/// write, and takes what was read. A node is its number in the configuration.
pub(super) trait Conversation {
    /// Is there no connection to this node, and none being made? Then its socket is closed.
    fn is_down(&mut self, node: Node) -> bool;

    /// Is a connection to this node, which has none, to be made now?
    fn wants_connection(&mut self, node: Node, now: Time) -> bool;

    /// A connection is being made, and has come so far.
    fn connecting(&mut self, node: Node, now: Time, phase: Phase);

    /// The step that the connection waits for.
    fn phase(&mut self, node: Node) -> Phase;

    /// The connection is established, and leads to this host, if the operating system says so.
    fn connected(&mut self, node: Node, now: Time, host: Option<Host>);

    /// The scheme of URLs by which a connection is secured.
    fn secure_scheme(&self) -> &'static str;

    /// The bytes to write.
    fn output(&mut self, node: Node) -> &[u8];

    /// The first `count` bytes of the output were written.
    fn wrote(&mut self, node: Node, count: usize);

    /// Takes bytes that were read.
    fn received(&mut self, now: Time, node: Node, bytes: &[u8]);

    /// The connection was lost, or could not be made.
    fn closed(&mut self, now: Time, node: Node, problem: NodeError);
}

impl<W> Conversation for Rounds<W> {
    fn is_down(&mut self, node: Node) -> bool {
        self.session(node).is_down()
    }

    fn wants_connection(&mut self, node: Node, now: Time) -> bool {
        self.session(node).wants_connection(now)
    }

    fn connecting(&mut self, node: Node, now: Time, phase: Phase) {
        self.session(node).connecting(now, phase);
    }

    fn phase(&mut self, node: Node) -> Phase {
        self.session(node).phase()
    }

    fn connected(&mut self, node: Node, now: Time, host: Option<Host>) {
        self.session(node).connected(now);
        self.session(node).leads_to(host);
    }

    fn secure_scheme(&self) -> &'static str {
        "rediss"
    }

    fn output(&mut self, node: Node) -> &[u8] {
        self.session(node).output()
    }

    fn wrote(&mut self, node: Node, count: usize) {
        self.session(node).wrote(count);
    }

    fn received(&mut self, now: Time, node: Node, bytes: &[u8]) {
        self.received(now, node, bytes);
    }

    fn closed(&mut self, now: Time, node: Node, problem: NodeError) {
        self.closed(now, node, problem);
    }
}
