//! What is reported of the nodes in rounds of custom commands, and when what follows on them is
//! sent.

use super::Nodes;
use crate::engine::Verb;
use crate::node::fixture::Probe;
use crate::node::{Conversation, NodeAnswer, NodeError};

/// What is reported of a node that does this, if both others are lost.
fn report(command: Probe) -> NodeAnswer {
    let mut nodes = Nodes::ready(false);
    nodes.rounds.begin(nodes.now, command.request(nodes.now), 1);
    nodes.receive(0, "*1\r\n:1\r\n");
    (1..3).for_each(|index| nodes.lose(index));
    let reports = nodes.over().reports;
    assert!(matches!(
        reports[1].answer,
        NodeAnswer::Failed(NodeError::Disconnected(_))
    ));
    reports[0].answer.clone()
}

#[test]
fn a_node_answers_a_look_and_accepts_a_change_and_grants_neither() {
    let table = [
        (false, NodeAnswer::Answered, "answered"),
        (true, NodeAnswer::Accepted, "accepted"),
    ];
    for (is_accept, answer, text) in table {
        let reported = report(Probe {
            is_accept,
            ..Probe::default()
        });
        assert_eq!((reported.to_string().as_str(), &reported), (text, &answer));
    }
}

/// How many commands have been written to this node since the last time.
fn written(nodes: &mut Nodes, index: usize) -> usize {
    nodes.commands(index).len()
}

/// Three nodes have done something on which another one follows, and one of them says so late.
fn followed() -> Nodes {
    let mut nodes = Nodes::ready(false);
    let probe = Probe {
        is_followed: true,
        ..Probe::default()
    };
    nodes.rounds.begin(nodes.now, probe.request(nodes.now), 1);
    (0..2).for_each(|index| nodes.receive(index, "*1\r\n:1\r\n"));
    nodes.over();
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1));
    nodes
}

/// Another round, with this waiter.
fn ask(nodes: &mut Nodes, waiter: u32) {
    let request = Probe::default().request(nodes.now);
    nodes.rounds.begin(nodes.now, request, waiter);
}

#[test]
fn what_follows_is_written_with_what_is_sent_next_while_somebody_waits() {
    let mut nodes = followed();
    ask(&mut nodes, 2);
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1));
    nodes.receive(2, "*1\r\n:1\r\n");
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 0, "not alone"));
    ask(&mut nodes, 3);
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 2));
    nodes.post(Verb::Release, 1);
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1, "once"));
}

#[test]
fn what_follows_is_sent_when_nobody_waits_any_more() {
    let mut nodes = followed();
    ask(&mut nodes, 2);
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1));
    nodes.receive(2, "*1\r\n:1\r\n");
    (0..2).for_each(|index| nodes.receive(index, "*1\r\n:2\r\n"));
    nodes.over();
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1));

    let mut nodes = followed();
    nodes.receive(2, "*1\r\n:1\r\n");
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1, "at once"));
}

#[test]
fn nothing_follows_before_all_nodes_have_answered() {
    let mut nodes = followed();
    ask(&mut nodes, 2);
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1));
    nodes.post(Verb::Release, 1);
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1));
}

#[test]
fn a_client_that_is_dropped_waits_for_answers_on_which_something_follows() {
    let mut nodes = followed();
    assert!(nodes.rounds.is_draining(nodes.now));
    nodes.receive(2, "*1\r\n:1\r\n");
    (0..3).for_each(|index| assert_eq!(written(&mut nodes, index), 1));
    assert!(!nodes.rounds.is_draining(nodes.now));

    let mut nodes = followed();
    nodes.pass(60_000);
    assert!(!nodes.rounds.is_draining(nodes.now), "not for ever");
}
