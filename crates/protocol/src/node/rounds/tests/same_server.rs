//! Two nodes that are one server.

use super::{Nodes, node, set};
use crate::engine::{NodeSet, Request, Verb};
use crate::node::Conversation;
use crate::node::fixture::{Probe, at, greeting, request};
use crate::node::{NodeAnswer, NodeError, NodeState, RoundOutcome};
use std::time::Duration;

#[test]
fn two_urls_of_one_server_fail_every_attempt_and_are_both_reported() {
    let mut nodes = Nodes::down(false);
    nodes.open(1, Verb::Acquire, 1);
    (0..3).for_each(|index| nodes.connect(index));
    nodes.receive(0, &greeting("same", 1_000));
    nodes.receive(1, &greeting("other", 1_000));
    nodes.receive(2, &greeting("same", 1_000));
    nodes.receive(2, "+OK\r\n");
    nodes.receive(0, "+OK\r\n");
    assert!(!nodes.is_over(), "one server has one vote");
    nodes.receive(1, "+OK\r\n");
    let votes = nodes.over();
    assert!(votes.votes.same_server);
    let error = NodeError::SameServer {
        url: "redis://0".into(),
    };
    assert_eq!(votes.reports[2].to_string(), format!("redis://2: {error}"));

    nodes.open(2, Verb::Acquire, 2);
    assert_eq!(
        nodes.over().votes.sent,
        NodeSet::EMPTY,
        "no request is sent any more"
    );
}

/// What a node hears of its server in one connection: nothing yet, the greeting, the greeting and
/// the answer.
const STEPS: usize = 2;

/// All orders in which the steps of the nodes can come.
fn orders(nodes: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..nodes * STEPS {
        let mut longer = Vec::new();
        for order in &orders {
            for node in 0..nodes {
                if order.iter().filter(|it| **it == node).count() < STEPS {
                    longer.push([&order[..], &[node]].concat());
                }
            }
        }
        orders = longer;
    }
    orders
}

#[test]
fn in_every_order_of_greetings_and_votes_one_server_has_one_vote() {
    let runs = ["same", "other", "same"];
    let mut checked = 0;
    for verb in [Verb::Acquire, Verb::Extend, Verb::Release] {
        // A new client, a client whose connections are all new, and one that knew other servers.
        for before in [None, Some(["same", "other", "same"]), Some(["a", "b", "c"])] {
            for order in orders(runs.len()) {
                let mut nodes = Nodes::down(false);
                if let Some(before) = before {
                    (0..3).for_each(|index| nodes.connect(index));
                    (0..3).for_each(|index| nodes.receive(index, &greeting(before[index], 1_000)));
                    (0..3).for_each(|index| nodes.lose(index));
                    nodes.pass(500);
                }
                nodes.open(1, verb, 1);
                (0..3).for_each(|index| nodes.connect(index));
                let mut has_greeted = [false; 3];
                for index in order.clone() {
                    if std::mem::replace(&mut has_greeted[index], true) {
                        if nodes.commands(index).is_empty() {
                            continue; // The round was decided before that.
                        }
                        nodes.receive(
                            index,
                            if verb == Verb::Acquire {
                                "+OK\r\n"
                            } else {
                                ":1\r\n"
                            },
                        );
                    } else {
                        nodes.receive(index, &greeting(runs[index], 1_000));
                    }
                }
                nodes.pass(50);
                let mut result = nodes.rounds.poll();
                let was_in_time = result.is_some();
                if !was_in_time {
                    // It waits for connections that are being made.
                    nodes.pass(1_950);
                    result = nodes.rounds.poll();
                }
                let ended = result.expect("a round is decided").1;
                let votes = ended.into_round().expect("it was a round");
                let granted = votes.votes.tally.granted;
                let is_both = granted.contains(node(0)) && granted.contains(node(2));
                assert!(!is_both, "{verb:?}, {order:?}: a server voted twice");
                if !was_in_time {
                    continue; // Silent connections were closed.
                }
                // Once all have greeted, nothing is granted any more.
                nodes.open(2, Verb::Acquire, 2);
                let Some((_, result)) = nodes.rounds.poll() else {
                    continue;
                };
                let votes = result.into_round().expect("it was a round");
                assert!(votes.votes.same_server && votes.votes.tally.granted.is_empty());
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn a_duplicate_is_reported_as_a_node_that_is_down_until_it_is_its_own_server() {
    let mut nodes = Nodes::down(false);
    nodes.rounds.watch(Duration::from_millis(50));
    let changes = |nodes: &mut Nodes| {
        let changes = std::iter::from_fn(|| nodes.rounds.poll_change());
        changes
            .map(|change| (change.url.to_string(), change.state))
            .collect::<Vec<_>>()
    };
    let url = |index: usize| format!("redis://{index}");
    let twin = || {
        NodeState::Down(NodeError::SameServer {
            url: "redis://0".into(),
        })
    };
    (0..3).for_each(|index| nodes.connect(index));
    nodes.receive(0, &greeting("same", 1_000));
    nodes.receive(1, &greeting("other", 1_000));
    nodes.receive(2, &greeting("same", 1_000));
    let up = |index| (url(index), NodeState::Up);
    assert_eq!(changes(&mut nodes), [up(0), up(1), (url(2), twin())]);
    // The earlier node moves to a server of its own.
    nodes.lose(0);
    nodes.connect(0);
    nodes.receive(0, &greeting("another", 1));
    let seen = changes(&mut nodes);
    assert_eq!(seen[1..], [up(2), up(0)], "{seen:?}");
}

#[test]
fn one_server_has_one_vote_also_if_it_voted_before_it_was_recognised() {
    for verb in [Verb::Extend, Verb::Release] {
        let mut nodes = Nodes::ready(false);
        nodes.lose(0);
        nodes.lose(1);
        nodes.pass(500);
        nodes.open(1, verb, 1);
        // The third node grants.
        nodes.receive(2, ":1\r\n");
        // The first node reconnects: its greeting reveals the same server.
        nodes.connect(0);
        nodes.receive(0, &greeting("run 2", 1_000));
        nodes.receive(0, ":1\r\n");
        assert!(!nodes.is_over(), "{verb:?}: a majority of one server");
        nodes.pass(50);
        assert_eq!(nodes.over().votes.tally.granted, set(&[0]));
    }
}

#[test]
fn one_server_has_one_vote_also_if_the_node_that_gave_it_has_moved() {
    let mut nodes = Nodes::down(false);
    (0..3).for_each(|index| nodes.connect(index));
    nodes.receive(0, &greeting("same", 1_000));
    nodes.receive(1, &greeting("other", 1_000));
    nodes.receive(2, &greeting("same", 1_000));
    (0..3).for_each(|index| nodes.rounds.session(node(index)).used());
    let ending = request(Verb::Extend, 1, nodes.now).ending_by(at(50));
    nodes.rounds.begin(nodes.now, ending, 1);
    nodes.receive(0, ":1\r\n");
    // The URL of the first node leads to another server from now on.
    nodes.lose(0);
    nodes.connect(0);
    nodes.receive(0, &greeting("another", 1));
    nodes.receive(2, ":1\r\n");
    assert!(!nodes.is_over(), "a majority of one server");
    nodes.pass(50);
    assert_eq!(nodes.over().votes.tally.granted, set(&[0]));
    // From the next round on it has a vote.
    nodes.open(2, Verb::Extend, 1);
    nodes.receive(0, ":2\r\n");
    nodes.receive(2, ":2\r\n");
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 2]));
}

#[test]
fn a_node_that_moved_to_its_own_server_counts_again() {
    let mut nodes = Nodes::ready(false);
    nodes.lose(0);
    nodes.pass(500);
    nodes.connect(0);
    nodes.receive(0, &greeting("run 1", 1_000));
    nodes.open(1, Verb::Acquire, 1);
    assert!(nodes.over().votes.same_server);
    nodes.lose(0);
    nodes.pass(500);
    // Only a new connection proves it, and now there is a request to send.
    nodes.open(2, Verb::Acquire, 2);
    assert!(!nodes.is_over());
    nodes.connect(0);
    nodes.receive(0, &greeting("another", 1));
    assert_eq!(nodes.commands(0), ["SET 2"]);
}

#[test]
fn a_look_at_every_node_has_one_answer_of_each_server() {
    const SAID: &str = "*1\r\n:1\r\n";
    let look = |now| {
        Probe {
            asks_all: true,
            ..Probe::default()
        }
        .request(now)
    };
    let mut nodes = Nodes::down(false);
    nodes.rounds.begin(nodes.now, look(nodes.now), 1);
    (0..3).for_each(|index| nodes.connect(index));
    nodes.receive(0, &greeting("same", 1_000));
    nodes.receive(1, &greeting("other", 1_000));
    nodes.receive(2, &greeting("same", 1_000));
    (0..3).for_each(|index| nodes.receive(index, SAID));
    assert_eq!(has_said(&mut nodes), [true, true, false]);

    // Also if it was answered before the duplicate was recognised.
    let mut nodes = Nodes::ready(false);
    nodes.lose(0);
    nodes.pass(500);
    nodes.rounds.begin(nodes.now, look(nodes.now), 1);
    nodes.receive(2, SAID);
    nodes.connect(0);
    nodes.receive(0, &greeting("run 2", 1_000));
    nodes.receive(0, SAID);
    nodes.receive(1, SAID);
    assert_eq!(has_said(&mut nodes), [true, true, false]);
}

#[test]
fn what_only_a_duplicate_server_is_asked_is_not_said() {
    for (node, is_said) in [(1, true), (2, false)] {
        let mut nodes = Nodes::down(false);
        let look = Probe {
            asks_all: true,
            ..Probe::default()
        }
        .request(nodes.now);
        nodes.rounds.begin(
            nodes.now,
            Request {
                nodes: set(&[node]),
                ..look
            },
            1,
        );
        (0..3).for_each(|index| nodes.connect(index));
        nodes.receive(0, &greeting("same", 1_000));
        nodes.receive(1, &greeting("other", 1_000));
        nodes.receive(2, &greeting("same", 1_000));
        nodes.receive(node, "*1\r\n:1\r\n");
        let RoundOutcome { said, reports, .. } = nodes.over();
        assert_eq!(said[node].is_some(), is_said);
        assert_eq!(
            reports[node].answer == NodeAnswer::Answered,
            is_said,
            "{reports:?}"
        );
    }
}

fn has_said(nodes: &mut Nodes) -> Vec<bool> {
    nodes.over().said.iter().map(Option::is_some).collect()
}
