//! A node that sends more than was asked for, and a name whose addresses answer in another order.

#[cfg(feature = "groups")]
mod groups;
#[cfg(feature = "tls")]
mod securing;

use super::*;
use crate::clock;
use crate::engine::{Drift, Request, Rules};
use crate::net::LookupAuth;
use crate::net::addresses::Resolver;
use crate::net::locate::Location;
use crate::node::{NodeError, Order, Rounds, Session, SessionOptions};
use crate::node_url::Address;
use mio::{Events, Poll, Waker};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

const OPTIONS: ConnectOptions = ConnectOptions {
    timeout: Duration::from_secs(2),
    keepalive: None,
};

/// A connection to a peer in this process, and its event loop.
struct Fixture {
    connection: NodeConnection,
    rounds: Rounds<()>,
    poll: Poll,
    events: Events,
    resolver: Resolver,
}

fn found(addresses: Vec<SocketAddr>) -> Found {
    Ok(Location {
        host: String::new(),
        addresses,
        announced: None,
        epoch: 0,
        asked_at: clock::now(),
    })
}

impl Fixture {
    /// A connection that is about to be made, because a request waits for it.
    fn new(port: u16) -> Self {
        Self::to(Address::Tcp {
            host: "127.0.0.1".to_owned(),
            port,
        })
    }

    /// The same, to a name with these addresses.
    fn of_name(addresses: Vec<SocketAddr>) -> Self {
        let mut fixture = Self::to(Address::Tcp {
            host: "node.test".to_owned(),
            port: 1,
        });
        fixture.resolve(addresses);
        fixture
    }

    fn to(address: Address) -> Self {
        Self::with(
            Endpoint {
                address,
                tls: None,
                auth: LookupAuth::default(),
            },
            &SessionOptions::new("peer", 7),
        )
    }

    fn with(endpoint: Endpoint, options: &SessionOptions) -> Self {
        let poll = Poll::new().expect("a poll");
        let waker = Arc::new(Waker::new(poll.registry(), Token(1)).expect("a waker"));
        let session = Session::new(options.clone());
        let rounds = Rounds::new(vec![session], false);
        let connection = NodeConnection::new(Node::new(0), endpoint, OPTIONS);
        let events = Events::with_capacity(8);
        let mut fixture = Self {
            connection,
            rounds,
            poll,
            events,
            resolver: Resolver::new(waker),
        };
        fixture.ask();
        fixture
    }

    /// A request waits for the connection.
    fn ask(&mut self) {
        let rules = Rules::new(1, Drift::from_factor(0.01).expect("a usual factor"));
        let mut ping = Request::ping(&rules, clock::now());
        ping.deadline = ping.started.after(Duration::from_secs(60));
        self.rounds.open(clock::now(), Order::Round(ping), ());
    }

    /// A lookup has found these.
    fn resolve(&mut self, addresses: Vec<SocketAddr>) {
        let registry = self.poll.registry();
        self.connection
            .resolved(found(addresses), &mut self.rounds, registry);
    }

    /// The address of the socket.
    fn address(&self) -> Option<SocketAddr> {
        self.connection
            .socket
            .as_ref()
            .and_then(|socket| socket.address)
    }

    /// Runs the event loop until the connection fulfils `is_done`.
    fn run_until(&mut self, is_done: impl Fn(&NodeConnection) -> bool) {
        let start = clock::now();
        while !is_done(&self.connection) {
            assert!(
                clock::now().since(start) < Duration::from_secs(60),
                "{:?}",
                self.connection
            );
            self.turn();
        }
    }

    fn turn(&mut self) {
        let registry = self.poll.registry();
        let resolver = &self.resolver;
        let conversation = &mut self.rounds;
        self.connection.follow_session(&mut Io {
            conversation,
            registry,
            resolver,
        });
        let timeout = Some(Duration::from_millis(10));
        self.poll.poll(&mut self.events, timeout).expect("a poll");
        self.events
            .iter()
            .for_each(|event| self.connection.record_readiness(event));
    }

    /// Why the connection was lost, which has decided the request.
    fn last_error(&mut self) -> NodeError {
        let (_, ended) = self.rounds.poll().expect("the connection is lost");
        ended
            .into_round()
            .expect("it was a round")
            .statuses
            .remove(0)
            .last_error
            .expect("the connection is lost")
    }
}

fn is_connected(connection: &NodeConnection) -> bool {
    connection
        .socket
        .as_ref()
        .is_some_and(|socket| socket.is_connected)
}

fn is_readable(connection: &NodeConnection) -> bool {
    connection
        .socket
        .as_ref()
        .is_some_and(|socket| socket.is_connected && socket.is_readable)
}

#[test]
fn a_node_that_sends_without_end_does_not_block_the_loop() {
    const MESSAGE: &[u8] = b">1\r\n+x\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut fixture = Fixture::new(listener.local_addr().expect("an address").port());
    fixture.run_until(is_connected);
    let (mut peer, _) = listener.accept().expect("a connection");
    // All of it arrives before the first read. Two calls and a half are needed to read it.
    let mut buffer = [0; MESSAGE.len()];
    peer.write_all(&MESSAGE.repeat(5 * READS_MAX / 2))
        .expect("it fits into the socket buffer");
    fixture.run_until(is_readable);

    for has_more in [true, true, false] {
        fixture.connection.read(&mut buffer, &mut fixture.rounds);
        assert_eq!(fixture.connection.is_overlooked(), has_more);
    }
    assert!(
        !fixture.rounds.session(Node::new(0)).is_down(),
        "an unrequested push message is allowed"
    );
}

#[test]
fn bytes_are_overlooked_that_an_event_told_of_unless_something_was_written_since() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut fixture = Fixture::new(listener.local_addr().expect("an address").port());
    fixture.run_until(is_connected);
    assert!(!fixture.connection.is_overlooked());
    let (mut peer, _) = listener.accept().expect("a connection");
    let mut push = || {
        peer.write_all(b">1\r\n+x\r\n")
            .expect("it fits into the socket buffer");
    };
    push();
    fixture.run_until(is_readable);
    assert!(fixture.connection.is_overlooked());
    assert!(!fixture.rounds.output(Node::new(0)).is_empty());
    fixture.connection.write(&mut fixture.rounds);
    assert!(!fixture.connection.is_overlooked(), "the answer is told of");
    fixture.connection.read(&mut [0; 100], &mut fixture.rounds);
    assert!(!fixture.connection.is_overlooked(), "all is read");
    push();
    fixture.run_until(is_readable);
    assert!(fixture.connection.is_overlooked(), "this was the event");
}

/// What the connection is lost by, if the peer sends these bytes and closes it.
fn loss_after(bytes: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut fixture = Fixture::new(listener.local_addr().expect("an address").port());
    fixture.run_until(is_connected);
    let (mut peer, _) = listener.accept().expect("a connection");
    peer.write_all(bytes)
        .expect("it fits into the socket buffer");
    drop(peer);
    fixture.run_until(NodeConnection::is_finished);
    fixture.connection.read(&mut [0; 100], &mut fixture.rounds);
    fixture.last_error().to_string()
}

#[test]
fn a_server_that_closes_without_a_word_may_want_tls() {
    let text = loss_after(b"");
    assert!(
        text.ends_with("; if the server expects TLS, use a rediss:// URL"),
        "{text}"
    );
    let text = loss_after(b"+OK\r");
    assert!(
        text.starts_with("connection lost: ") && !text.contains("TLS"),
        "{text}"
    );
}

/// A port whose listen queue is full: it answers no connection request until it is emptied.
fn deaf() -> (TcpListener, Vec<std::net::TcpStream>) {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    listen(&socket, 0).expect("it can listen");
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().expect("an address");
    let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300));
    let queued = std::iter::from_fn(|| connect().ok()).collect();
    (listener, queued)
}

#[test]
fn an_address_that_does_not_answer_in_its_part_of_the_time_is_left_for_the_next() {
    let first = deaf();
    let second = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addresses = [&first.0, &second].map(|port| port.local_addr().expect("an address"));
    let mut fixture = Fixture::of_name(addresses.to_vec());
    fixture.run_until(is_connected);
    assert_eq!(
        (fixture.address(), fixture.connection.next_deadline()),
        (Some(addresses[1]), None)
    );
}

#[test]
fn an_address_that_accepts_and_never_greets_goes_last_the_next_time() {
    let ports = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let addresses = ports
        .each_ref()
        .map(|port| port.local_addr().expect("an address"));
    let mut fixture = Fixture::of_name(addresses.to_vec());
    for address in [addresses[0], addresses[1], addresses[0]] {
        fixture.run_until(is_connected);
        fixture.turn();
        assert_eq!(fixture.address(), Some(address));
        let problem = NodeError::Disconnected("no greeting".to_owned());
        fixture.rounds.closed(clock::now(), Node::new(0), problem);
        fixture.run_until(|connection| connection.socket.is_none());
        fixture.ask();
        fixture.resolve(addresses.to_vec());
    }
}
