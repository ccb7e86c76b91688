//! What is said over the connections of a client, and the order in which an event loop reads,
//! sends, writes and processes deadlines. It is the same over the sockets of `net` and over those
//! of the simulator, for rounds over Redis nodes and for the session with a ZooKeeper ensemble.

#[cfg(feature = "diagnostics")]
use super::Host;
use super::Phase;
#[cfg(feature = "groups")]
use super::history::History;
use super::node_error::NodeError;
use crate::engine::{Node, NodeSet};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The protocol over all connections of a client, which sees no socket. It says when a connection
/// is wanted, what to write, takes what was read, and knows who waits for what. A node is its
/// number in the configuration.
pub trait Conversation {
    /// What a caller waits for.
    type Order;
    /// What is done without an outcome.
    type Message;
    type Outcome;
    /// A caller that waits.
    type Waiter;

    /// The number of nodes.
    fn nodes(&self) -> usize;

    /// Is there no connection to this node, and none being made? Then its socket is closed.
    fn is_down(&self, node: Node) -> bool;

    /// Is a connection to this node, which has none, to be made now?
    fn wants_connection(&self, node: Node, now: Time) -> bool;

    /// A connection is being made, and has come so far.
    fn connecting(&mut self, node: Node, now: Time, phase: Phase);

    /// The step that the connection waits for.
    fn phase(&self, node: Node) -> Phase;

    /// The node's address was named by a failover authority in this epoch, which was asked then.
    fn located(&mut self, _node: Node, _epoch: u64, _asked_at: Time) {}

    /// The place that was named, and by whom, in words.
    fn announced(&mut self, _node: Node, _place: Arc<str>) {}

    /// When the master behind this node is to be looked for although there is a connection.
    fn looks_at(&self, _node: Node) -> Option<Time> {
        None
    }

    /// It is being looked for.
    fn looking(&mut self, _node: Node, _now: Time) {}

    /// Those that know the master, asked at `asked_at`, have said in this epoch where it is.
    /// Returns whether the connection is given up for it.
    fn named(
        &mut self,
        _node: Node,
        _now: Time,
        _epoch: u64,
        _asked_at: Time,
        _it_is: Whereabouts,
    ) -> bool {
        false
    }

    /// When the servers of this group are to be asked for their histories, as long as there is a
    /// connection to its master.
    fn inquires_at(&self, _node: Node) -> Option<Time> {
        None
    }

    /// They are being asked.
    fn inquiring(&mut self, _node: Node, _now: Time) {}

    /// One of them has answered: a server that this master lists, or the master itself.
    #[cfg(feature = "groups")]
    fn heard(&mut self, _node: Node, _now: Time, _server: &History, _master: &History) {}

    /// The connection is established.
    fn connected(&mut self, node: Node, now: Time);

    /// It leads to this host, as far as the operating system says so.
    #[cfg(feature = "diagnostics")]
    fn leads_to(&mut self, _node: Node, _host: Option<Host>) {}

    /// The scheme of URLs by which a connection is secured.
    fn secure_scheme(&self) -> &'static str;

    /// The output is about to be written: nothing else will be sent before that.
    fn about_to_write(&mut self, _node: Node) {}

    /// The bytes to write.
    fn output(&self, node: Node) -> &[u8];

    /// The first `count` bytes of the output were written.
    fn wrote(&mut self, node: Node, count: usize);

    /// Takes bytes that were read.
    fn received(&mut self, now: Time, node: Node, bytes: &[u8]);

    /// The connection was lost, or could not be made.
    fn closed(&mut self, now: Time, node: Node, problem: NodeError);

    /// Begins what this order asks for. [`poll`](Self::poll) returns its outcome.
    fn open(&mut self, now: Time, order: Self::Order, waiter: Self::Waiter);

    fn post(&mut self, now: Time, message: Self::Message);

    /// Must bytes that have arrived from this node be read before this is written, because a
    /// repeated or unsolicited reply could be matched to it? Then this is for how long the result
    /// of a poll counts as current.
    fn must_be_read_before(&self, _node: Node, _next: Next<'_, Self>) -> Option<Duration> {
        None
    }

    /// Is there a node without room for this, where it would be refused, or be left in the queue
    /// because no caller waits for its answer?
    fn is_crowded(&self, _next: Next<'_, Self>) -> bool {
        false
    }

    /// The next outcome, with who waits for it.
    fn poll(&mut self) -> Option<(Self::Waiter, Self::Outcome)>;

    /// One of those who wait.
    fn next_waiter(&self) -> Option<&Self::Waiter>;

    /// When [`tick`](Self::tick) must be called, or a new connection must be made.
    fn next_deadline(&self) -> Option<Time>;

    /// Processes the deadlines that have passed. Pass all bytes that have arrived first.
    fn tick(&mut self, now: Time);

    /// The client is dropped: nothing is asked for any more.
    fn close(&mut self, _now: Time) {}

    /// Is a node likely to answer, and has not confirmed yet what was written for good?
    fn is_draining(&mut self, now: Time) -> bool;
}

/// What those that know the master have said about the server of the present connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is the master.
    Here,
    /// Its address is that of the master. Another server may have that by now, or be behind it.
    SameAddress,
    /// Another server is the master.
    Elsewhere,
}

/// What is about to be written.
#[derive(Debug)]
pub enum Next<'a, C: Conversation + ?Sized> {
    Order(&'a C::Order),
    Message(&'a C::Message),
}

/// The sockets of all nodes, at most one in use for each, opened and closed as the conversation
/// requires.
pub trait Sockets {
    /// What the clock of their owner says.
    fn time(&self) -> Time;

    /// Waits for events for up to `timeout` and records which sockets are ready. Returns whether
    /// that succeeded; if not, nothing may be read.
    fn poll(&mut self, conversation: &mut impl Conversation, timeout: Option<Duration>) -> bool;

    /// When [`poll`](Self::poll) succeeded last.
    fn polled_at(&self) -> Time;

    /// Has the node closed its side of the connection, as far as is known?
    fn is_finished(&self, node: Node) -> bool;

    /// Are there unread bytes of this node, as far as is known?
    fn is_readable(&self, node: Node) -> bool;

    /// Reads the bytes that have arrived and passes them on.
    fn read(&mut self, conversation: &mut impl Conversation, node: Node);

    /// Closes, opens or finishes opening the node's socket, as the conversation requires.
    fn follow(&mut self, conversation: &mut impl Conversation, node: Node);

    /// Writes as much of the output as the socket takes.
    fn write(&mut self, conversation: &mut impl Conversation, node: Node);
}

/// For how long the result of a poll counts as current where bytes could be mistaken for a reply.
/// Bytes that arrive before a request is written are not a reply to it, so before writing, the loop
/// polls again for such bytes if the last poll is older than this. Bytes that arrive within so
/// short a time, about a round trip, cannot be distinguished from a reply anyway.
pub(super) const STRAYS_FOR: Duration = Duration::from_millis(1);

/// The same where a call begins, and connections may have ended or deadlines passed since the last
/// one. A thread that makes one call after another has just polled for replies, and processed what
/// there was. A connection that has ended since then is lost for one round, as one is that ends a
/// moment later. This is longer than writing a removal to all nodes takes.
const ENDS_FOR: Duration = Duration::from_micros(250);

/// Drives the conversation of a client over its sockets. What it decides is to be taken from the
/// conversation after each call.
#[derive(Debug)]
pub struct Driver<'a, C, S> {
    conversation: &'a mut C,
    sockets: &'a mut S,
}

impl<'a, C: Conversation, S: Sockets> Driver<'a, C, S> {
    pub fn new(conversation: &'a mut C, sockets: &'a mut S) -> Self {
        Self {
            conversation,
            sockets,
        }
    }

    /// Continues after another thread drove the conversation, which may have left output to this
    /// one. Bytes that have arrived from such a node are not a reply to it, and are read now.
    pub fn take_over(&mut self) {
        self.read_before(|conversation, node| {
            let is_left = !conversation.output(node).is_empty();
            is_left.then_some(STRAYS_FOR)
        });
    }

    /// Processes what happened while nobody drove the conversation. Connections that have ended, or
    /// have been silent for too long, must be known before anything is sent. Other bytes can wait
    /// until something is written for which they matter.
    pub fn catch_up(&mut self) {
        if self.is_current(ENDS_FOR) {
            return;
        }
        let is_polled = self.sockets.poll(self.conversation, Some(Duration::ZERO));
        let is_late = is_polled
            && self
                .conversation
                .next_deadline()
                .is_some_and(|deadline| self.sockets.time() >= deadline);
        for node in self.nodes() {
            if is_late || self.sockets.is_finished(node) {
                self.sockets.read(self.conversation, node);
            }
        }
        if is_late {
            self.tick();
        }
    }

    pub fn open(&mut self, order: C::Order, waiter: C::Waiter) {
        self.prepare(|| Next::Order(&order));
        self.conversation.open(self.sockets.time(), order, waiter);
    }

    pub fn post(&mut self, message: C::Message) {
        self.prepare(|| Next::Message(&message));
        self.conversation.post(self.sockets.time(), message);
    }

    /// Makes the connections that are wanted, and writes all pending output.
    pub fn flush(&mut self) {
        for node in self.nodes() {
            self.sockets.follow(self.conversation, node);
            self.conversation.about_to_write(node);
            self.sockets.write(self.conversation, node);
        }
    }

    /// Waits for events for up to `timeout` and reads from all sockets that are ready.
    pub fn read_all(&mut self, timeout: Option<Duration>) {
        if self.sockets.poll(self.conversation, timeout) {
            for node in self.nodes() {
                self.sockets.read(self.conversation, node);
            }
        }
    }

    /// Processes the deadlines that have passed. Bytes that arrived before must have been read.
    pub fn tick(&mut self) {
        self.conversation.tick(self.sockets.time());
        // At once: after this, nobody may drive the conversation for a while.
        for node in self.nodes() {
            let looks_at = self.conversation.looks_at(node);
            let inquires_at = self.conversation.inquires_at(node);
            let follows_at = looks_at.into_iter().chain(inquires_at).min();
            if follows_at.is_some_and(|at| self.sockets.time() >= at) {
                self.sockets.follow(self.conversation, node);
            }
        }
    }

    fn nodes(&self) -> impl Iterator<Item = Node> + use<C, S> {
        (0..self.conversation.nodes()).map(Node::new)
    }

    /// What must be done before this is written.
    fn prepare<'n>(&mut self, next: impl Fn() -> Next<'n, C>)
    where
        C: 'n,
    {
        // If so many commands are unanswered that this would be refused or left waiting, the
        // replies that have arrived are read: a thread that drops one guard after another reads
        // none. If the node is silent instead, it is marked as silent here, because a round that
        // is not sent may end at once, and then no thread waits for replies.
        if self.conversation.is_crowded(next()) {
            self.flush();
            self.read_all(Some(Duration::ZERO));
            self.tick();
        }
        self.read_before(|conversation, node| conversation.must_be_read_before(node, next()));
    }

    /// Before something is written, reads bytes that have arrived and that could be mistaken for
    /// the reply. A connection with bytes that are not a reply to any command is closed by that.
    fn read_before(&mut self, must_be_read: impl Fn(&mut C, Node) -> Option<Duration>) {
        let mut nodes = NodeSet::EMPTY;
        let mut current_for = STRAYS_FOR;
        for node in self.nodes() {
            if let Some(of_node) = must_be_read(self.conversation, node) {
                nodes.insert(node);
                current_for = current_for.min(of_node);
            }
        }
        if nodes.is_empty() {
            return;
        }
        if !self.is_current(current_for) {
            self.sockets.poll(self.conversation, Some(Duration::ZERO));
        }
        for node in nodes.iter() {
            if self.sockets.is_readable(node) {
                self.sockets.read(self.conversation, node);
            }
        }
    }

    /// Was the last poll within this time?
    fn is_current(&self, current_for: Duration) -> bool {
        let polled_at = self.sockets.polled_at();
        self.sockets.time().since(polled_at) < current_for
    }
}
