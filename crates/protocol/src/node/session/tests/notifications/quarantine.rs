//! What a node in quarantine tells about reservations: its grants would not count.

use super::*;
use crate::engine::LockId;
use crate::engine::TURN;
use crate::node::fixture::{about, lock};
use std::sync::Arc;

/// A session with waiter 1, whose node was started too recently for another 53 seconds.
fn quarantined() -> ScriptedSession {
    let mut options = SessionOptions::new("redis://node", 7);
    options.quarantine = Some(Duration::from_secs(60));
    let mut talk = ScriptedSession::new(options);
    talk.connect();
    talk.hear(greeting("a", 7));
    talk.send(1, Verb::Queue);
    talk
}

#[test]
fn an_answer_of_a_node_in_quarantine_is_no_reservation() {
    let mut talk = quarantined();
    talk.hear(format!("{SUBSCRIBED}{}", queued(2, true)));
    assert_eq!(hints(&mut talk), []);
    let answers = talk.answers();
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(
        (answer.reply.vote, answer.reply.counter),
        (Vote::Granted, Some(7)),
        "its place counts"
    );
    assert_eq!(
        answer.reply.view.as_ref().map(|view| (view.is_reserved, view.is_heard)),
        Some((false, true))
    );
    assert!(matches!(answer.reply.problem, Some(crate::node::NodeError::Quarantined { .. })));
}

#[test]
fn a_register_s_turn_needs_no_safety_and_is_granted_and_told_of() {
    let mut talk = quarantined();
    talk.hear(first_queued());
    talk.answers();
    let key = Arc::from([b"a", TURN].concat());
    let turn = LockId { key, ..lock(2) };
    let claimed = "*4\r\n:4\r\n:1\r\n:0\r\n:0\r\n".to_owned();
    for (verb, reply) in [(Verb::Queue, queued(3, true)), (Verb::Turn, claimed)] {
        talk.session.send(talk.now, Some(ticket(2)), &about(verb, turn.clone(), talk.now));
        talk.hear(reply);
        let answers = talk.answers();
        let [answer] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((answer.reply.vote, &answer.reply.problem), (Vote::Granted, &None), "{verb:?}");
    }
    assert_eq!(hints(&mut talk), [(2, Hint::Reserved)]);
    talk.hear(message(1, "r"));
    talk.hear(message(2, "r"));
    assert_eq!(hints(&mut talk), [(2, Hint::Reserved)], "of the other lock, it is no reservation");
}

#[test]
fn a_message_of_a_node_in_quarantine_is_no_reservation() {
    let mut talk = quarantined();
    talk.hear(first_queued());
    talk.hear(message(1, "r"));
    assert_eq!(hints(&mut talk), []);
    // Afterwards it is one.
    talk.pass(60_000);
    talk.commands();
    talk.send(1, Verb::Queue);
    talk.hear(queued(3, false));
    talk.hear(message(1, "r"));
    assert_eq!(hints(&mut talk), [(1, Hint::Reserved)]);
}
