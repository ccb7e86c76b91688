//! Nodes that were started too recently: when a majority is possible again.

use super::Nodes;
use crate::engine::Verb;
use crate::node::fixture::{greeting, node};
use crate::node::{NodeAnswer, NodeError, Rounds, Session, SessionOptions};
use std::time::Duration;

/// Three nodes with these uptimes in seconds, and a quarantine of 60 seconds. `None`: the node is
/// down.
fn up(uptimes: [Option<u64>; 3]) -> Nodes {
    let session = |index| {
        let mut options = SessionOptions::new(&format!("redis://{index}"), index);
        options.quarantine = Some(Duration::from_secs(60));
        Session::new(options)
    };
    let mut nodes = Nodes::down(true);
    nodes.rounds = Rounds::new((0..3).map(session).collect(), true);
    for (index, uptime) in uptimes.into_iter().enumerate() {
        nodes.connect(index);
        match uptime {
            Some(uptime) => nodes.receive(index, &greeting(&format!("run {index}"), uptime)),
            None => nodes.lose(index),
        }
    }
    nodes
}

#[test]
fn the_quarantine_lasts_until_a_majority_is_possible() {
    let table = [
        // The reported uptime may be a second too large.
        ([Some(61), Some(61), Some(1)], 0),
        ([Some(61), Some(1), Some(11)], 50),
        ([Some(1), Some(11), Some(21)], 50),
        ([Some(1), Some(31), Some(31)], 30),
        // The node that is down may return, and form a majority with the next one that counts.
        ([None, Some(11), Some(21)], 40),
        // With a node that counts, it would form a majority now.
        ([None, Some(61), Some(1)], 0),
        ([None, None, Some(1)], 0),
    ];
    for (uptimes, seconds) in table {
        let mut nodes = up(uptimes);
        nodes.open(1, Verb::Acquire, 1);
        for (index, uptime) in uptimes.into_iter().enumerate() {
            if uptime.is_some() {
                nodes.receive(index, "+OK\r\n");
            }
        }
        let votes = nodes.over();
        let expected = Duration::from_secs(seconds);
        assert_eq!(votes.votes.quarantine, expected, "{uptimes:?}: {votes:?}");
    }
}

#[test]
fn a_refusal_of_nodes_in_quarantine_does_not_say_that_others_hold_the_lock() {
    let quarantined = |left: u64| {
        let left = Duration::from_secs(left);
        NodeAnswer::Failed(NodeError::Quarantined { left })
    };
    let table = [
        // A reservation of nodes that cannot grant it yet looks the same.
        (
            [Some(1), Some(11), Some(61)],
            50,
            [quarantined(60), quarantined(50), NodeAnswer::Refused],
        ),
        // Their refusals count if they could have granted it.
        (
            [Some(1), Some(61), Some(61)],
            0,
            [const { NodeAnswer::Pending }; 3],
        ),
    ];
    for (uptimes, seconds, answers) in table {
        let mut nodes = up(uptimes);
        nodes.open(1, Verb::Acquire, 1);
        (0..3).for_each(|index| nodes.receive(index, "$-1\r\n"));
        let votes = nodes.over();
        assert_eq!(
            votes.votes.quarantine,
            Duration::from_secs(seconds),
            "{uptimes:?}"
        );
        assert_eq!(votes.votes.tally.refused.len(), 3);
        if seconds == 0 {
            assert!(votes.reports.is_empty(), "{votes:?}");
        } else {
            let reported: Vec<_> = votes.reports.iter().map(|it| it.answer.clone()).collect();
            assert_eq!(reported, answers, "{uptimes:?}");
        }
    }
}

#[test]
fn a_quarantine_does_not_depend_on_which_nodes_answer_first() {
    for order in [[0, 2, 1], [2, 0, 1], [0, 1, 2]] {
        let mut nodes = up([Some(1), Some(11), Some(61)]);
        nodes.rounds.wait_for_all = false;
        nodes.open(1, Verb::Acquire, 1);
        (0..2).for_each(|nth| nodes.receive(order[nth], "$-1\r\n"));
        assert_eq!(
            nodes.over().votes.quarantine,
            Duration::from_secs(50),
            "{order:?}"
        );
    }
}

#[test]
fn the_report_contains_the_remaining_quarantine_and_its_setting() {
    let mut nodes = up([Some(1), Some(7), Some(61)]);
    nodes.open(1, Verb::Acquire, 1);
    (0..3).for_each(|index| nodes.receive(index, "+OK\r\n"));
    let reports = nodes.over().reports;
    let expected = NodeAnswer::Failed(NodeError::Quarantined {
        left: Duration::from_secs(54),
    });
    assert_eq!(reports[1].answer, expected);
    let text = reports[1].to_string();
    for words in [
        "redis://1: quarantined for another 54.0 s",
        "max_ttl",
        "restart_guard",
    ] {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(reports[2].answer, NodeAnswer::Granted);
    // A quarantined node answers a ping.
    nodes.open(2, Verb::Ping, 2);
    (0..3).for_each(|index| nodes.receive(index, "+PONG\r\n"));
    #[cfg(feature = "diagnostics")]
    {
        let statuses = nodes.over().statuses;
        assert!(
            statuses
                .iter()
                .all(|status| status.is_connected && status.last_error.is_none())
        );
        assert_eq!(statuses[1].quarantine, Some(Duration::from_secs(54)));
    }
    assert!(nodes.rounds.session(node(0)).is_ready());
}
