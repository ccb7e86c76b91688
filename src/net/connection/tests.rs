//! A node that sends more than was asked for.

use super::*;
use crate::clock;
use crate::engine::{Drift, Request, Rules};
use crate::node::{Session, SessionOptions};
use crate::node_url::Address;
use mio::{Events, Poll, Waker};
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// A connection to a peer in this process, and its event loop.
struct Fixture {
    connection: Connection,
    rounds: Rounds<()>,
    poll: Poll,
    events: Events,
    resolver: Resolver,
}

impl Fixture {
    /// A connection that is about to be made, because a request waits for it.
    fn new(port: u16) -> Self {
        let poll = Poll::new().expect("a poll");
        let waker = Arc::new(Waker::new(poll.registry(), Token(1)).expect("a waker"));
        let session = Session::new(SessionOptions::new("peer", 7));
        let mut rounds = Rounds::new(vec![session], false);
        let rules = Rules::new(1, Drift::from_factor(0.01).expect("a usual factor"));
        let mut ping = Request::ping(&rules, clock::now());
        ping.deadline = ping.started.after(Duration::from_secs(60));
        rounds.open(clock::now(), ping, ());
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
        let connection = Connection::new(Node::new(0), Endpoint { address, tls: None });
        let events = Events::with_capacity(8);
        Self { connection, rounds, poll, events, resolver: Resolver::new(waker) }
    }

    /// Runs the event loop until the connection fulfils `is_done`.
    fn run_until(&mut self, is_done: impl Fn(&Connection) -> bool) {
        while !is_done(&self.connection) {
            self.connection.follow_session(&mut self.rounds, self.poll.registry(), &self.resolver);
            let timeout = Some(Duration::from_millis(10));
            self.poll.poll(&mut self.events, timeout).expect("a poll");
            self.events.iter().for_each(|event| self.connection.record_readiness(event));
        }
    }
}

fn is_connected(connection: &Connection) -> bool {
    connection.socket.as_ref().is_some_and(|socket| socket.is_connected)
}

fn is_readable(connection: &Connection) -> bool {
    connection.socket.as_ref().is_some_and(|socket| socket.is_connected && socket.is_readable)
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
    peer.write_all(&MESSAGE.repeat(5 * READS_MAX / 2)).expect("it fits into the socket buffer");
    fixture.run_until(is_readable);

    for has_more in [true, true, false] {
        fixture.connection.read(&mut buffer, &mut fixture.rounds);
        assert_eq!(fixture.connection.has_more(), has_more);
    }
    assert!(
        !fixture.rounds.session(Node::new(0)).is_down(),
        "an unrequested push message is allowed"
    );
}
