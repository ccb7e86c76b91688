//! Fenced locks: the largest counter, and the nodes that reported it.

use super::{Nodes, set};
use crate::engine::{Counters, Verb};
use crate::node::fixture::{at, fenced, fenced_handoff, greeting, node, request};
use crate::node::{Conversation, NodeError, Rounds, Session, SessionOptions};
use std::time::Duration;

fn open(nodes: &mut Nodes, verb: Verb, owner: u8) {
    nodes
        .rounds
        .begin(nodes.now, fenced(verb, owner, nodes.now), 1);
}

/// The reply to command `number` of a node that granted a free lock.
fn granted_new(number: u64, counter: u64) -> String {
    format!("*4\r\n:{number}\r\n:1\r\n:{counter}\r\n:0\r\n")
}

/// The counters of the round that is over.
fn counters(nodes: &mut Nodes) -> (u64, crate::engine::NodeSet) {
    let Counters { largest, nodes } = nodes.over().votes.counters;
    (largest, nodes)
}

#[test]
fn the_largest_counter_is_reported_with_its_nodes() {
    let table = [
        ([7, 7, 7], 7, &[0, 1, 2][..]),
        ([7, 9, 7], 9, &[1]),
        ([9, 9, 7], 9, &[0, 1]),
        ([7, 8, 9], 9, &[2]),
        ([9, 8, 9], 9, &[0, 2]),
    ];
    for (answers, largest, which) in table {
        let mut nodes = Nodes::ready(true);
        open(&mut nodes, Verb::Acquire, 1);
        for (index, counter) in answers.into_iter().enumerate() {
            nodes.receive(index, &granted_new(1, counter));
        }
        assert_eq!(counters(&mut nodes), (largest, set(which)), "{answers:?}");
    }
}

#[test]
fn refusals_and_failed_nodes_report_no_counter() {
    let mut nodes = Nodes::ready(true);
    open(&mut nodes, Verb::Acquire, 1);
    nodes.receive(0, ":-1\r\n");
    nodes.receive(1, &granted_new(1, 7));
    nodes.lose(2);
    assert_eq!(counters(&mut nodes), (7, set(&[1])));
    // A counter does not count for the next round, which uses the same entry.
    nodes.pass(500);
    open(&mut nodes, Verb::Acquire, 2);
    nodes.receive(0, &granted_new(2, 3));
    nodes.receive(1, &granted_new(2, 3));
    nodes.pass(50);
    assert_eq!(counters(&mut nodes), (3, set(&[0, 1])));
}

#[test]
fn a_quarantined_node_reports_its_counter_but_has_no_vote() {
    let session = |index| {
        let mut options = SessionOptions::new(&format!("redis://{index}"), index);
        options.quarantine = Some(Duration::from_secs(60));
        Session::new(options)
    };
    let mut nodes = Nodes::down(true);
    nodes.rounds = Rounds::new((0..3).map(session).collect(), true);
    for (index, uptime) in [1_000, 1_000, 1].into_iter().enumerate() {
        nodes.connect(index);
        nodes.receive(index, &greeting(&format!("run {index}"), uptime));
    }
    let table = [(1, 9, 9, &[][..]), (2, 7, 7, &[0, 1]), (3, 3, 7, &[0, 1])];
    for (number, third, largest, which) in table {
        open(&mut nodes, Verb::Acquire, 1);
        for (index, counter) in [7, 7, third].into_iter().enumerate() {
            nodes.receive(index, &granted_new(number, counter));
        }
        let votes = nodes.over().votes;
        assert_eq!(
            (votes.tally.granted, votes.tally.failed),
            (set(&[0, 1]), set(&[2]))
        );
        assert_eq!(
            (votes.counters.largest, votes.counters.nodes),
            (largest, set(which))
        );
    }
}

#[test]
fn the_counter_of_one_server_with_two_names_counts_once() {
    let mut nodes = Nodes::ready(false);
    nodes.lose(0);
    nodes.pass(500);
    open(&mut nodes, Verb::Acquire, 1);
    nodes.receive(2, &granted_new(1, 9));
    // The first node reconnects: its greeting reveals the same server.
    nodes.connect(0);
    nodes.receive(0, &greeting("run 2", 1_000));
    nodes.receive(0, &granted_new(1, 9));
    // The third node reconnects to another server: now all three differ.
    nodes.lose(2);
    nodes.pass(20);
    nodes.connect(2);
    nodes.receive(2, &greeting("run 3", 1_000));
    nodes.receive(1, &granted_new(1, 7));
    let votes = nodes.over().votes;
    assert!(!votes.same_server);
    assert_eq!(votes.tally.granted, set(&[0, 1]));
    assert_eq!(
        (votes.counters.largest, votes.counters.nodes),
        (9, set(&[0]))
    );
}

#[test]
fn an_invalid_counter_is_permanent_and_the_former_lock_is_removed() {
    let mut nodes = Nodes::ready(false);
    let over = fenced_handoff(8, 1, at(0));
    nodes.rounds.begin(nodes.now, over, 1);
    (0..3).for_each(|index| drop(nodes.commands(index)));
    for index in 0..2 {
        nodes.receive(index, "-FENCE a counter of this lock is no number\r\n");
    }
    let votes = nodes.over();
    assert_eq!(votes.votes.permanent_failures, set(&[0, 1]));
    for index in 0..2 {
        let problem = votes.reports[index].answer.to_string();
        assert!(problem.contains("FENCE"), "{problem}");
        assert_eq!(
            nodes.rounds.session(node(index)).load(),
            (0, 1),
            "the former lock is a pending release"
        );
    }
    // A fenced lock needs a valid counter. A lock without a counter is still possible.
    nodes.pass(1);
    nodes
        .rounds
        .begin(nodes.now, request(Verb::Acquire, 3, nodes.now), 2);
    (0..2).for_each(|index| assert!(nodes.commands(index).contains(&"SET 3".to_owned())));
}

#[test]
fn a_confirmation_is_sent_to_all_nodes_and_needs_a_majority() {
    let mut nodes = Nodes::ready(false);
    open(&mut nodes, Verb::Fence, 1);
    (0..3).for_each(|index| assert_eq!(nodes.commands(index), ["EVAL 1"]));
    nodes.receive(0, ":1\r\n");
    nodes.receive(1, ":-1\r\n");
    assert!(!nodes.is_over());
    nodes.receive(2, ":1\r\n");
    let votes = nodes.over();
    assert_eq!(votes.votes.tally.granted, set(&[0, 2]));
    assert!(votes.reports.is_empty(), "a won round needs no reports");
    // A connection lost meanwhile leaves no pending release.
    open(&mut nodes, Verb::Fence, 2);
    nodes.rounds.closed(
        nodes.now,
        node(0),
        NodeError::Disconnected("gone".to_owned()),
    );
    assert_eq!(nodes.rounds.session(node(0)).load(), (0, 0));
}
