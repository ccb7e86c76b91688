//! Waits for reservations.

mod changes;
mod custom;
mod ended;
mod pauses;
mod reserved;

use super::{Nodes, set};
use crate::engine::{Before, NodeSet, QueueWait, Request, Token, Verb};
use crate::node::fixture::{at, fenced, queue_wait, request};
use crate::node::{Conversation, Ended, Message, NodeError};

const RESERVED: bool = true;

/// The answer to `SUBSCRIBE`.
pub(super) const SUBSCRIBED: &str =
    ">3\r\n$9\r\nsubscribe\r\n$25\r\nredlatch:0000000000000000\r\n:1\r\n";

/// Puts a waiter into the queue of all nodes, which answer so: is the lock reserved for it?
fn enter(nodes: &mut Nodes, waiter: u8, reserved: [bool; 3]) {
    nodes.open(0, Verb::Queue, waiter);
    for (index, reserved) in reserved.into_iter().enumerate() {
        answer(nodes, index, u8::from(reserved));
    }
    assert!(nodes.is_over());
}

/// Answers the commands of a new waiter, by their numbers: see [`number`].
fn answer(nodes: &mut Nodes, index: usize, reserved: u8) {
    answer_with(nodes, index, (7, reserved));
}

/// The same with the number that the node gives to the waiter.
pub(super) fn answer_with(nodes: &mut Nodes, index: usize, told: (u64, u8)) {
    let number = number(nodes, index);
    answer_to(nodes, index, number, told);
}

/// Answers the command with this number.
fn answer_to(nodes: &mut Nodes, index: usize, number: u64, (given, reserved): (u64, u8)) {
    let subscribed = if number == 2 { SUBSCRIBED } else { "" };
    let rest = format!(":{given}\r\n:0\r\n:{reserved}\r\n:900\r\n:1\r\n$0\r\n\r\n");
    nodes.receive(index, &format!("{subscribed}*7\r\n:{number}\r\n{rest}"));
}

/// The number of the last command that was written to a node, which is a waiter's.
pub(super) fn number(nodes: &mut Nodes, index: usize) -> u64 {
    super::write(
        nodes.rounds.session(super::node(index)),
        &mut nodes.sent[index],
    );
    let text = String::from_utf8_lossy(&nodes.sent[index]).into_owned();
    let number = text
        .trim_end()
        .rsplit("\r\n")
        .next()
        .and_then(|word| word.parse().ok());
    nodes.sent[index].clear();
    number.expect("the last word of a script is its number")
}

/// A node tells that it reserves the lock for this waiter.
fn notify(nodes: &mut Nodes, index: usize, waiter: u8) {
    tell(nodes, index, waiter, "r");
}

/// A node tells this waiter something.
fn tell(nodes: &mut Nodes, index: usize, waiter: u8, words: &str) {
    let text = char::from(waiter).to_string().repeat(Token::LEN) + words;
    let message = format!(
        ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n${}\r\n{text}\r\n",
        text.len()
    );
    nodes.receive(index, &message);
}

/// The first waiter's wait has ended: the nodes that reserve the lock for it.
fn granted(nodes: &mut Nodes) -> NodeSet {
    let reserved = reserved(nodes, 1);
    assert_eq!(is_called(nodes.ended()), reserved.len() >= 2);
    reserved
}

/// The nodes that reserve the lock for a waiter.
fn reserved(nodes: &Nodes, waiter: u8) -> NodeSet {
    let name = Token::new([waiter; Token::LEN]);
    nodes.rounds.waits.reserved(&name)
}

/// Has a wait ended in which a majority reserves the lock?
fn is_called(ended: Ended) -> bool {
    match ended {
        Ended::Wait { is_called } => is_called,
        other => panic!("{other:?} is no wait in the queue"),
    }
}

/// The turn of a waiter, with another token.
pub(super) fn turn(nodes: &Nodes, waiter: u8) -> Request {
    let mut turn = request(Verb::Turn, waiter + 100, nodes.now);
    turn.claim_mut().before = Before::Turn(Token::new([waiter; Token::LEN]));
    turn
}

/// The request by which a waiter leaves.
pub(super) fn leave(nodes: &Nodes, waiter: u8) -> Request {
    let mut leave = request(Verb::Undo, waiter, nodes.now);
    leave.removal_mut().waiter = Some(Token::new([waiter; Token::LEN]));
    leave
}

/// A node grants the turn that was written to it last.
fn grant_turn(nodes: &mut Nodes, index: usize) {
    let number = number(nodes, index);
    nodes.receive(index, &format!("*4\r\n:{number}\r\n:1\r\n:0\r\n:0\r\n"));
}

fn is_forgotten(nodes: &Nodes) -> bool {
    nodes.rounds.queue_load().0 == 0
}

#[test]
fn a_majority_of_reservations_decides_and_nothing_is_sent() {
    for wait_for_all in [false, true] {
        let mut nodes = Nodes::ready(wait_for_all);
        enter(&mut nodes, 1, [false; 3]);
        nodes.wait(1, 1);
        (0..3).for_each(|index| assert_eq!(nodes.commands(index), [""; 0]));
        notify(&mut nodes, 2, 1);
        notify(&mut nodes, 2, 1);
        assert!(!nodes.is_over(), "one node, however often it notifies");
        notify(&mut nodes, 0, 1);
        assert_eq!(granted(&mut nodes), set(&[0, 2]));
        notify(&mut nodes, 1, 1);
        assert!(!nodes.is_over(), "the round is over");
    }
}

#[test]
fn reservations_that_are_told_before_the_round_is_opened_count() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED, false, false]);
    notify(&mut nodes, 1, 1);
    nodes.wait(1, 1);
    assert_eq!(granted(&mut nodes), set(&[0, 1]));

    // One before and one after it.
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [false, RESERVED, false]);
    nodes.wait(1, 1);
    assert!(!nodes.is_over());
    notify(&mut nodes, 2, 1);
    assert_eq!(granted(&mut nodes), set(&[1, 2]));
}

#[test]
fn an_answer_that_comes_after_its_round_rings_for_the_next() {
    let mut nodes = Nodes::ready(false);
    nodes.open(0, Verb::Queue, 1);
    answer(&mut nodes, 0, 1);
    answer(&mut nodes, 1, 0);
    assert!(nodes.is_over());
    nodes.wait(1, 1);
    assert!(!nodes.is_over());
    answer(&mut nodes, 2, 1);
    assert_eq!(granted(&mut nodes), set(&[0, 2]));
}

#[test]
fn a_round_ends_at_its_deadline_with_the_reservations_so_far() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [false; 3]);
    nodes.wait(1, 1);
    notify(&mut nodes, 1, 1);
    nodes.pass(49);
    assert!(!nodes.is_over());
    nodes.pass(1);
    assert_eq!(granted(&mut nodes), set(&[1]));
}

#[test]
fn of_many_waits_each_ends_at_its_own_time() {
    let mut nodes = Nodes::ready(false);
    let mut ends = Vec::new();
    for waiter in 1..=60 {
        // Each has a time of its own, from 2 to 61, and not in the order of their names.
        let millis = 1 + u64::from(waiter) * 37 % 61;
        let until = at(millis);
        let wait = QueueWait {
            until,
            ..queue_wait(waiter, nodes.now)
        };
        nodes.rounds.wait(nodes.now, &wait, waiter.into());
        ends.push((millis, u32::from(waiter)));
    }
    // One is told to ask earlier, and then later again.
    tell(&mut nodes, 0, 60, "w1");
    assert_eq!(nodes.rounds.waits.next_end(), Some(at(1)));
    tell(&mut nodes, 0, 60, "w9999");
    ends.sort_unstable();
    for (millis, caller) in ends {
        assert_eq!(nodes.rounds.waits.next_end(), Some(at(millis)));
        nodes.now = at(millis);
        nodes.rounds.tick(nodes.now);
        let (ended, _) = nodes.rounds.poll().expect("its time has come");
        assert_eq!(ended, caller);
        assert!(!nodes.is_over(), "it ends once, and no other with it");
    }
    assert_eq!(nodes.rounds.waits.next_end(), None);
}

#[test]
fn a_reservation_counts_only_for_its_own_waiter() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [false; 3]);
    enter(&mut nodes, 2, [false; 3]);
    nodes.wait(1, 1);
    nodes.wait(2, 2);
    notify(&mut nodes, 0, 1);
    notify(&mut nodes, 1, 2);
    notify(&mut nodes, 2, 2);
    let (waiter, ended) = nodes.rounds.poll().expect("the second is decided");
    assert_eq!((waiter, is_called(ended)), (2, true));
    assert_eq!(reserved(&nodes, 2), set(&[1, 2]));
    assert!(nodes.rounds.poll().is_none());
    notify(&mut nodes, 1, 1);
    assert_eq!(granted(&mut nodes), set(&[0, 1]));
}

#[test]
fn waits_that_are_ended_end_at_once_and_so_do_later_ones() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED, false, false]);
    enter(&mut nodes, 2, [false; 3]);
    nodes.wait(1, 1);
    nodes.wait(2, 2);
    nodes.open(3, Verb::Acquire, 3);
    nodes.rounds.post(nodes.now, Message::EndWaits(None));
    let mut over: Vec<_> = std::iter::from_fn(|| nodes.rounds.poll())
        .map(|(waiter, ended): (u32, Ended)| (waiter, is_called(ended)))
        .collect();
    over.sort_by_key(|(waiter, _)| *waiter);
    assert_eq!(over, [(1, false), (2, false)], "no other round ends");
    nodes.wait(1, 1);
    assert_eq!(granted(&mut nodes), set(&[0]));
    (0..3).for_each(|index| assert_eq!(nodes.commands(index), ["SET 3"]));
}

#[test]
fn nothing_is_remembered_of_waiters_that_left_or_hold_the_lock() {
    let mut nodes = Nodes::ready(false);
    for waiter in 1..=4 {
        enter(&mut nodes, waiter, [RESERVED, false, false]);
        nodes.wait(1, waiter);
        assert!(!nodes.is_over());
    }
    assert_eq!(nodes.rounds.queue_load().0, 4);
    // Two take their turn, one leaves while it waits, and one when its wait is over.
    for waiter in 3..=4 {
        let turn = turn(&nodes, waiter);
        nodes.rounds.begin(nodes.now, turn, 1);
        assert_eq!(nodes.rounds.queue_load().0, 7 - usize::from(waiter));
        (0..3).for_each(|index| grant_turn(&mut nodes, index));
        while nodes.rounds.poll().is_some() {}
    }
    assert_eq!(nodes.rounds.queue_load().0, 2);
    let undo = leave(&nodes, 1);
    nodes.rounds.send(nodes.now, undo.clone());
    assert_eq!(
        granted(&mut nodes),
        NodeSet::EMPTY,
        "nobody waits for it any more"
    );
    nodes.pass(50);
    while nodes.rounds.poll().is_some() {}
    let undo = leave(&nodes, 2);
    nodes.rounds.send(nodes.now, undo.clone());
    assert!(is_forgotten(&nodes));
    (1..=4).for_each(|waiter| notify(&mut nodes, 1, waiter));
    assert!(is_forgotten(&nodes), "a late notification");
}

#[test]
fn the_answers_to_a_waiter_are_summed_up() {
    let mut nodes = Nodes::ready(true);
    nodes.open(0, Verb::Queue, 1);
    let view = |number: u64, place, reserved, left| {
        let numbers = format!(":{number}\r\n:{place}\r\n:{reserved}\r\n:{left}\r\n:9\r\n");
        format!("{SUBSCRIBED}*7\r\n:2\r\n{numbers}$0\r\n\r\n")
    };
    nodes.receive(0, &view(7, 2, 0, 900));
    nodes.receive(1, &view(8, 3, 1, 400));
    nodes.receive(
        2,
        &view(8, 1, 2, -2).replacen(SUBSCRIBED, "-NOPERM no\r\n", 1),
    );
    let votes = nodes.over().votes;
    assert_eq!(
        (votes.counters.largest, votes.counters.nodes),
        (8, set(&[1, 2]))
    );
    assert_eq!((votes.queue.place, votes.queue.reserved), (3, set(&[1])));
    assert_eq!(
        (votes.queue.listening, votes.queue.without),
        (set(&[0, 1]), NodeSet::EMPTY)
    );
    assert_eq!(votes.queue.out, set(&[2]));
    // A majority of the keys may be gone after that time.
    assert_eq!(
        votes.queue.left,
        Some(std::time::Duration::from_millis(900))
    );
}

#[test]
fn a_waiter_learns_how_many_its_client_has() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [false; 3]);
    for waiters in 2..4 {
        nodes.open(0, Verb::Queue, waiters);
        (0..3).for_each(|index| answer(&mut nodes, index, 0));
        assert_eq!(nodes.over().votes.queue.waiters, usize::from(waiters));
    }
    // So does a caller that is refused, and may join them.
    nodes.open(0, Verb::Acquire, 9);
    (0..3).for_each(|index| nodes.receive(index, "$-1\r\n"));
    assert_eq!(nodes.over().votes.queue.waiters, 3);
    // Those whose attempts are under way may join them before its lease has ended.
    nodes.open(0, Verb::Acquire, 10);
    nodes.open(0, Verb::Acquire, 11);
    (0..3).for_each(|index| nodes.receive(index, "$-1\r\n"));
    assert_eq!(nodes.over().votes.queue.waiters, 4);
}

#[test]
fn nodes_without_a_queue_are_reported() {
    let mut nodes = Nodes::ready(true);
    nodes.open(0, Verb::Queue, 1);
    nodes.receive(
        0,
        &format!("{SUBSCRIBED}-NOPERM no permissions to run the 'zadd' command\r\n"),
    );
    nodes.receive(
        1,
        &format!("{SUBSCRIBED}-OOM used memory > 'maxmemory'\r\n"),
    );
    nodes.lose(2);
    let votes = nodes.over();
    assert_eq!(
        (votes.votes.queue.without, votes.votes.tally.failed),
        (set(&[0]), set(&[0, 1, 2]))
    );
    assert_eq!(
        votes.votes.permanent_failures,
        NodeSet::EMPTY,
        "it may still grant locks"
    );
}

#[test]
fn the_answers_to_a_turn_say_whether_others_wait() {
    let mut nodes = Nodes::ready(true);
    for (waiting, is_awaited) in [([0, 1, 0], true), ([0, 0, 0], false), ([2, 2, 1], true)] {
        let turn = turn(&nodes, 1);
        nodes.rounds.begin(nodes.now, turn, 1);
        for (index, waiting) in waiting.into_iter().enumerate() {
            let number = number(&mut nodes, index);
            nodes.receive(
                index,
                &format!("*4\r\n:{number}\r\n:1\r\n:0\r\n:{waiting}\r\n"),
            );
        }
        let votes = nodes.over().votes;
        assert_eq!(
            (votes.tally.granted, votes.queue.is_awaited),
            (NodeSet::all(3), is_awaited)
        );
    }
}

#[test]
fn an_answer_of_an_earlier_round_does_not_say_that_others_wait() {
    let mut nodes = Nodes::ready(false);
    for (order, waiting) in [([2, 0, 1], 1), ([0, 1, 2], 0)] {
        nodes
            .rounds
            .begin(nodes.now, fenced(Verb::Acquire, 1 + waiting, nodes.now), 1);
        for (nth, index) in order.into_iter().enumerate() {
            let number = number(&mut nodes, index);
            nodes.receive(
                index,
                &format!("*4\r\n:{number}\r\n:1\r\n:9\r\n:{waiting}\r\n"),
            );
            if nth == 1 {
                assert_eq!(nodes.over().votes.queue.is_awaited, waiting > 0);
            }
        }
    }
}

#[test]
fn no_waiter_is_heard_that_left_or_was_handed_off() {
    let mut nodes = Nodes::ready(false);
    (1..=2).for_each(|waiter| enter(&mut nodes, waiter, [false; 3]));
    assert_eq!(nodes.rounds.queue_load(), (2, 6));
    let undo = leave(&nodes, 1);
    nodes.rounds.send(nodes.now, undo.clone());
    assert_eq!(nodes.rounds.queue_load(), (1, 3));
    // Its turn, and then a handoff of the lock that it got.
    let turn = turn(&nodes, 2);
    nodes.rounds.begin(nodes.now, turn, 1);
    assert_eq!(nodes.rounds.queue_load(), (1, 3));
    let mut handoff = crate::node::fixture::handoff(102, 3, nodes.now);
    handoff.predecessor_mut().waiter = Some(Token::new([2; Token::LEN]));
    nodes.rounds.begin(nodes.now, handoff, 2);
    assert_eq!(nodes.rounds.queue_load(), (0, 0));
}

#[test]
fn no_waiter_is_heard_that_has_the_lock_on_every_node() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED; 3]);
    let turn = turn(&nodes, 1);
    nodes.rounds.begin(nodes.now, turn, 1);
    (0..2).for_each(|index| grant_turn(&mut nodes, index));
    assert_eq!(nodes.over().votes.tally.granted.len(), 2);
    assert_eq!(
        nodes.rounds.queue_load(),
        (1, 3),
        "a node may still call it"
    );
    grant_turn(&mut nodes, 2);
    assert_eq!(nodes.rounds.queue_load(), (0, 0), "nothing may follow");
}

#[test]
fn a_waiter_whose_turn_has_failed_is_heard_when_it_is_back_in_the_queue() {
    let mut nodes = Nodes::ready(false);
    enter(&mut nodes, 1, [RESERVED; 3]);
    let turn = turn(&nodes, 1);
    nodes.rounds.begin(nodes.now, turn, 1);
    for index in 0..2 {
        let number = number(&mut nodes, index);
        nodes.receive(index, &format!(":-{number}\r\n"));
    }
    assert_eq!(nodes.over().votes.tally.refused.len(), 2);
    // The third node's answer to the turn comes late, before the one to the entry.
    let late = number(&mut nodes, 2);
    nodes.open(0, Verb::Queue, 1);
    nodes.receive(2, &format!(":-{late}\r\n"));
    (0..3).for_each(|index| answer(&mut nodes, index, 0));
    assert!(nodes.is_over());
    assert_eq!(nodes.rounds.queue_load(), (1, 3));
    nodes.wait(1, 1);
    notify(&mut nodes, 0, 1);
    notify(&mut nodes, 1, 1);
    assert_eq!(granted(&mut nodes), set(&[0, 1]));
}
