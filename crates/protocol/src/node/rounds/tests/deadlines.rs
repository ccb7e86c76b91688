//! Rounds that end at their deadline, in any order, and requests without room until then.

use super::{Nodes, set};
use crate::engine::{NodeSet, Verb};
use crate::node::fixture::{at, node};
use crate::node::{Conversation, IN_FLIGHT_MAX, Message, NodeAnswer, NodeError};

impl Nodes {
    /// The waiters whose rounds end by then, and when, with a tick at each deadline.
    fn ended_until(&mut self, millis: u64) -> Vec<(u32, u64)> {
        let mut ended = Vec::new();
        while self.now < at(millis) {
            let next = self.rounds.next_deadline().expect("a round has a waiter");
            self.now = next.max(self.now).min(at(millis));
            self.rounds.tick(self.now);
            let next = self.rounds.next_deadline();
            assert!(
                next.is_none_or(|next| next > self.now),
                "{next:?} has passed"
            );
            while let Some((waiter, _)) = self.rounds.poll() {
                ended.push((waiter, self.now.since(at(0)).as_millis() as u64));
            }
        }
        ended
    }
}

#[test]
fn each_round_ends_at_its_deadline_in_any_order() {
    let mut nodes = Nodes::ready(false);
    for (waiter, deadline) in [(1, 30), (2, 10), (3, 40), (4, 20), (5, 10)] {
        nodes.open_until(waiter, 1, deadline);
    }
    assert_eq!(nodes.rounds.next_deadline(), Some(at(10)));
    assert_eq!(nodes.ended_until(25), [(2, 10), (5, 10), (4, 20)]);
    // A round decided early leaves its deadline behind. A later round may end before it.
    nodes.open_until(6, 1, 28);
    assert_eq!(nodes.ended_until(60), [(6, 28), (1, 30), (3, 40)]);
    assert_eq!(nodes.rounds.waiters().count(), 0);
}

#[test]
fn a_request_without_room_until_the_round_ends_is_never_sent() {
    let mut nodes = Nodes::ready(false);
    let half = IN_FLIGHT_MAX as u32 / 2;
    (0..half).for_each(|waiter| nodes.open(waiter, Verb::Acquire, 1));
    // The first two nodes reply, the third is slow.
    for index in 0..3 {
        assert_eq!(nodes.commands(index).len(), half as usize);
    }
    for index in 0..2 {
        nodes.receive(index, &"+OK\r\n".repeat(half as usize));
    }
    while nodes.rounds.poll().is_some() {}
    nodes.open(half, Verb::Acquire, 7);
    for index in 0..2 {
        assert_eq!(nodes.commands(index), ["SET 7"]);
        nodes.receive(index, "+OK\r\n");
    }
    let votes = nodes.over().votes;
    assert_eq!(
        (votes.tally.granted.len(), votes.sent.contains(node(2))),
        (2, false)
    );
    nodes.receive(2, &"+OK\r\n".repeat(half as usize));
    assert_eq!(nodes.commands(2), [""; 0], "the round is over");
}

/// Three nodes of which the first has granted a lock when the round's time is over.
fn with_one_grant() -> Nodes {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Acquire, 1);
    nodes.receive(0, "+OK\r\n");
    nodes.pass(50);
    assert!(!nodes.is_over());
    nodes
}

#[test]
fn a_round_without_a_majority_waits_for_nodes_that_are_slow() {
    let mut nodes = with_one_grant();
    nodes.pass(300);
    nodes.receive(2, "+OK\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 2]));

    // The node that is lost cannot complete a majority. The other one can.
    let mut nodes = with_one_grant();
    nodes.lose(1);
    nodes.pass(300);
    assert!(!nodes.is_over());
    nodes.receive(2, "+OK\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 2]));

    let mut nodes = with_one_grant();
    nodes.lose(1);
    nodes.lose(2);
    assert!(nodes.is_over());
}

/// It may have restarted, and grant the lock to others by now.
#[test]
fn a_node_whose_connection_is_lost_has_no_vote_in_the_rounds_that_are_open() {
    let mut nodes = with_one_grant();
    nodes.lose(0);
    nodes.receive(2, "+OK\r\n");
    assert!(!nodes.is_over());
    nodes.receive(1, "$-1\r\n");
    let votes = nodes.over().votes;
    assert_eq!(
        (votes.tally.granted, votes.tally.failed),
        (set(&[2]), set(&[0]))
    );
    assert_eq!(votes.sent, NodeSet::all(3), "it is undone everywhere");
    // An extension adds nothing that a restarted node could give to others.
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Extend, 1);
    nodes.receive(0, ":1\r\n");
    nodes.lose(0);
    nodes.receive(1, ":1\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 1]));
}

#[test]
fn no_round_waits_for_slow_nodes_once_the_client_ends() {
    let mut nodes = with_one_grant();
    nodes.rounds.post(nodes.now, Message::EndWaits(None));
    nodes.rounds.tick(nodes.now);
    assert!(nodes.is_over());
    nodes.open(1, Verb::Acquire, 2);
    nodes.pass(49);
    assert!(!nodes.is_over());
    nodes.pass(1);
    assert!(nodes.is_over());
}

#[test]
fn it_waits_until_their_connections_are_about_to_be_given_up_or_the_caller_does() {
    let mut nodes = with_one_grant();
    nodes.pass(399);
    assert!(!nodes.is_over());
    nodes.pass(1);
    let outcome = nodes.over();
    // What undoes it is written on the same connection.
    nodes.post(Verb::Undo, 1);
    assert_eq!(nodes.commands(1).len(), 2);
    assert_eq!(outcome.votes.tally.granted, set(&[0]));
    assert!(matches!(
        outcome.reports[1].answer,
        NodeAnswer::Failed(NodeError::TimedOut(_))
    ));

    let mut nodes = Nodes::ready(false);
    nodes.open_until(1, 1, 120);
    nodes.pass(119);
    assert!(!nodes.is_over());
    nodes.pass(1);
    assert!(nodes.is_over());
}

#[test]
fn it_does_not_wait_if_a_majority_has_answered_or_for_a_status() {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Extend, 1);
    nodes.receive(0, ":1\r\n");
    nodes.pass(50);
    assert!(!nodes.is_over());
    nodes.receive(1, ":-1\r\n");
    nodes.pass(1);
    assert!(nodes.is_over());

    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Ping, 1);
    nodes.pass(50);
    assert!(nodes.is_over());
}
