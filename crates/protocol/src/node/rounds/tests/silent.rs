//! Which nodes a round waits for, and which nodes count as silent.

use super::{Nodes, set};
use crate::engine::{NodeSet, Request, Verb};
use crate::node::fixture::{greeting, request};
use crate::node::{NodeAnswer, NodeError};
use std::time::Duration;

/// Three nodes, the last of which was silent for a whole round.
fn with_silent_node() -> Nodes {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Acquire, 1);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "$-1\r\n");
    assert!(!nodes.is_over(), "the third may still make it a majority");
    nodes.pass(50);
    assert!(nodes.is_over());
    nodes
}

/// Is an attempt over that the first node grants and the second refuses?
fn is_decided_by_two(nodes: &mut Nodes, owner: u8) -> bool {
    nodes.open(u32::from(owner), Verb::Acquire, owner);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "$-1\r\n");
    nodes.is_over()
}

#[test]
fn a_split_attempt_does_not_wait_for_a_node_that_was_silent_in_the_previous_round() {
    for verb in [Verb::Acquire, Verb::Handoff] {
        let mut nodes = with_silent_node();
        nodes.open(2, verb, 2);
        nodes.receive(
            0,
            if verb == Verb::Acquire {
                "+OK\r\n"
            } else {
                "*4\r\n:2\r\n:0\r\n:0\r\n:0\r\n"
            },
        );
        assert!(!nodes.is_over(), "so far no node has refused");
        nodes.receive(
            1,
            if verb == Verb::Acquire {
                "$-1\r\n"
            } else {
                ":-2\r\n"
            },
        );
        let votes = nodes.over();
        assert_eq!(votes.votes.tally.granted, set(&[0]));
        assert_eq!(votes.votes.tally.refused, set(&[1]));
        assert_eq!(
            votes.votes.sent,
            NodeSet::all(3),
            "the undo must go there too"
        );
    }
}

#[test]
fn a_split_attempt_does_not_wait_for_a_node_that_was_silent_after_a_decided_round() {
    for (millis, is_silent) in [(49, false), (50, true)] {
        let mut nodes = Nodes::ready(false);
        nodes.open(1, Verb::Acquire, 1);
        nodes.receive(0, "+OK\r\n");
        nodes.receive(1, "+OK\r\n");
        assert!(nodes.is_over());
        nodes.pass(millis);
        assert_eq!(is_decided_by_two(&mut nodes, 2), is_silent);
    }
}

#[test]
fn a_split_attempt_does_not_wait_for_a_silent_node_that_is_greeting() {
    let mut nodes = with_silent_node();
    nodes.pass(450);
    nodes.pass(500);
    nodes.connect(2);
    assert!(is_decided_by_two(&mut nodes, 2));
    nodes.receive(2, &greeting("run 2", 1_000));
    assert!(!is_decided_by_two(&mut nodes, 3));
}

#[test]
fn a_node_with_unread_answers_does_not_count_as_silent() {
    let mut nodes = Nodes::ready(false);
    nodes.post(Verb::Undo, 1);
    // No call is made for an hour. Then the replies are read, one node after another.
    nodes.now = nodes.now.after(Duration::from_secs(3600));
    nodes.open(2, Verb::Acquire, 2);
    nodes.receive(0, ":1\r\n+OK\r\n");
    nodes.receive(1, ":1\r\n$-1\r\n");
    assert!(!nodes.is_over());
    nodes.receive(2, ":1\r\n+OK\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 2]));
}

#[test]
fn a_node_that_answers_again_is_waited_for_again() {
    let mut nodes = with_silent_node();
    nodes.receive(2, "$-1\r\n");
    nodes.open(2, Verb::Acquire, 2);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "$-1\r\n");
    assert!(!nodes.is_over());
    nodes.receive(2, "+OK\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 2]));
}

#[test]
fn an_uncontended_attempt_waits_for_a_silent_node() {
    let mut nodes = with_silent_node();
    nodes.open(2, Verb::Acquire, 2);
    nodes.receive(0, "+OK\r\n");
    nodes.lose(1);
    assert!(
        !nodes.is_over(),
        "only the silent node can make it a majority"
    );
    nodes.receive(2, "$-1\r\n+OK\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 2]));
}

#[test]
fn extensions_and_releases_wait_for_a_silent_node() {
    for verb in [Verb::Extend, Verb::Release] {
        let mut nodes = with_silent_node();
        nodes.open(2, verb, 2);
        nodes.receive(0, ":2\r\n");
        nodes.receive(1, ":-2\r\n");
        assert!(!nodes.is_over(), "{verb:?}");
        nodes.pass(50);
        assert!(nodes.is_over());
    }
}

#[test]
fn a_split_attempt_waits_for_every_node_that_is_not_silent() {
    let mut nodes = Nodes::of(5, false);
    (0..5).for_each(|index| nodes.greet(index));
    let attempt = |nodes: &mut Nodes, owner| {
        let request = request(Verb::Acquire, owner, nodes.now);
        nodes.rounds.begin(
            nodes.now,
            Request {
                nodes: NodeSet::all(5),
                ..request
            },
            1,
        );
    };
    attempt(&mut nodes, 1);
    (0..4).for_each(|index| nodes.receive(index, if index < 2 { "+OK\r\n" } else { "$-1\r\n" }));
    nodes.pass(50);
    assert!(nodes.is_over());

    attempt(&mut nodes, 2);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "$-1\r\n");
    nodes.receive(2, "+OK\r\n");
    assert!(!nodes.is_over(), "the fourth may still make it a majority");
    nodes.receive(3, "$-1\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 2]));
}

#[test]
fn an_attempt_does_not_wait_for_unreachable_nodes() {
    let mut nodes = Nodes::ready(false);
    nodes.lose(1);
    nodes.lose(2);
    nodes.open(1, Verb::Acquire, 1);
    let votes = nodes.over();
    assert_eq!(votes.votes.sent, set(&[0]), "only one node was asked");
    let answers: Vec<_> = votes
        .reports
        .into_iter()
        .map(|report| report.answer)
        .collect();
    assert_eq!(answers[0], NodeAnswer::Pending);
    assert!(matches!(
        answers[1],
        NodeAnswer::Failed(NodeError::Disconnected(_))
    ));
}

#[cfg(feature = "diagnostics")]
#[test]
fn a_node_that_answers_no_ping_has_that_as_its_error() {
    use crate::node::{NodeStatus, Phase};
    let mut nodes = Nodes::ready(false);
    nodes.lose(1);
    nodes.pass(500);
    nodes.connect(1);
    nodes.open(1, Verb::Ping, 0);
    nodes.receive(0, "+PONG\r\n");
    nodes.pass(50);
    let statuses = nodes.over().statuses;
    let errors: Vec<_> = statuses
        .into_iter()
        .map(|status| status.last_error)
        .collect();
    let timed_out = |phase| Some(NodeError::TimedOut(phase));
    let lost = errors[1].clone();
    assert!(
        lost.is_some_and(|error| !matches!(error, NodeError::TimedOut(_))),
        "it says more"
    );
    assert_eq!(
        (&errors[0], &errors[2]),
        (&None, &timed_out(Phase::Answering))
    );

    let mut nodes = Nodes::down(false);
    (0..3).for_each(|index| nodes.connect(index));
    nodes.open(1, Verb::Ping, 0);
    nodes.pass(2_000);
    let statuses = nodes.over().statuses;
    let is_late = |status: &NodeStatus| status.last_error == timed_out(Phase::Greeting);
    assert!(statuses.iter().all(is_late), "{statuses:?}");
}
