//! Output that one thread leaves to the next that drives the rounds.

use super::*;
use crate::engine::Node;
use crate::node::{Conversation, Driver, Sockets};

/// The first node has sent a status that nobody asked for.
#[derive(Default)]
struct Stray {
    is_polled: bool,
    is_read: bool,
}

impl Sockets for Stray {
    fn time(&self) -> Time {
        at(5)
    }

    fn poll(&mut self, _: &mut impl Conversation, timeout: Option<Duration>) -> bool {
        assert_eq!(timeout, Some(Duration::ZERO), "it does not wait");
        self.is_polled = true;
        true
    }

    fn polled_at(&self) -> Time {
        at(0)
    }

    fn is_finished(&self, _: Node) -> bool {
        false
    }

    fn is_readable(&self, of: Node) -> bool {
        self.is_polled && !self.is_read && of == node(0)
    }

    fn read(&mut self, rounds: &mut impl Conversation, node: Node) {
        self.is_read = true;
        rounds.received(at(5), node, b"+OK\r\n");
    }

    fn follow(&mut self, _: &mut impl Conversation, _: Node) {}

    fn write(&mut self, rounds: &mut impl Conversation, node: Node) {
        let length = rounds.output(node).len();
        rounds.wrote(node, length);
    }
}

#[test]
fn bytes_that_arrive_before_output_that_was_left_is_written_are_no_reply_to_it() {
    let mut nodes = Nodes::ready(true);
    nodes.open(1, Verb::Acquire, 1);
    let mut sockets = Stray::default();
    let mut driver = Driver::new(&mut nodes.rounds, &mut sockets);
    driver.take_over();
    driver.flush();
    assert!(sockets.is_read && nodes.rounds.session(node(0)).is_down());
    nodes.receive(1, "+OK\r\n");
    nodes.receive(2, "+OK\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[1, 2]));
}

#[test]
fn without_output_a_new_leader_reads_nothing() {
    let mut nodes = Nodes::ready(true);
    let mut sockets = Stray::default();
    Driver::new(&mut nodes.rounds, &mut sockets).take_over();
    assert!(!sockets.is_polled && !sockets.is_read);
}
