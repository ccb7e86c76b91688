//! Waits until a key changes that a custom command has read.

use super::super::{node, write};
use super::*;
use crate::node::fixture::Probe;
use std::sync::Arc;

/// Reads the key for a waiter. The nodes are asked to tell it of changes.
fn look(nodes: &mut Nodes, waiter: u8) {
    let watcher = Some(Token::new([waiter; Token::LEN]));
    let read = Probe {
        key: Arc::from(KEY.as_bytes()),
        watcher,
        ..Probe::default()
    };
    nodes.rounds.begin(nodes.now, read.request(nodes.now), 1);
}

/// A key changes on a node.
fn change(nodes: &mut Nodes, index: usize, key: &str) {
    let text = format!(
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n",
        key.len()
    );
    nodes.receive(index, &text);
}

/// How many commands were written to a node by which the key is watched, and the number of
/// the script that reads it.
fn read_by(nodes: &mut Nodes, index: usize) -> (usize, u64) {
    write(nodes.rounds.session(node(index)), &mut nodes.sent[index]);
    let watching = String::from_utf8_lossy(&nodes.sent[index])
        .matches("\r\nCLIENT\r\n")
        .count();
    (watching, number(nodes, index))
}

/// All nodes answer that there is no value. Returns how many commands each has got to watch it.
fn answer_all(nodes: &mut Nodes) -> Vec<usize> {
    let answer = |index| {
        let (watching, number) = read_by(nodes, index);
        nodes.receive(
            index,
            &format!("{}*2\r\n:{number}\r\n_\r\n", "+OK\r\n".repeat(watching)),
        );
        watching
    };
    (0..3).map(answer).collect()
}

const KEY: &str = "read";

#[test]
fn a_wait_ends_when_the_value_has_changed_on_a_majority() {
    let mut nodes = Nodes::ready(false);
    look(&mut nodes, 1);
    assert_eq!(
        answer_all(&mut nodes),
        [2; 3],
        "tracking is turned on, and the next read counts"
    );
    assert!(nodes.over().is_watched);
    nodes.wait(1, 1);
    (0..3).for_each(|index| change(&mut nodes, index, "another"));
    change(&mut nodes, 0, KEY);
    change(&mut nodes, 0, KEY);
    assert!(
        !nodes.is_over(),
        "it changed on one node, and another key is not a change"
    );
    change(&mut nodes, 2, KEY);
    assert_eq!(granted(&mut nodes), NodeSet::EMPTY);

    // Only where it has changed, the server has forgotten who is to be told.
    look(&mut nodes, 1);
    assert_eq!(answer_all(&mut nodes), [1, 0, 1]);
    assert!(nodes.over().is_watched);
    change(&mut nodes, 0, KEY);
    change(&mut nodes, 1, KEY);
    nodes.wait(1, 1);
    assert_eq!(
        granted(&mut nodes),
        NodeSet::EMPTY,
        "it changed between the look and the wait"
    );
}

#[test]
fn nothing_is_left_of_a_call_that_has_waited() {
    let mut nodes = Nodes::ready(false);
    look(&mut nodes, 1);
    answer_all(&mut nodes);
    nodes.over();
    assert_eq!(nodes.rounds.queue_load(), (1, 3));
    nodes
        .rounds
        .post(nodes.now, Message::Leave(Token::new([1; Token::LEN])));
    assert_eq!(nodes.rounds.queue_load(), (0, 0));
    (0..3).for_each(|index| change(&mut nodes, index, KEY));
    assert!(!nodes.is_over());
}

#[test]
fn a_server_that_cannot_tell_is_not_asked_to_again() {
    let mut nodes = Nodes::ready(false);
    look(&mut nodes, 1);
    for index in 0..3 {
        let (watching, number) = read_by(&mut nodes, index);
        let refusals = "-ERR unknown subcommand\r\n".repeat(watching);
        nodes.receive(index, &format!("{refusals}*2\r\n:{number}\r\n_\r\n"));
    }
    assert!(!nodes.over().is_watched);
    look(&mut nodes, 1);
    assert_eq!(answer_all(&mut nodes), [0; 3]);
    nodes.over();
    nodes.wait(1, 1);
    assert!(!nodes.is_over(), "it looks in its own time");
}
