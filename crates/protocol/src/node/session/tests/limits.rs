//! Requests without room wait, and a silent node keeps only a bounded number of them.

use crate::engine::{LockAttributes, LockId, Request, Verb, Vote};
use crate::node::fixture::{self, ScriptedSession, at, greeting, ticket};
use crate::node::{
    IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, NodeError, PENDING_MAX, Phase, SessionOptions,
};
use std::sync::Arc;
use std::time::Duration;

const HALF: usize = IN_FLIGHT_MAX / 2;
const NODE_TIMEOUT: Duration = Duration::from_millis(50);

/// A request about a key of 64 KiB.
fn long(verb: Verb, talk: &ScriptedSession) -> Request {
    fixture::long(verb, 64 * 1024, talk.now)
}

/// A session with this many unanswered or waiting attempts, with the tickets from 0.
fn crowded(attempts: usize) -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    (0..attempts as u64).for_each(|serial| talk.send(serial, Verb::Acquire));
    assert!(
        talk.answers().is_empty(),
        "a node that is not silent refuses no request"
    );
    assert_eq!(talk.commands().len(), HALF);
    talk
}

#[test]
fn requests_without_room_are_written_in_order_as_replies_arrive() {
    let mut talk = crowded(10_000);
    // A few thousand are cancelled.
    assert!((1_000..5_000).all(|serial| talk.session.cancel(ticket(serial))));
    assert!(
        !talk.session.cancel(ticket(1_000)),
        "it was already cancelled"
    );
    assert!(
        !talk.session.cancel(ticket(0)),
        "a sent request may have been executed"
    );
    let mut granted = Vec::new();
    while talk.session.load() != (0, 0) {
        talk.hear("+OK\r\n".repeat(7.min(talk.session.load().0)));
        granted.extend(talk.votes());
        assert!(talk.session.load().0 <= HALF);
    }
    let expected: Vec<_> = (0..1_000)
        .chain(5_000..10_000)
        .map(|s| (s, Vote::Granted))
        .collect();
    assert_eq!(granted, expected);
    assert_eq!(
        talk.commands().len(),
        expected.len() - HALF,
        "cancelled requests were never sent"
    );
}

#[test]
fn only_removals_overtake_waiting_requests() {
    let mut talk = crowded(HALF + 2);
    talk.post(1, Verb::Undo);
    assert_eq!(
        talk.commands(),
        ["EVAL 1"],
        "half of the room is reserved for removals"
    );
    // The undo uses the room that this reply makes.
    talk.hear("+OK\r\n");
    talk.send(9_000, Verb::Ping);
    assert_eq!(talk.commands(), [""; 0]);
    talk.hear("+OK\r\n");
    assert_eq!(talk.written().matches("SET").count(), 1);
    talk.hear("+OK\r\n+OK\r\n");
    assert_eq!(talk.commands(), ["SET 1", "PING"]);
}

#[test]
fn a_release_without_room_is_written_and_answered_later() {
    let mut talk = crowded(HALF);
    (0..HALF).for_each(|_| talk.post(1, Verb::Undo));
    talk.written();
    talk.send(7, Verb::Release);
    assert_eq!(
        (talk.session.load(), talk.votes()),
        ((IN_FLIGHT_MAX, 1), vec![])
    );
    talk.hear("+OK\r\n");
    assert_eq!(talk.commands(), ["EVAL 7"]);
    talk.hear("+OK\r\n".repeat(HALF - 1));
    (1..=HALF).for_each(|undo| talk.hear(format!(":{}\r\n", HALF + undo)));
    talk.answers();
    talk.hear(format!(":{}\r\n", IN_FLIGHT_MAX + 1));
    assert_eq!(talk.votes(), [(7, Vote::Granted)]);
}

#[test]
fn waiting_requests_fail_when_the_node_falls_silent() {
    let mut talk = crowded(2 * HALF);
    assert_eq!(
        talk.session.next_deadline(),
        Some(at(50)),
        "waiting requests fail at this time"
    );
    talk.pass(49);
    talk.hear("+OK\r\n");
    assert_eq!(talk.votes(), [(0, Vote::Granted)]);
    assert_eq!(
        talk.session.next_deadline(),
        Some(talk.now.after(NODE_TIMEOUT)),
        "the node has replied"
    );
    talk.pass(49);
    assert!(talk.answers().is_empty());
    talk.pass(1);
    let refused = talk.answers();
    assert_eq!(refused.len(), HALF - 1);
    assert!(
        refused
            .iter()
            .all(|answer| answer.reply.problem == Some(NodeError::Overloaded))
    );
    assert!(
        refused.iter().all(|answer| !answer.was_sent),
        "so there is nothing to undo"
    );
    talk.send(9_000, Verb::Acquire);
    assert_eq!(talk.problem(), NodeError::Overloaded);
    // Removals have room of their own, and are kept beyond it.
    (0..IN_FLIGHT_MAX).for_each(|_| talk.post(1, Verb::Undo));
    assert_eq!(talk.session.load(), (IN_FLIGHT_MAX, HALF));
    // When the node replies, pending releases are written first, and then new requests: as many
    // as there is room for in bytes, since each is sent with its script.
    talk.hear("+OK\r\n".repeat(HALF));
    let (in_flight, pending) = talk.session.load();
    assert_eq!(
        (in_flight + pending, in_flight > HALF),
        (IN_FLIGHT_MAX, true)
    );
    talk.answers();
    talk.send(9_001, Verb::Acquire);
    assert!(talk.session.cancel(ticket(9_001)), "it waits");
}

#[test]
fn without_room_a_request_without_a_waiter_is_dropped_unless_it_is_a_removal() {
    // It would be written after the removal of its key, which has reserved room.
    let mut talk = crowded(HALF);
    talk.post(1, Verb::Restore);
    talk.hear("+OK\r\n".repeat(HALF));
    assert_eq!((talk.commands(), talk.session.load()), (vec![], (0, 0)));
}

#[test]
fn pending_removals_are_bounded_only_while_the_node_is_silent_or_down() {
    let mut talk = ScriptedSession::ready();
    let undo = long(Verb::Undo, &talk);
    for _ in 0..2 * PENDING_MAX {
        talk.session.send(talk.now, None, &undo);
    }
    let (under_way, pending) = talk.session.load();
    assert_eq!(under_way + pending, 2 * PENDING_MAX);
    assert!(
        (8..10).contains(&under_way),
        "{under_way}: each names the key twice"
    );
    talk.pass(50);
    for _ in 0..100 {
        talk.session.send(talk.now, None, &undo);
    }
    let (_, pending) = talk.session.load();
    assert!(
        pending <= 2 * PENDING_MAX + 32,
        "{pending}: the node is silent"
    );

    let mut down = ScriptedSession::ready();
    down.lose();
    for _ in 0..100 {
        down.session.send(down.now, None, &undo);
    }
    assert_eq!(down.session.load(), (0, IN_FLIGHT_BYTES_MAX / (64 * 1024)));
}

#[test]
fn the_room_is_bounded_in_bytes_too() {
    let mut talk = ScriptedSession::ready();
    let long = long(Verb::Acquire, &talk);
    for serial in 0..100 {
        talk.session.send(talk.now, Some(ticket(serial)), &long);
    }
    let (sent, _) = talk.session.load();
    assert!((8..10).contains(&sent), "{sent}");
    assert!(talk.session.output().len() < IN_FLIGHT_BYTES_MAX);
    talk.hear("+OK\r\n".repeat(sent));
    assert_eq!(
        (talk.votes().len(), talk.session.load().0),
        (sent, sent),
        "the next ones were written"
    );
}

#[test]
fn waiting_requests_are_bounded_while_a_connection_takes_too_long() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    let long = long(Verb::Acquire, &talk);
    let send = |talk: &mut ScriptedSession, serials: std::ops::Range<u64>| {
        for serial in serials {
            talk.session.send(talk.now, Some(ticket(serial)), &long);
        }
    };
    send(&mut talk, 0..100);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.pass(50);
    assert!(talk.answers().is_empty(), "they may still be written");
    send(&mut talk, 100..101);
    assert_eq!(talk.problem(), NodeError::Overloaded);
    assert!(!talk.session.cancel(ticket(100)), "refused immediately");
    assert!((0..93).all(|serial| talk.session.cancel(ticket(serial))));
    send(&mut talk, 200..300);
    assert_eq!(talk.answers().len(), 99, "a few may wait");
    talk.connect();
    talk.hear(greeting("a", 1_000));
    assert!(talk.answers().is_empty() && talk.session.load().0 >= 8);
}

#[test]
fn pending_releases_are_bounded_and_the_oldest_is_dropped() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    for _ in 0..PENDING_MAX + 10 {
        talk.post(1, Verb::Undo);
    }
    assert_eq!(talk.session.load(), (0, PENDING_MAX));
}

#[test]
fn all_keys_count_towards_the_room_of_a_silent_node() {
    let more_keys = (0..63)
        .map(|number| format!("{number:01000}").into_bytes().into())
        .collect();
    let attributes = Some(Arc::new(LockAttributes {
        more_keys,
        ..LockAttributes::default()
    }));
    let large = |verb, serial: u64| {
        let attributes = attributes.clone();
        fixture::about(
            verb,
            LockId {
                attributes,
                ..fixture::lock(serial as u8)
            },
            at(0),
        )
    };
    // One session is connected, the other has not been greeted yet.
    let mut ready = ScriptedSession::ready();
    let mut new = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    ready.send(0, Verb::Ping);
    new.session.connecting(new.now, Phase::Connecting);
    for mut talk in [ready, new] {
        talk.pass(50);
        let sent = (1..200).take_while(|serial| {
            talk.session.send(
                talk.now,
                Some(ticket(*serial)),
                large(Verb::Acquire, *serial),
            );
            talk.answers().is_empty()
        });
        let sent = sent.count();
        assert!(
            (4..=9).contains(&sent),
            "{sent} times 63,000 bytes, or twice that"
        );
        // Removals are still accepted, and are bounded.
        for serial in 0..200 {
            talk.session.send(talk.now, None, large(Verb::Undo, serial));
        }
        let (unanswered, pending) = talk.session.load();
        assert!(
            (sent..=18).contains(&(unanswered.max(pending))),
            "{unanswered}, {pending}"
        );
        assert!(talk.session.output().len() <= IN_FLIGHT_BYTES_MAX + 140_000);
    }
}
