//! Waits for a time alone.

use super::*;
use crate::node::Order;

fn pause(nodes: &mut Nodes, caller: u32, millis: u64) {
    nodes
        .rounds
        .open(nodes.now, Order::Until(at(millis)), caller);
}

/// Who has waited for a time that has come, in that order.
fn ended(nodes: &mut Nodes) -> Vec<u32> {
    let mut callers = Vec::new();
    while let Some((caller, ended)) = nodes.rounds.poll() {
        assert!(matches!(ended, Ended::Until), "{ended:?}");
        callers.push(caller);
    }
    callers
}

#[test]
fn a_caller_that_waits_for_a_time_is_told_then_and_asks_nothing() {
    let mut nodes = Nodes::ready(false);
    pause(&mut nodes, 1, 30);
    pause(&mut nodes, 2, 10);
    pause(&mut nodes, 3, 30);
    assert_eq!(nodes.rounds.next_deadline(), Some(at(10)));
    nodes.pass(9);
    assert_eq!(ended(&mut nodes), [0; 0]);
    nodes.pass(1);
    assert_eq!(ended(&mut nodes), [2]);
    assert_eq!(nodes.rounds.next_deadline(), Some(at(30)));
    nodes.pass(90);
    assert_eq!(ended(&mut nodes), [1, 3], "two for the same time");
    assert_eq!(nodes.rounds.next_deadline(), None);
    (0..3).for_each(|index| assert_eq!(nodes.commands(index), [""; 0]));
}

#[test]
fn a_time_that_has_passed_is_told_at_once() {
    let mut nodes = Nodes::ready(false);
    nodes.pass(20);
    pause(&mut nodes, 1, 20);
    pause(&mut nodes, 2, 5);
    assert_eq!(ended(&mut nodes), [1, 2]);
}

#[test]
fn who_waits_for_a_time_may_drive_the_connections_if_nobody_else_does() {
    let mut nodes = Nodes::ready(false);
    assert_eq!(nodes.rounds.next_waiter(), None);
    pause(&mut nodes, 1, 30);
    pause(&mut nodes, 2, 40);
    assert_eq!(nodes.rounds.next_waiter(), Some(&2), "for longest");
    nodes.wait(3, 1);
    let waiters: Vec<u32> = nodes.rounds.waiters().copied().collect();
    assert_eq!(waiters, [3, 2, 1]);
}

#[test]
fn the_end_of_all_calls_ends_those_that_wait_for_a_time() {
    let mut nodes = Nodes::ready(false);
    let of_another = Some(Token::new([9; Token::LEN]));
    pause(&mut nodes, 1, 30);
    nodes.rounds.post(nodes.now, Message::EndWaits(of_another));
    assert_eq!(ended(&mut nodes), [0; 0]);
    nodes.rounds.post(nodes.now, Message::EndWaits(None));
    assert_eq!(ended(&mut nodes), [1]);
    pause(&mut nodes, 2, 40);
    assert_eq!(ended(&mut nodes), [2], "and from now on");
}

#[test]
fn the_next_end_is_the_earlier_of_a_time_and_of_a_wait_in_the_queue() {
    for (millis, next) in [(20, 20), (60, 50)] {
        let mut nodes = Nodes::ready(false);
        nodes.wait(1, 1);
        pause(&mut nodes, 2, millis);
        assert_eq!(nodes.rounds.waits.next_end(), Some(at(next)));
    }
}
