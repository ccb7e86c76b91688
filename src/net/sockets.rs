//! The sockets of all nodes, and one poll over them.

use super::connection::Connection;
use super::conversation::Conversation;
use super::resolver::Resolver;
use crate::clock::{self, Time};
use crate::engine::{NODES_MAX, Node};
use crate::node::{Rounds, Sockets};
use mio::{Events, Poll, Token, Waker};
use std::io::{self, ErrorKind};
use std::sync::Arc;
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

/// The connections to all nodes, in the nodes' order.
#[derive(Debug)]
pub(super) struct PolledSockets {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    resolver: Resolver,
    buffer: Box<[u8]>,
    /// When the last poll returned.
    polled_at: Time,
}

impl PolledSockets {
    /// Connections that are not open yet, and what wakes a thread that polls them.
    pub(super) fn new(connections: Vec<Connection>) -> io::Result<(Self, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let sockets = Self {
            poll,
            events: Events::with_capacity(2 * NODES_MAX),
            connections,
            resolver: Resolver::new(Arc::clone(&waker)),
            buffer: vec![0; READ_SIZE].into_boxed_slice(),
            polled_at: Time::ZERO,
        };
        Ok((sockets, waker))
    }

    /// For how long a thread may wait for events that has something to do at this time. The next
    /// address of a node's name may have to be tried before.
    pub(super) fn until(&self, deadline: Option<Time>) -> Option<Duration> {
        let addresses = self.connections.iter().filter_map(Connection::next_deadline);
        addresses.chain(deadline).min().map(|deadline| deadline.since(clock::now()))
    }

    pub(super) fn close(&mut self) {
        for connection in &mut self.connections {
            connection.close(self.poll.registry());
        }
    }

    /// Waits for events for up to `timeout` and records which sockets are ready. Returns whether
    /// that succeeded.
    pub(super) fn wait(
        &mut self,
        conversation: &mut impl Conversation,
        timeout: Option<Duration>,
    ) -> bool {
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
            self.connections[index].resolved(found, conversation);
        }
        true
    }

    /// Reads from all sockets that are ready.
    #[cfg(feature = "zookeeper")]
    pub(super) fn read_all(&mut self, conversation: &mut impl Conversation) {
        for connection in &mut self.connections {
            connection.read(&mut self.buffer, conversation);
        }
    }

    /// Makes the connections that are wanted, and writes all pending output.
    #[cfg(feature = "zookeeper")]
    pub(super) fn flush(&mut self, conversation: &mut impl Conversation) {
        for connection in &mut self.connections {
            connection.follow_session(conversation, self.poll.registry(), &self.resolver);
            connection.write(conversation);
        }
    }
}

impl Sockets for PolledSockets {
    fn time(&self) -> Time {
        clock::now()
    }

    fn poll<W>(&mut self, rounds: &mut Rounds<W>, timeout: Option<Duration>) -> bool {
        self.wait(rounds, timeout)
    }

    fn refresh<W>(&mut self, rounds: &mut Rounds<W>) {
        if clock::now().since(self.polled_at) >= POLL_CURRENT_FOR {
            self.wait(rounds, Some(Duration::ZERO));
        }
    }

    fn is_finished(&self, node: Node) -> bool {
        self.connections[node.index()].is_finished()
    }

    fn is_readable(&self, node: Node) -> bool {
        self.connections[node.index()].is_readable()
    }

    fn read<W>(&mut self, rounds: &mut Rounds<W>, node: Node) {
        self.connections[node.index()].read(&mut self.buffer, rounds);
    }

    fn follow_session<W>(&mut self, rounds: &mut Rounds<W>, node: Node) {
        let connection = &mut self.connections[node.index()];
        connection.follow_session(rounds, self.poll.registry(), &self.resolver);
    }

    fn write<W>(&mut self, rounds: &mut Rounds<W>, node: Node) {
        self.connections[node.index()].write(rounds);
    }
}
