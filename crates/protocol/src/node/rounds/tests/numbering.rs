//! Nodes that give a joining waiter another number than the majority agrees on.

use super::Nodes;
use super::waits::{SUBSCRIBED, answer_with, leave, number, turn};
use crate::engine::{Request, Token, Verb};

fn answer(nodes: &mut Nodes, index: usize, given: u64) {
    answer_with(nodes, index, (given, 0));
}

/// The number with which the waiter renews its entry on this node, if it does.
fn told(nodes: &mut Nodes, index: usize) -> Option<String> {
    super::write(
        nodes.rounds.session(super::node(index)),
        &mut nodes.sent[index],
    );
    let text = String::from_utf8_lossy(&std::mem::take(&mut nodes.sent[index])).into_owned();
    let words: Vec<&str> = text.split("\r\n").collect();
    // The waiter's name is the first argument, and its number the second, behind its length.
    let name = "\u{1}".repeat(Token::LEN);
    let place = words.iter().position(|word| *word == name)?;
    Some(words[place + 2].to_owned())
}

/// A waiter that has joined two of three nodes.
fn joined() -> Nodes {
    let mut nodes = Nodes::ready(false);
    nodes.open(0, Verb::Queue, 1);
    (0..2).for_each(|index| answer(&mut nodes, index, 7));
    assert!(nodes.is_over());
    nodes
}

#[test]
fn a_node_that_answers_late_with_another_number_is_told_the_agreed_one() {
    for (given, expected) in [(5, Some("7")), (7, None), (9, Some("7"))] {
        let mut nodes = joined();
        answer(&mut nodes, 2, given);
        assert_eq!(told(&mut nodes, 2).as_deref(), expected, "{given}");
        for index in 0..2 {
            assert_eq!(told(&mut nodes, index), None);
        }
    }
}

#[test]
fn a_node_that_answered_in_time_with_another_number_is_told_the_agreed_one() {
    let mut nodes = Nodes::ready(true);
    nodes.open(0, Verb::Queue, 1);
    [5, 7, 7]
        .into_iter()
        .enumerate()
        .for_each(|(index, given)| answer(&mut nodes, index, given));
    assert!(nodes.is_over());
    assert_eq!(told(&mut nodes, 0).as_deref(), Some("7"));
}

#[test]
fn nothing_is_told_once_the_turn_has_begun_or_the_waiter_has_left() {
    let request_of: [fn(&Nodes, u8) -> Request; 2] = [turn, leave];
    for request in request_of {
        let mut nodes = joined();
        let command = number(&mut nodes, 2);
        let request = request(&nodes, 1);
        nodes.rounds.begin(nodes.now, request, 1);
        nodes.commands(2);
        let late = format!("*7\r\n:{command}\r\n:5\r\n:0\r\n:0\r\n:900\r\n:1\r\n$0\r\n\r\n");
        nodes.receive(2, &format!("{SUBSCRIBED}{late}"));
        assert_eq!(told(&mut nodes, 2), None);
    }
}
