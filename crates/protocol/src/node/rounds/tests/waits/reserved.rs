//! For how long it counts that a node reserves the lock: over renewals, and not over a turn.

use super::super::{Nodes, node, set};
use super::*;
use crate::engine::LockAttributes;
use std::sync::Arc;

/// The request of a waiter for a set of two keys.
fn ask_for_set(nodes: &mut Nodes, waiter: u8) {
    let mut request = request(Verb::Queue, waiter, nodes.now);
    request.entry_mut().lock.attributes = Some(Arc::new(LockAttributes {
        more_keys: vec![Arc::from(&b"more"[..])],
        ..LockAttributes::default()
    }));
    nodes.rounds.begin(nodes.now, request, 0);
}

#[test]
fn what_nodes_told_counts_until_they_answer_themselves() {
    // What the second node answers to a renewal, and whether it is the waiter's turn.
    for (reserves, is_called) in [(1, true), (0, false)] {
        let mut nodes = Nodes::ready(false);
        enter(&mut nodes, 1, [false; 3]);
        nodes.wait(1, 1);
        notify(&mut nodes, 0, 1);
        nodes.pass(50);
        assert_eq!(granted(&mut nodes), set(&[0]));
        nodes.open(0, Verb::Queue, 1);
        answer(&mut nodes, 1, reserves);
        answer(&mut nodes, 2, 0);
        assert!(nodes.is_over());
        assert!(reserved(&nodes, 1).contains(node(0)), "{reserves}");
        nodes.wait(2, 1);
        assert_eq!(nodes.is_over(), is_called, "{reserves}");
        // Then the first answers too.
        answer(&mut nodes, 0, 0);
        assert!(!reserved(&nodes, 1).contains(node(0)), "{reserves}");
    }
}

#[test]
fn a_node_that_fails_to_answer_reserves_nothing() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED, RESERVED, false]);
    nodes.open(0, Verb::Queue, 1);
    nodes.lose(0);
    answer(&mut nodes, 1, 1);
    answer(&mut nodes, 2, 0);
    assert!(nodes.is_over());
    assert_eq!(reserved(&nodes, 1), set(&[1]));
}

#[test]
fn a_turn_uses_up_what_nodes_told_before_it_and_in_it() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED, RESERVED, false]);
    let turn = turn(&nodes, 1).ending_by(at(50));
    nodes.rounds.begin(nodes.now, turn, 1);
    notify(&mut nodes, 2, 1);
    assert_eq!(reserved(&nodes, 1), set(&[0, 1, 2]), "no node is late");
    nodes.pass(50);
    assert!(nodes.is_over());
    assert!(is_forgotten(&nodes));
    nodes.open(0, Verb::Queue, 1);
    nodes.wait(2, 1);
    assert!(!nodes.is_over());
    assert!(reserved(&nodes, 1).is_empty());
}

#[test]
fn a_wait_that_begins_in_a_turn_ends_with_it() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED, false, false]);
    let turn = turn(&nodes, 1).ending_by(at(50));
    nodes.rounds.begin(nodes.now, turn, 1);
    let wait = QueueWait {
        until: at(90),
        ..queue_wait(1, nodes.now)
    };
    nodes.rounds.wait(nodes.now, &wait, 2);
    nodes.pass(50);
    let ended: Vec<u32> = std::iter::from_fn(|| nodes.rounds.poll())
        .map(|(waiter, _)| waiter)
        .collect();
    assert_eq!(ended, [1, 2]);
    assert_eq!(nodes.rounds.waits.next_end(), None);
    nodes.pass(50);
}

#[test]
fn what_nodes_tell_of_a_set_is_a_reason_to_ask_and_no_turn() {
    let mut nodes = Nodes::ready(false);
    ask_for_set(&mut nodes, 1);
    (0..3).for_each(|index| answer(&mut nodes, index, 0));
    assert!(nodes.is_over());
    nodes.wait(1, 1);
    notify(&mut nodes, 0, 1);
    assert!(!nodes.is_over());
    notify(&mut nodes, 1, 1);
    let called = granted(&mut nodes);
    assert_eq!(called, NodeSet::EMPTY, "each may tell of another key");
    // Only an answer says that a node reserves all of them.
    ask_for_set(&mut nodes, 1);
    (0..2).for_each(|index| answer(&mut nodes, index, 1));
    assert!(nodes.is_over());
    nodes.wait(2, 1);
    assert_eq!(granted(&mut nodes), set(&[0, 1]));
}

#[test]
fn a_set_that_waits_for_another_number_of_keys_begins_anew() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED, RESERVED, false]);
    nodes.open(0, Verb::Queue, 1);
    (0..2).for_each(|index| answer(&mut nodes, index, 1));
    assert!(nodes.is_over());
    let about_one = number(&mut nodes, 2);
    ask_for_set(&mut nodes, 1);
    // The third node answers what it was asked about one of them, and then about both.
    answer_to(&mut nodes, 2, about_one, (7, 1));
    assert_eq!(reserved(&nodes, 1), NodeSet::EMPTY);
    answer(&mut nodes, 2, 1);
    assert_eq!(reserved(&nodes, 1), set(&[2]));
}
