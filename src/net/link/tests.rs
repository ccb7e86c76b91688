//! A node that sends more than it is asked for.

use super::*;
use crate::clock;
use crate::engine::{Drift, Request, Rules};
use crate::node::{Session, SessionOptions};
use mio::{Events, Poll, Waker};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// A link to a peer in this process, and what moves it.
struct Bench {
    link: Link,
    rounds: Rounds<()>,
    poll: Poll,
    events: Events,
    resolver: Resolver,
}

impl Bench {
    /// A link that is to be connected, because a request waits for that.
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
        let link = Link::new(Node::new(0), address);
        let events = Events::with_capacity(8);
        Self { link, rounds, poll, events, resolver: Resolver::new(waker) }
    }

    /// Lets the link go on until something is true of it.
    fn until(&mut self, is_done: impl Fn(&Link) -> bool) {
        while !is_done(&self.link) {
            self.link.align(&mut self.rounds, self.poll.registry(), &self.resolver);
            let timeout = Some(Duration::from_millis(10));
            self.poll.poll(&mut self.events, timeout).expect("a poll");
            self.events.iter().for_each(|event| self.link.note(event));
        }
    }
}

fn is_connected(link: &Link) -> bool {
    link.socket.as_ref().is_some_and(|socket| socket.is_connected)
}

fn is_readable(link: &Link) -> bool {
    link.socket.as_ref().is_some_and(|socket| socket.is_connected && socket.is_readable)
}

#[test]
fn one_node_is_not_read_without_end() {
    const MESSAGE: &[u8] = b">1\r\n+x\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut bench = Bench::new(listener.local_addr().expect("an address").port());
    bench.until(is_connected);
    let (mut peer, _) = listener.accept().expect("a connection");
    // All of it is there before anything is read, and as much as two goes and a half take in.
    let mut buffer = [0; MESSAGE.len()];
    peer.write_all(&MESSAGE.repeat(5 * READS_MAX / 2)).expect("it fits into the socket");
    bench.until(is_readable);

    for has_more in [true, true, false] {
        bench.link.read(&mut buffer, &mut bench.rounds);
        assert_eq!(bench.link.has_more(), has_more);
    }
    assert!(!bench.rounds.session(Node::new(0)).is_down(), "it has done nothing wrong");
}
