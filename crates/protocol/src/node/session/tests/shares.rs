//! Shares of a lock on one session: whose grants count, and on a node without a queue.

use crate::engine::{Share, Token, Verb, Vote};
use crate::node::fixture::{ScriptedSession, about, greeting, share, ticket};
use crate::node::{NodeError, SessionOptions, script};
use std::time::Duration;

const READER: Share = Share::Reader;
const ANY: Share = Share::Permit { of: 4, number: None };

fn send(talk: &mut ScriptedSession, serial: u64, verb: Verb, of: Share) {
    let request = about(verb, share(serial as u8, of), talk.now);
    let ticket = request.is_answered().then(|| ticket(serial));
    talk.session.send(talk.now, ticket, &request);
}

/// The answer to command `number` of a node that granted this permit, or -1 for a reader.
fn granted(number: u64, permit: i64) -> String {
    format!("*4\r\n:{number}\r\n:1\r\n:9\r\n:{permit}\r\n")
}

#[test]
fn the_permit_and_the_counter_come_with_the_vote() {
    for (of, number, permit) in [(READER, -1, None), (ANY, 0, Some(0)), (ANY, 3, Some(3))] {
        for verb in [Verb::Acquire, Verb::Turn] {
            let mut talk = ScriptedSession::ready();
            send(&mut talk, 1, verb, of);
            assert_eq!(talk.commands().len(), 1, "{verb:?}");
            talk.hear(granted(1, number));
            let answer = talk.answers().remove(0);
            assert_eq!(
                (answer.reply.vote, answer.reply.permit),
                (Vote::Granted, permit),
                "{verb:?}"
            );
            assert_eq!(
                (answer.reply.counter, answer.reply.is_awaited),
                (Some(9), false),
                "{verb:?}"
            );
        }
    }
}

#[test]
fn an_answer_about_another_share_closes_the_connection() {
    for (of, number) in [(READER, 0), (READER, -2), (ANY, -1), (ANY, 4)] {
        let mut talk = ScriptedSession::ready();
        send(&mut talk, 1, Verb::Acquire, of);
        talk.hear(granted(1, number));
        assert_eq!(talk.votes(), [(1, Vote::Failed)], "{of:?} {number}");
        assert!(talk.session.is_down(), "{of:?} {number}");
    }
}

#[test]
fn a_share_of_a_node_in_quarantine_does_not_count_and_is_undone() {
    for (of, number) in [(READER, -1), (ANY, 2)] {
        for verb in [Verb::Acquire, Verb::Turn] {
            let mut options = SessionOptions::new("redis://node", 7);
            options.quarantine = Some(Duration::from_secs(60));
            let mut talk = ScriptedSession::new(options);
            talk.connect();
            talk.hear(greeting("a", 7));
            send(&mut talk, 1, verb, of);
            talk.written();
            talk.hear(granted(1, number));
            let answer = talk.answers().remove(0);
            assert_eq!(
                answer.reply.vote,
                Vote::Failed,
                "its holders may have been forgotten: {of:?}"
            );
            assert!(matches!(answer.reply.problem, Some(NodeError::Quarantined { .. })), "{of:?}");
            assert_eq!(answer.reply.counter, Some(9), "the number counts anyway");
            assert!(answer.was_sent, "so the undo goes to this node too");
            // What was there before the node's start is extended as ever.
            send(&mut talk, 2, Verb::Extend, of);
            talk.hear(":2\r\n");
            assert_eq!(talk.votes(), [(2, Vote::Granted)]);
            // Afterwards it counts.
            talk.pass(60_000);
            send(&mut talk, 3, verb, of);
            talk.hear(granted(3, number));
            assert_eq!(talk.votes(), [(3, Vote::Granted)]);
        }
    }
}

#[test]
fn a_share_whose_answer_is_missing_is_removed_on_the_next_connection() {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 1, Verb::Acquire, ANY);
    send(&mut talk, 1, Verb::Undo, ANY);
    assert!(talk.written().contains(script::RELEASE_SHARED.source));
    talk.lose();
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 1)));
    talk.pass(500);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    let written = talk.written();
    assert!(written.contains(script::RELEASE_SHARED.source), "{written}");
    assert!(written.contains("\r\n$1\r\n4\r\n"), "it looks for any permit: {written}");
}

#[test]
fn a_waiter_for_a_share_that_is_not_answered_withdraws_its_attempt_from_the_holders() {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 1, Verb::Queue, ANY);
    talk.lose();
    assert_eq!(talk.session.load(), (0, 1));
    talk.pass(500);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    let written = talk.written();
    assert!(written.contains(script::RELEASE_SHARED.source), "{written}");
}

/// What gives this share back if no waiter took it.
fn source_of_release(of: Share) -> &'static str {
    if of == READER { script::RELEASE_READER.source } else { script::RELEASE_SHARED.source }
}

/// A session whose node has refused a waiter for this share, and has no queue.
fn without_queue(of: Share) -> ScriptedSession {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.connect();
    talk.hear(format!("*2\r\n+proto\r\n:2\r\n{}", crate::node::fixture::info("a", 1_000)));
    send(&mut talk, 1, Verb::Queue, of);
    talk.written();
    talk.hear("-NOPERM this user has no permissions to run the 'zadd' command\r\n");
    assert!(matches!(talk.problem(), NodeError::NoQueue(_)));
    let written = talk.written();
    assert!(written.contains(script::RELEASE_SHARED.source), "it may have entered: {written}");
    talk.hear(":2\r\n");
    talk
}

#[test]
fn a_turn_for_a_share_on_a_node_without_a_queue_is_a_plain_attempt_for_it() {
    for (of, number) in [(READER, -1), (ANY, 2)] {
        let mut talk = without_queue(of);
        send(&mut talk, 2, Verb::Turn, of);
        let written = talk.written();
        assert!(written.contains(script::SHARE.source), "{of:?}: {written}");
        let waiter = "\u{fffd}".repeat(Token::LEN);
        assert!(!written.contains(&waiter), "no waiter stands there: {of:?}: {written}");
        talk.hear(granted(3, number));
        assert_eq!(talk.votes(), [(2, Vote::Granted)], "{of:?}");
        // The next one fails at once, and its attempt is withdrawn.
        send(&mut talk, 3, Verb::Queue, of);
        assert!(matches!(talk.problem(), NodeError::NoQueue(_)), "{of:?}");
        assert!(talk.written().contains(source_of_release(of)), "{of:?}");
    }
}

#[test]
fn a_share_that_is_given_back_names_the_waiter_also_on_a_node_without_a_queue() {
    let leave = |talk: &mut ScriptedSession| {
        let mut undo = about(Verb::Undo, share(5, ANY), talk.now);
        undo.removal_mut().waiter = Some(Token::new([b'w'; Token::LEN]));
        talk.session.send(talk.now, None, &undo);
        talk.written()
    };
    let name = "w".repeat(Token::LEN);
    assert!(leave(&mut ScriptedSession::ready()).contains(&name));
    let written = leave(&mut without_queue(ANY));
    assert!(written.contains(&name), "{written}");
    assert!(written.contains(script::RELEASE_SHARED.source), "{written}");
}
