//! The order in which an event loop reads, sends, writes and processes deadlines. It is the same
//! over the sockets of `net` and over those of the simulator.

use super::rounds::Rounds;
use crate::engine::{Node, QueueWait, Request};
use crate::time::Time;
use std::time::Duration;

/// The sockets of all nodes, at most one in use for each, opened and closed as its session
/// requires.
pub trait Sockets {
    /// What the clock of their owner says.
    fn time(&self) -> Time;

    /// Waits for events for up to `timeout` and records which sockets are ready. Returns whether
    /// that succeeded; if not, nothing may be read.
    fn poll<W>(&mut self, rounds: &mut Rounds<W>, timeout: Option<Duration>) -> bool;

    /// Records which sockets are ready, unless that was done a moment ago.
    fn refresh<W>(&mut self, rounds: &mut Rounds<W>);

    /// Has the node closed its side of the connection, as far as is known?
    fn is_finished(&self, node: Node) -> bool;

    /// Are there unread bytes of this node, as far as is known?
    fn is_readable(&self, node: Node) -> bool;

    /// Reads the bytes that have arrived and passes them to the node's session.
    fn read<W>(&mut self, rounds: &mut Rounds<W>, node: Node);

    /// Closes, opens or finishes opening the node's socket, as its session requires.
    fn follow_session<W>(&mut self, rounds: &mut Rounds<W>, node: Node);

    /// Writes as much of the session's output as the socket takes.
    fn write<W>(&mut self, rounds: &mut Rounds<W>, node: Node);
}

/// Drives the rounds of a client over its sockets. What it decides is to be taken from the rounds
/// after each call.
#[derive(Debug)]
pub struct Driver<'a, W, S> {
    rounds: &'a mut Rounds<W>,
    sockets: &'a mut S,
}

impl<'a, W, S: Sockets> Driver<'a, W, S> {
    /// Drives these rounds over these sockets.
    pub fn new(rounds: &'a mut Rounds<W>, sockets: &'a mut S) -> Self {
        Self { rounds, sockets }
    }

    /// Continues after another thread drove the rounds, which may have left output to this one.
    /// Bytes that have arrived from such a node are no reply to it, and are read now.
    pub fn take_over(&mut self) {
        if self.nodes().any(|node| self.rounds.has_output(node)) {
            self.read_before(Rounds::has_output);
        }
    }

    /// Processes what happened while nobody drove the rounds. Connections that have ended, or have
    /// been silent for too long, must be known before anything is sent. Other bytes can wait until
    /// a request is opened for which they matter.
    pub fn catch_up(&mut self) {
        let is_polled = self.sockets.poll(self.rounds, Some(Duration::ZERO));
        let is_due = |deadline| self.sockets.time() >= deadline;
        let is_late = is_polled && self.rounds.next_deadline().is_some_and(is_due);
        for node in self.nodes() {
            if is_late || self.sockets.is_finished(node) {
                self.sockets.read(self.rounds, node);
            }
        }
        if is_late {
            self.tick();
        }
    }

    /// Opens a round: see [`Rounds::open`].
    pub fn open(&mut self, request: Request, waiter: W) {
        self.prepare(&request);
        self.rounds.open(self.sockets.time(), request, waiter);
    }

    /// Sends a request without a waiter: see [`Rounds::post`].
    pub fn post(&mut self, request: &Request) {
        self.prepare(request);
        self.rounds.post(self.sockets.time(), request);
    }

    /// Begins a wait in the nodes' queue: see [`Rounds::wait`]. It may watch the lock's key, and
    /// those replies have no proof.
    pub fn wait(&mut self, wait: &QueueWait, waiter: W) {
        self.read_before(|_, _| true);
        self.rounds.wait(self.sockets.time(), wait, waiter);
    }

    /// Makes the connections that are wanted, and writes all pending output.
    pub fn flush(&mut self) {
        for node in self.nodes() {
            self.sockets.follow_session(self.rounds, node);
            self.sockets.write(self.rounds, node);
        }
    }

    /// Waits for events for up to `timeout` and reads from all sockets that are ready.
    pub fn read_all(&mut self, timeout: Option<Duration>) {
        if self.sockets.poll(self.rounds, timeout) {
            for node in self.nodes() {
                self.sockets.read(self.rounds, node);
            }
        }
    }

    /// Processes the deadlines that have passed. Bytes that arrived before must have been read.
    pub fn tick(&mut self) {
        self.rounds.tick(self.sockets.time());
    }

    fn nodes(&self) -> impl Iterator<Item = Node> + use<W, S> {
        (0..self.rounds.nodes()).map(Node::new)
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
            self.tick();
        }
    }

    /// Before something is written, reads bytes that have arrived and that could be mistaken for
    /// the reply. A connection with bytes that are no reply to any command is closed by that.
    fn read_before(&mut self, must_be_read: impl Fn(&Rounds<W>, Node) -> bool) {
        self.sockets.refresh(self.rounds);
        for node in self.nodes() {
            if self.sockets.is_readable(node) && must_be_read(self.rounds, node) {
                self.sockets.read(self.rounds, node);
            }
        }
    }
}
