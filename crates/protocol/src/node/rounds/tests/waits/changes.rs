//! Waits that end because of what nodes tell about the lock's key and about other waiters.

use super::super::{Nodes, node, set};
use super::*;

/// Opens the round of a waiter that watches the lock's key.
fn watch(nodes: &mut Nodes, waiter: u8) {
    let wait = QueueWait {
        watches: true,
        ..queue_wait(waiter, nodes.now)
    };
    nodes.rounds.wait(nodes.now, &wait, 1);
}

/// The lock's key changes on a node.
fn change(nodes: &mut Nodes, index: usize) {
    nodes.receive(index, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n");
}

#[test]
fn a_wait_ends_when_a_connection_is_lost_on_which_a_node_would_have_told() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [false; 3]);
    nodes.wait(1, 1);
    let lost = NodeError::Disconnected("the connection was lost".to_owned());
    nodes.rounds.closed(nodes.now, node(0), lost);
    assert_eq!(
        granted(&mut nodes),
        NodeSet::EMPTY,
        "that node may drop its entry"
    );
}

#[test]
fn a_wait_ends_when_the_key_has_changed_on_enough_nodes_that_the_lock_may_be_free() {
    // On a majority, or on so many that with the nodes that reserve the lock they are one.
    for (told, changed) in [(&[][..], &[1, 2][..]), (&[0], &[2]), (&[2], &[1])] {
        let mut nodes = Nodes::ready(false);
        enter(&mut nodes, 1, [false; 3]);
        watch(&mut nodes, 1);
        (0..3).for_each(|index| nodes.receive(index, "+OK\r\n+OK\r\n:5\r\n"));
        told.iter().for_each(|index| notify(&mut nodes, *index, 1));
        for index in changed {
            assert!(!nodes.is_over(), "{told:?} {changed:?}");
            change(&mut nodes, *index);
        }
        assert_eq!(granted(&mut nodes), set(told), "{told:?} {changed:?}");
    }
}

#[test]
fn a_key_that_changes_between_two_rounds_ends_the_next() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [false; 3]);
    watch(&mut nodes, 1);
    (0..3).for_each(|index| nodes.receive(index, "+OK\r\n+OK\r\n:5\r\n"));
    nodes.pass(50);
    assert!(nodes.is_over());
    (0..2).for_each(|index| change(&mut nodes, index));
    watch(&mut nodes, 1);
    assert_eq!(granted(&mut nodes), NodeSet::EMPTY);
}

#[test]
fn a_wait_ends_when_the_reservation_of_another_should_have_been_claimed() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [false; 3]);
    nodes.wait(1, 1);
    nodes.pass(10);
    tell(&mut nodes, 0, 1, "w20");
    nodes.pass(1);
    // It began last on this node, and asking before it is over there would be too early.
    tell(&mut nodes, 1, 1, "w20");
    tell(&mut nodes, 2, 1, "w9");
    nodes.pass(19);
    assert!(!nodes.is_over());
    nodes.pass(1);
    assert_eq!(granted(&mut nodes), NodeSet::EMPTY);
    // A later reservation of the same node counts, although its time is shorter.
    enter(&mut nodes, 1, [false; 3]);
    nodes.wait(2, 1);
    (0..3).for_each(|index| tell(&mut nodes, index, 1, "w9999"));
    (0..3).for_each(|index| tell(&mut nodes, index, 1, "w20"));
    nodes.pass(20);
    assert_eq!(granted(&mut nodes), NodeSet::EMPTY);
    // A node that reserves the lock for this waiter is not waited for.
    enter(&mut nodes, 1, [false; 3]);
    nodes.wait(4, 1);
    tell(&mut nodes, 0, 1, "w2");
    notify(&mut nodes, 0, 1);
    tell(&mut nodes, 1, 1, "w20");
    nodes.pass(8);
    assert!(
        !nodes.is_over(),
        "the time of another is over there, and that is no reason to ask"
    );
    nodes.pass(12);
    assert_eq!(granted(&mut nodes), set(&[0]));
    // Nor is one that takes much longer than a majority.
    enter(&mut nodes, 1, [false; 3]);
    nodes.wait(5, 1);
    tell(&mut nodes, 0, 1, "w9999");
    (1..3).for_each(|index| tell(&mut nodes, index, 1, "w20"));
    nodes.pass(20);
    assert_eq!(granted(&mut nodes), NodeSet::EMPTY);
    // At once, if a node calls on it to ask.
    nodes.commands(0);
    enter(&mut nodes, 1, [false; 3]);
    nodes.wait(3, 1);
    tell(&mut nodes, 1, 1, "w9999");
    tell(&mut nodes, 2, 1, "w0");
    assert_eq!(granted(&mut nodes), NodeSet::EMPTY);
}
