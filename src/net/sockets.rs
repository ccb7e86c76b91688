//! The sockets of all nodes, and one poll over them.

use super::addresses::Resolver;
use super::connection::{Io, NodeConnection};
use super::descriptors;
use super::leader_followers::Wake;
use crate::clock::{self, Time};
use crate::engine::{NODES_MAX, Node};
use crate::node::{Conversation, Sockets};
use mio::net::TcpStream;
use mio::{Events, Poll, Token, Waker};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// The waker's token, which no socket has.
const WAKER: Token = Token(NODES_MAX);

/// The size of the read buffer, in bytes. The reply to a lock command has a few bytes.
const READ_SIZE: usize = 16 * 1024;

/// The connections to all nodes, in the nodes' order.
#[derive(Debug)]
pub(super) struct PolledSockets {
    poll: Poll,
    events: Events,
    connections: Vec<NodeConnection>,
    resolver: Resolver,
    buffer: Box<[u8]>,
    polled_at: Time,
}

impl PolledSockets {
    /// Connections that are not open yet, and what wakes a thread that polls them.
    pub(super) fn new(connections: Vec<NodeConnection>) -> io::Result<(Self, Wake)> {
        descriptors::keep_standard_ones();
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
        // It fails only without a poll, and then no thread sleeps in it.
        Ok((sockets, Box::new(move || drop(waker.wake()))))
    }

    /// For how long a thread may wait for events that has something to do at this time. The next
    /// address of a node's name may have to be tried before.
    pub(super) fn until(&self, deadline: Option<Time>) -> Option<Duration> {
        let addresses = self
            .connections
            .iter()
            .filter_map(NodeConnection::next_deadline);
        addresses
            .chain(deadline)
            .min()
            .map(|deadline| deadline.since(clock::now()))
    }

    pub(super) fn close(&mut self) {
        for connection in &mut self.connections {
            connection.close(self.poll.registry());
        }
    }
}

impl Sockets for PolledSockets {
    fn time(&self) -> Time {
        clock::now()
    }

    fn poll(&mut self, conversation: &mut impl Conversation, timeout: Option<Duration>) -> bool {
        let is_any_overlooked = self.connections.iter().any(NodeConnection::is_overlooked);
        let timeout = if is_any_overlooked {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        let mut polled = self.poll.poll(&mut self.events, timeout);
        // A signal may end the wait early: the next turn of the loop computes its timeout anew from
        // the deadlines. But before deadlines are looked at, all bytes that have arrived must be
        // read, however long the signal stopped this thread.
        while polled
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::Interrupted)
        {
            polled = self.poll.poll(&mut self.events, Some(Duration::ZERO));
        }
        // After any other error, nothing is read, and the rounds end at their deadlines.
        if polled.is_err() {
            return false;
        }
        for event in &self.events {
            let index = NodeConnection::index(event.token());
            if let Some(connection) = self.connections.get_mut(index) {
                connection.record_readiness(event);
            }
        }
        self.polled_at = clock::now();
        while let Some((index, finding)) = self.resolver.poll() {
            let registry = self.poll.registry();
            self.connections[index].found_out(finding, conversation, registry);
        }
        true
    }

    fn polled_at(&self) -> Time {
        self.polled_at
    }

    fn is_finished(&self, node: Node) -> bool {
        self.connections[node.index()].is_finished()
    }

    fn is_readable(&self, node: Node) -> bool {
        self.connections[node.index()].is_readable()
    }

    fn read(&mut self, conversation: &mut impl Conversation, node: Node) {
        self.connections[node.index()].read(&mut self.buffer, conversation);
    }

    fn follow(&mut self, conversation: &mut impl Conversation, node: Node) {
        let registry = self.poll.registry();
        let resolver = &self.resolver;
        let io = &mut Io {
            conversation,
            registry,
            resolver,
        };
        self.connections[node.index()].follow_session(io);
    }

    fn write(&mut self, conversation: &mut impl Conversation, node: Node) {
        self.connections[node.index()].write(conversation);
    }
}

// Options of TCP sockets that let the operating system find out that a peer is gone. They are set
// once for each connection, when it is made.

/// How many probes of an idle connection may be unanswered.
#[cfg(not(any(
    target_os = "openbsd",
    target_os = "haiku",
    target_os = "nto",
    target_os = "redox"
)))]
const PROBES: u32 = 3;

/// How long written bytes may stay unacknowledged before the operating system gives up the
/// connection (`TCP_USER_TIMEOUT`).
///
/// While calls are in progress, the client itself gives up a connection that leaves a request
/// unanswered. This is for the time when there is no call: the next one finds the dead connection
/// closed. It also bounds how late a command can arrive on a connection that was given up: after a
/// minute, the default of `max_ttl`, such a command is of no use any more. The operating system's
/// own limit is about 15 minutes.
#[cfg(any(target_os = "linux", target_os = "android"))]
const USER_TIMEOUT_MS: u32 = 60_000;

/// Sets the options of a socket: the peer is probed when the connection has been idle for
/// `keepalive`, or never. An option that the operating system refuses is left as it is: the
/// connection works without it.
pub(super) fn set_options(stream: &TcpStream, keepalive: Option<Duration>) {
    if let Some(idle) = keepalive {
        let _ = set_keepalive(stream, idle);
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, USER_TIMEOUT_MS);
}

/// The pause between two probes: with three of them, a peer that is gone is found out within less
/// than twice the idle time.
#[cfg(not(any(
    target_os = "openbsd",
    target_os = "haiku",
    target_os = "nto",
    target_os = "redox"
)))]
fn interval(idle: Duration) -> Duration {
    Duration::from_secs((idle.as_secs() / 4).max(1))
}

#[cfg(all(
    unix,
    not(any(
        target_os = "openbsd",
        target_os = "haiku",
        target_os = "nto",
        target_os = "redox"
    ))
))]
fn set_keepalive(stream: &TcpStream, idle: Duration) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, interval(idle))?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// Here the times are those of the whole system.
#[cfg(any(
    target_os = "openbsd",
    target_os = "haiku",
    target_os = "nto",
    target_os = "redox"
))]
fn set_keepalive(stream: &TcpStream, _: Duration) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_keepalive(stream, true)?)
}

#[cfg(windows)]
fn set_keepalive(stream: &TcpStream, idle: Duration) -> io::Result<()> {
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(idle)
        .with_interval(interval(idle))
        .with_retries(PROBES);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::net::sockopt;
    use std::net::TcpListener;

    fn connected() -> (TcpListener, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = std::net::TcpStream::connect(listener.local_addr().expect("it has one"));
        (listener, TcpStream::from_std(stream.expect("it listens")))
    }

    #[test]
    fn the_socket_has_the_options_that_were_set() {
        let (_listener, stream) = connected();
        let minute = Duration::from_secs(60);
        set_options(&stream, Some(minute));
        assert!(sockopt::socket_keepalive(&stream).expect("Linux has it"));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(minute));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(Duration::from_secs(15)));
        assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(PROBES));
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(60_000));
    }

    #[test]
    fn without_probes_only_written_bytes_must_be_acknowledged() {
        let (_listener, stream) = connected();
        set_options(&stream, None);
        assert!(!sockopt::socket_keepalive(&stream).expect("Linux has it"));
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(60_000));
    }

    #[test]
    fn a_short_idle_time_has_an_interval_of_a_second() {
        let (_listener, stream) = connected();
        let second = Duration::from_secs(1);
        set_options(&stream, Some(second));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(second));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(second));
    }
}
