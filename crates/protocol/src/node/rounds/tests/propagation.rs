//! Locks that are brought to every node, and rounds that wait for connections and for nodes without
//! the lock.

use super::{Nodes, set};
use crate::engine::{Request, Token, Verb};
use crate::node::Conversation;
use crate::node::fixture::{WAITER, at, greeting, node, request};
use crate::node::session::Hint;
use std::time::Duration;

impl Nodes {
    /// Two of three nodes have granted the lock, and the third has refused it too late.
    fn with_late_refusal() -> Self {
        let mut nodes = Self::ready(false);
        nodes.open(1, Verb::Acquire, 1);
        (0..3).for_each(|index| assert_eq!(nodes.commands(index), ["SET 1"]));
        nodes.receive(0, "+OK\r\n");
        nodes.receive(1, "+OK\r\n");
        assert_eq!(nodes.over().votes.tally.granted, set(&[0, 1]));
        nodes
    }

    /// New connections to the first two nodes, which are greeted, and to the third, which is not.
    fn arriving() -> Self {
        let mut nodes = Self::down(false);
        nodes.open(1, Verb::Acquire, 1);
        (0..3).for_each(|index| nodes.connect(index));
        nodes.now = at(1);
        (0..2).for_each(|index| nodes.receive(index, &greeting(&format!("run {index}"), 1_000)));
        nodes
    }

    /// The turn of a waiter, after these nodes have called it. The lock may be spared for 100 ms.
    fn turn(called: &[usize]) -> Self {
        let mut nodes = Self::ready(false);
        nodes.open_turn(1, called);
        (0..3).for_each(|index| assert_eq!(nodes.commands(index), ["EVAL 1"]));
        nodes
    }

    fn open_turn(&mut self, owner: u8, called: &[usize]) {
        let waiter = Token::new([WAITER; Token::LEN]);
        let turn = request(Verb::Turn, owner, self.now);
        let turn = Request {
            spare_until: self.now.after(Duration::from_millis(100)),
            ..turn
        };
        called
            .iter()
            .for_each(|index| self.rounds.waits.reserve(waiter, node(*index)));
        self.rounds.begin(self.now, turn, owner.into());
    }
}

#[test]
fn a_late_refusal_of_a_grant_is_restored_with_the_rest_of_the_ttl() {
    let mut nodes = Nodes::with_late_refusal();
    nodes.pass(300);
    nodes.receive(2, "$-1\r\n");
    let output = nodes.rounds.session(node(2)).output().to_vec();
    let end = b"\r\n$3\r\n700\r\n$7\r\nrestore\r\n$1\r\n2\r\n";
    assert!(output.ends_with(end), "{}", output.escape_ascii());
    assert_eq!(nodes.commands(2), ["EVAL 1"]);
    nodes.receive(2, ":2\r\n");
    assert!(
        nodes.rounds.propagation.kept.is_empty(),
        "every node has it"
    );
}

#[test]
fn a_restoration_that_is_refused_is_sent_again_a_few_times() {
    let mut nodes = Nodes::with_late_refusal();
    nodes.receive(2, "$-1\r\n");
    let mut sent = 0;
    let mut number = 2;
    while !nodes.commands(2).is_empty() {
        sent += 1;
        nodes.receive(2, &format!(":-{number}\r\n"));
        number += 1;
        if let Some(at) = nodes.rounds.propagation.retries_at {
            assert!(nodes.rounds.next_deadline().is_some_and(|next| next <= at));
            nodes.now = at;
            nodes.rounds.tick(at);
        }
    }
    assert_eq!((sent, nodes.now), (9, at(255)));
}

#[test]
fn no_grant_is_restored_after_its_release() {
    for verb in [Verb::Release, Verb::Undo, Verb::Queue] {
        let mut nodes = Nodes::with_late_refusal();
        if verb == Verb::Undo {
            nodes.post(verb, 1);
        } else {
            nodes.open(2, verb, 1);
        }
        nodes.commands(2);
        nodes.receive(2, "$-1\r\n");
        assert_eq!(nodes.commands(2), [""; 0], "{verb:?}");
        // Nor what is due again.
        let mut nodes = Nodes::with_late_refusal();
        nodes.receive(2, "$-1\r\n");
        nodes.commands(2);
        nodes.receive(2, ":-2\r\n");
        if verb == Verb::Undo {
            nodes.post(verb, 1);
        } else {
            nodes.open(2, verb, 1);
        }
        nodes.commands(2);
        nodes.pass(5);
        assert_eq!(nodes.commands(2), [""; 0], "{verb:?}");
    }
}

#[test]
fn no_grant_is_restored_after_its_handoff_or_its_ttl() {
    let mut nodes = Nodes::with_late_refusal();
    nodes
        .rounds
        .begin(nodes.now, crate::node::fixture::handoff(1, 2, nodes.now), 2);
    nodes.commands(2);
    nodes.receive(2, "$-1\r\n");
    assert_eq!(nodes.commands(2), [""; 0]);
    let mut nodes = Nodes::with_late_refusal();
    nodes.now = at(1_000);
    nodes.receive(2, "$-1\r\n");
    assert_eq!(nodes.commands(2), [""; 0]);
    assert!(nodes.rounds.propagation.kept.is_empty());
}

/// A lock that was taken without the third node is brought there, which has replied this when the
/// lock is released.
fn check_release_after_restoration(replies: &[&str]) {
    let mut nodes = Nodes::ready(false);
    nodes.lose(2);
    nodes.pass(500);
    nodes.open(1, Verb::Acquire, 1);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "+OK\r\n");
    let sent = nodes.over().votes.sent;
    assert_eq!(sent, set(&[0, 1]));
    nodes.greet(2);
    assert_eq!(
        nodes.commands(2),
        ["EVAL 1"],
        "the node can be reached again"
    );
    for reply in replies {
        nodes.receive(2, reply);
    }
    let release = Request {
        nodes: sent,
        ..request(Verb::Release, 1, nodes.now)
    };
    nodes.rounds.begin(nodes.now, release, 2);
    assert_eq!(nodes.commands(2), ["EVAL 1"]);
    assert!(nodes.rounds.propagation.kept.is_empty());
}

#[test]
fn a_lock_that_was_restored_is_released_there() {
    check_release_after_restoration(&[]);
    // Its holder does not know that every node has it.
    check_release_after_restoration(&[":1\r\n"]);
}

#[test]
fn the_first_lock_waits_for_a_node_that_is_connecting_as_long_as_it_makes_progress() {
    let mut nodes = Nodes::arriving();
    let mut wait = request(Verb::Acquire, 1, at(0));
    wait.spare_until = at(100);
    nodes.rounds.entries[0].request = Some(wait.into());
    nodes.now = at(2);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "+OK\r\n");
    assert!(!nodes.is_over(), "for a fifth of the round's time");
    assert_eq!(nodes.rounds.next_deadline(), Some(at(12)));
    nodes.now = at(3);
    nodes.receive(2, &greeting("run 2", 1_000));
    assert_eq!(nodes.commands(2), ["SET 1"]);
    nodes.pass(8);
    assert!(!nodes.is_over(), "it has answered the greeting");
    nodes.receive(2, "+OK\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 1, 2]));
}

#[test]
fn a_lock_says_that_it_has_waited_beyond_its_deadline_for_a_connection() {
    for (last, is_late) in [(50, false), (55, true)] {
        let mut nodes = Nodes::arriving();
        let first = nodes.rounds.entries[0]
            .request
            .as_mut()
            .expect("it is open");
        first.change(|first| first.spare_until = at(100));
        assert_eq!(first.deadline, at(50));
        nodes.pass(29);
        nodes.receive(0, "+OK\r\n");
        nodes.receive(1, "+OK\r\n");
        nodes.receive(2, &greeting("run 2", 1_000));
        nodes.now = at(last);
        assert!(!nodes.is_over());
        nodes.receive(2, "+OK\r\n");
        assert_eq!(nodes.over().votes.was_prolonged, is_late);
    }
}

#[test]
fn a_silent_node_delays_only_the_first_lock_of_a_client() {
    let mut nodes = Nodes::arriving();
    let first = nodes.rounds.entries[0]
        .request
        .as_mut()
        .expect("it is open");
    first.change(|first| first.spare_until = at(100));
    nodes.now = at(2);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "+OK\r\n");
    nodes.now = at(12);
    nodes.rounds.tick(at(12));
    assert_eq!(nodes.over().votes.sent, set(&[0, 1]));
    let second = Request {
        spare_until: at(100),
        ..request(Verb::Acquire, 2, at(12))
    };
    nodes.rounds.begin(at(12), second, 2);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "+OK\r\n");
    assert!(nodes.is_over());
    // What was not written is not written as it was: both locks are restored.
    nodes.receive(2, &greeting("run 2", 1_000));
    assert_eq!(nodes.commands(2), ["EVAL 1", "EVAL 2"]);
}

#[test]
fn a_round_goes_on_while_a_majority_is_connecting_for_the_first_time() {
    for votes in ["", "+OK\r\n"] {
        let mut nodes = Nodes::arriving();
        nodes.receive(0, votes);
        nodes.pass(400);
        assert!(!nodes.is_over());
    }
    // With the answers of a majority, as long again as they took.
    let mut nodes = Nodes::arriving();
    nodes.receive(0, "+OK\r\n");
    nodes.pass(59);
    assert_eq!(nodes.now, at(60));
    nodes.receive(2, &greeting("run 2", 1_000));
    nodes.receive(1, "$-1\r\n");
    nodes.rounds.tick(at(60));
    assert!(!nodes.is_over() && nodes.rounds.next_deadline() == Some(at(120)));
    nodes.pass(60);
    let votes = nodes.over().votes;
    assert!(
        votes.was_prolonged && votes.sent == set(&[0, 1, 2]),
        "{votes:?}"
    );
}

#[test]
fn a_connection_that_was_lost_is_waited_for_no_longer_than_the_last_one_took() {
    let mut nodes = Nodes::ready(false);
    (0..2).for_each(|index| nodes.lose(index));
    nodes.pass(500);
    (0..2).for_each(|index| nodes.connect(index));
    nodes.open(1, Verb::Acquire, 1);
    assert_eq!(nodes.rounds.next_deadline(), Some(at(550)));
    nodes.pass(50);
    assert!(nodes.is_over());
}

#[test]
fn a_turn_waits_for_a_node_that_refused_until_it_calls() {
    let mut nodes = Nodes::turn(&[0, 1]);
    nodes.receive(0, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    nodes.receive(2, ":-1\r\n");
    nodes.receive(1, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    assert!(!nodes.is_over());
    assert_eq!(
        nodes.commands(2),
        ["EVAL 1"],
        "the release may have arrived meanwhile"
    );
    nodes.receive(2, ":-2\r\n");
    assert!(!nodes.is_over());
    let waiter = Token::new([WAITER; Token::LEN]);
    nodes
        .rounds
        .told(nodes.now, node(2), &waiter, Hint::Reserved);
    assert_eq!(nodes.commands(2), ["EVALSHA 1"]);
    assert!(nodes.is_over(), "it will take it");
}

#[test]
fn a_turn_waits_in_vain_once_for_a_node() {
    let mut nodes = Nodes::turn(&[0, 1]);
    nodes.receive(0, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    nodes.receive(1, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    assert!(!nodes.is_over(), "the third has not called");
    nodes.receive(2, ":-1\r\n");
    assert!(!nodes.is_over());
    nodes.pass(9);
    assert!(!nodes.is_over());
    nodes.pass(1);
    assert!(nodes.is_over());
    assert!(nodes.rounds.propagation.late_nodes.contains(node(2)));
}

#[test]
fn a_turn_does_not_wait_for_a_node_that_is_silent() {
    let mut nodes = Nodes::turn(&[0, 1]);
    nodes.receive(0, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    nodes.receive(1, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    assert!(!nodes.is_over(), "it may answer");
    nodes.pass(1);
    assert!(nodes.is_over());
    nodes.pass(49);
    nodes.open_turn(2, &[0, 1]);
    (0..3).for_each(|index| assert_eq!(nodes.commands(index).len(), 1));
    nodes.receive(0, "*4\r\n:2\r\n:1\r\n:0\r\n:0\r\n");
    nodes.receive(1, "*4\r\n:2\r\n:1\r\n:0\r\n:0\r\n");
    assert!(nodes.is_over());
}

#[test]
fn a_turn_that_every_node_called_for_does_not_wait() {
    let mut nodes = Nodes::turn(&[0, 1, 2]);
    nodes.receive(0, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    nodes.receive(1, "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    assert!(nodes.is_over());
}

#[test]
fn a_lock_without_validity_to_spare_does_not_wait() {
    let mut nodes = Nodes::arriving();
    nodes.now = nodes.now.after(Duration::from_millis(1));
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "+OK\r\n");
    assert!(nodes.is_over());
    let turn = nodes
        .rounds
        .entries
        .iter()
        .filter_map(|entry| entry.request.as_ref());
    assert!(turn.clone().all(|it| it.verb() == Verb::Acquire));
}
