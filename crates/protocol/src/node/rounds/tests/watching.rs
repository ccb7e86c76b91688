//! The reported changes of nodes.

use super::{Nodes, at};
use crate::engine::Verb;
use crate::node::fixture::{greeting, node};
use crate::node::{CHANGES_MAX, NodeError, NodeState, Phase};
use std::time::Duration;

const NODE_TIMEOUT: Duration = Duration::from_millis(50);

fn watched() -> Nodes {
    let mut nodes = Nodes::down(false);
    nodes.rounds.watch(NODE_TIMEOUT);
    nodes
}

/// The changes since the last call: the number of the node, and its state.
fn changes(nodes: &mut Nodes) -> Vec<(String, NodeState)> {
    let changes = std::iter::from_fn(|| nodes.rounds.poll_change());
    let number = |name: &str| name.strip_prefix("redis://").unwrap_or(name).to_owned();
    changes
        .map(|change| (number(&change.url), change.state))
        .collect()
}

fn greet(nodes: &mut Nodes, index: usize) {
    nodes.connect(index);
    nodes.receive(index, &greeting(&format!("run {index}"), 1_000));
}

fn gone() -> NodeState {
    NodeState::Down(NodeError::Disconnected("gone".to_owned()))
}

#[test]
fn nothing_is_recorded_without_a_listener() {
    let mut nodes = Nodes::ready(false);
    nodes.lose(0);
    nodes.open(1, Verb::Acquire, 1);
    nodes.pass(60);
    assert_eq!(changes(&mut nodes), []);
}

#[test]
fn up_and_down_are_each_reported_once_despite_retries() {
    let mut nodes = watched();
    assert_eq!(changes(&mut nodes), []);
    greet(&mut nodes, 0);
    assert_eq!(changes(&mut nodes), [("0".to_owned(), NodeState::Up)]);
    nodes.lose(0);
    for _ in 0..10 {
        nodes.pass(1_000);
        nodes
            .rounds
            .session(node(0))
            .connecting(nodes.now, Phase::Connecting);
        nodes.lose(0);
    }
    assert_eq!(changes(&mut nodes), [("0".to_owned(), gone())]);
    nodes.pass(1_000);
    greet(&mut nodes, 0);
    assert_eq!(changes(&mut nodes), [("0".to_owned(), NodeState::Up)]);
}

#[test]
fn a_node_that_was_never_up_is_reported_as_down() {
    let mut nodes = watched();
    nodes
        .rounds
        .session(node(1))
        .connecting(nodes.now, Phase::Connecting);
    nodes.lose(1);
    assert_eq!(changes(&mut nodes), [("1".to_owned(), gone())]);
}

#[test]
fn a_refused_greeting_is_reported_with_the_servers_error() {
    let mut nodes = watched();
    nodes.connect(2);
    nodes.receive(2, "-NOAUTH Authentication required.\r\n");
    nodes.lose(2);
    let reported = changes(&mut nodes);
    let [(_, NodeState::Down(NodeError::Server(error)))] = &reported[..] else {
        panic!("{reported:?}")
    };
    assert!(error.text.starts_with("NOAUTH"));
}

#[test]
fn a_connection_lost_in_the_same_read_is_reported_as_up_and_down() {
    let mut nodes = watched();
    nodes.connect(0);
    nodes.receive(0, &format!("{}+unsolicited\r\n", greeting("run 0", 1_000)));
    let reported = changes(&mut nodes);
    assert_eq!(reported[0].1, NodeState::Up);
    assert!(
        matches!(
            reported[1].1,
            NodeState::Down(NodeError::UnexpectedReply(_))
        ),
        "{reported:?}"
    );
    assert_eq!(reported.len(), 2);
}

#[test]
fn a_silent_node_is_reported_as_slow_once_until_it_answers_in_time() {
    let mut nodes = watched();
    (0..3).for_each(|index| greet(&mut nodes, index));
    assert_eq!(changes(&mut nodes).len(), 3);
    nodes.open(1, Verb::Acquire, 1);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "+OK\r\n");
    nodes.over();
    nodes.pass(49);
    assert_eq!(changes(&mut nodes), []);
    nodes.pass(1);
    let slow = NodeState::Slow(NODE_TIMEOUT);
    assert_eq!(
        changes(&mut nodes),
        [("2".to_owned(), slow.clone())],
        "also after the round is over"
    );
    nodes.pass(50);
    assert_eq!(changes(&mut nodes), []);

    // It answers, but late.
    nodes.receive(2, "+OK\r\n");
    nodes.open(2, Verb::Acquire, 2);
    nodes.pass(50);
    assert_eq!(
        changes(&mut nodes).len(),
        2,
        "the other two nodes, which had answered in time"
    );
    nodes.receive(2, "+OK\r\n");

    // It answers in time, and is then silent again.
    nodes.open(3, Verb::Acquire, 3);
    nodes.receive(2, "+OK\r\n");
    nodes.open(4, Verb::Acquire, 4);
    nodes.pass(50);
    assert_eq!(changes(&mut nodes), [("2".to_owned(), slow)]);
}

#[test]
fn a_node_disconnected_for_its_silence_is_slow_first_and_down_then() {
    let mut nodes = watched();
    greet(&mut nodes, 0);
    nodes.post(Verb::Undo, 1);
    nodes.pass(60);
    nodes.pass(440);
    nodes.pass(1_000);
    let reported = changes(&mut nodes);
    let zero: Vec<_> = reported
        .iter()
        .filter(|(name, _)| name == "0")
        .map(|(_, state)| state)
        .collect();
    let down = NodeState::Down(NodeError::TimedOut(Phase::Answering));
    let slow = NodeState::Slow(Duration::from_millis(60));
    assert_eq!(zero, [&NodeState::Up, &slow, &down]);
}

#[test]
fn a_failing_connection_is_reported_as_slow_and_then_down_once() {
    let mut nodes = watched();
    for _ in 0..3 {
        nodes
            .rounds
            .session(node(0))
            .connecting(nodes.now, Phase::Connecting);
        nodes.pass(50);
        nodes.pass(1_950);
        nodes.pass(1_000);
    }
    let reported = changes(&mut nodes);
    assert_eq!(reported[0].1, NodeState::Slow(NODE_TIMEOUT));
    assert_eq!(
        reported[1].1,
        NodeState::Down(NodeError::TimedOut(Phase::Connecting))
    );
    assert_eq!(reported.len(), 2);
}

#[test]
fn unread_changes_are_bounded_and_the_latest_are_kept() {
    let mut nodes = watched();
    for _ in 0..CHANGES_MAX {
        nodes.pass(1_000);
        greet(&mut nodes, 0);
        nodes.lose(0);
    }
    assert!(nodes.now > at(0));
    let reported = changes(&mut nodes);
    assert_eq!(reported.len(), CHANGES_MAX);
    assert_eq!(reported.last(), Some(&("0".to_owned(), gone())));
}
