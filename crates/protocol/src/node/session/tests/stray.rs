//! Unsolicited and repeated replies: they answer no command.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting};
use crate::node::{NodeError, ServerErrorKind, SessionOptions};

/// An idle session whose previous command was answered.
fn idle() -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear("+OK\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk
}

fn loss(talk: &ScriptedSession) -> NodeError {
    talk.session.loss().cloned().expect("the connection was closed")
}

#[test]
fn an_unsolicited_reply_closes_the_connection_and_is_reported() {
    for stray in ["+OK\r\n", ":1\r\n", "$-1\r\n", "*0\r\n", "|1\r\n+a\r\n+b\r\n+OK\r\n"] {
        let mut talk = idle();
        talk.hear(stray);
        let problem = loss(&talk).to_string();
        assert!(problem.contains("nothing was asked"), "{problem}");
        talk.send(2, Verb::Acquire);
        assert_eq!(
            talk.votes(),
            [],
            "it waits for another connection, which is made without a pause"
        );
        assert!(talk.session.wants_connection(talk.now));
    }
    for (stray, kind) in [
        ("-ERR max number of clients reached\r\n", ServerErrorKind::TooManyClients),
        ("-DENIED Redis is running in protected mode\r\n", ServerErrorKind::Authentication),
    ] {
        let mut talk = idle();
        talk.hear(stray);
        let NodeError::Server(error) = loss(&talk) else { panic!("{stray}") };
        assert_eq!((error.kind, format!("-{error}\r\n").as_str()), (kind, stray));
    }
}

#[test]
fn the_beginning_of_an_unsolicited_reply_closes_the_connection() {
    for stray in ["+", "+OK", ":1\r", "$5\r\nab", "*2\r\n:1\r\n", "-E"] {
        let mut talk = idle();
        talk.hear(stray);
        assert!(talk.session.is_down(), "the rest would count as a reply: {stray:?}");
        // Also if it arrives together with the reply before it.
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Acquire);
        talk.hear(format!("+OK\r\n{stray}"));
        assert_eq!(talk.votes(), [(1, Vote::Granted)]);
        assert!(talk.session.is_down(), "{stray:?}");
    }
}

#[test]
fn push_messages_and_attributes_are_accepted_at_any_time_however_split() {
    let message = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n|1\r\n+a\r\n$2\r\nbc\r\n";
    for cut in 0..=message.len() {
        let mut talk = idle();
        talk.hear(&message[..cut]);
        assert!(!talk.session.is_down(), "cut at {cut}");
        talk.commands();
        talk.send(2, Verb::Acquire);
        let is_proven = talk.commands() == ["EVAL", "SET 2"];
        talk.hear(&message[cut..]);
        assert_eq!(talk.votes(), [], "cut at {cut}");
        talk.hear(if is_proven { ":2\r\n$-1\r\n" } else { "$-1\r\n" });
        assert_eq!(talk.votes(), [(2, Vote::Refused)], "cut at {cut}");
    }
}

#[test]
fn half_of_an_unsolicited_reply_after_an_attribute_closes_the_connection() {
    let mut talk = idle();
    talk.hear("|1\r\n+a\r\n+b\r\n+O");
    assert!(talk.session.is_down());
}

#[test]
fn a_repeated_reply_of_a_script_counts_once() {
    for verb in [Verb::Extend, Verb::Release, Verb::Handoff, Verb::Fence] {
        let yes = if verb == Verb::Handoff { "*4\r\n:1\r\n:0\r\n:0\r\n:0\r\n" } else { ":1\r\n" };
        for answer in [yes, ":-1\r\n"] {
            let mut talk = ScriptedSession::ready();
            talk.send(1, verb);
            talk.send(2, verb);
            talk.hear(answer);
            assert_eq!(talk.votes().len(), 1);
            // After the next command is written, only its number distinguishes it.
            talk.hear(answer);
            assert_eq!(talk.votes(), [(2, Vote::Failed)], "{verb:?} {answer}");
            assert!(talk.session.is_down());
        }
    }
}

#[test]
fn no_command_number_is_used_on_two_connections() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Extend);
    talk.lose();
    talk.pass(500);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    talk.send(2, Verb::Extend);
    talk.answers();
    talk.hear(":1\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Failed)]);
}

#[test]
fn bytes_that_could_pass_for_a_reply_must_be_read_before_a_request_is_written() {
    let must_be_read_before = |talk: &ScriptedSession, verb| {
        talk.session.must_be_read_before(&crate::node::fixture::request(verb, 3, talk.now))
    };
    let mut talk = idle();
    assert!(must_be_read_before(&talk, Verb::Acquire) && must_be_read_before(&talk, Verb::Release));
    talk.send(2, Verb::Release);
    assert!(must_be_read_before(&talk, Verb::Acquire), "a repeated reply could count for it");
    assert!(!must_be_read_before(&talk, Verb::Release), "its reply carries a proof");
    talk.lose();
    assert!(!must_be_read_before(&talk, Verb::Acquire), "there is no connection");
}

#[test]
fn bytes_after_the_greeting_do_not_count_as_a_reply() {
    for stray in ["+OK\r\n", "+O", "-ERR what\r\n"] {
        let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
        talk.send(1, Verb::Acquire);
        talk.connect();
        talk.hear(format!("{}{stray}", greeting("a", 1_000)));
        assert_eq!(talk.votes(), [(1, Vote::Failed)], "{stray:?}");
        assert_eq!(talk.commands(), [""; 0]);
        assert!(talk.session.is_down(), "{stray:?}");
    }
}

/// A node that has just sent an error, unsolicited or not.
fn after_an_error() -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Release);
    talk.hear("-ERR max number of clients reached\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Failed)]);
    talk.commands();
    talk
}

#[test]
fn after_an_error_a_plain_grant_counts_once_a_script_has_proven_the_order() {
    let mut talk = after_an_error();
    talk.send(2, Verb::Acquire);
    talk.send(3, Verb::Acquire);
    assert_eq!(talk.commands(), ["EVAL", "SET 2", "SET 3"], "one proof is enough");
    talk.hear(":2\r\n+OK\r\n$-1\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Granted), (3, Vote::Refused)]);
    talk.send(4, Verb::Acquire);
    assert_eq!(talk.commands(), ["SET 4"]);

    // A script that is in flight anyway proves the order as well.
    let mut talk = after_an_error();
    talk.send(2, Verb::Extend);
    talk.send(3, Verb::Acquire);
    assert_eq!(talk.commands(), ["EVAL 2", "SET 3"]);
    talk.hear(":2\r\n+OK\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Granted), (3, Vote::Granted)]);
}

#[test]
fn replies_after_an_unsolicited_error_do_not_count() {
    // The reply to the release arrives in place of the reply to the proof.
    let mut talk = after_an_error();
    talk.send(2, Verb::Acquire);
    talk.hear(":1\r\n+OK\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Failed)]);
    assert!(talk.session.is_down());

    // With several attempts in flight, the grant of one would count for the next.
    let mut talk = ScriptedSession::ready();
    (1..=3).for_each(|serial| talk.send(serial, Verb::Acquire));
    talk.hear("-ERR max number of clients reached\r\n+OK\r\n$-1\r\n");
    assert_eq!(talk.votes(), [1, 2, 3].map(|serial| (serial, Vote::Failed)));
}

#[test]
fn an_error_after_an_error_leaves_the_order_unproven() {
    let mut talk = after_an_error();
    talk.send(2, Verb::Acquire);
    talk.hear("-LOADING\r\n+OK\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Failed)]);
    assert!(!talk.session.is_down());
}

#[test]
fn half_a_message_does_not_shift_replies_to_other_commands() {
    for half in [">2\r\n+a\r\n", "|1\r\n+a\r\n"] {
        let mut talk = idle();
        talk.hear(half);
        talk.send(2, Verb::Acquire);
        talk.send(3, Verb::Acquire);
        assert_eq!(talk.commands(), ["SET 1", "EVAL", "SET 2", "SET 3"]);
        // The reply to the proof completes the message, and the next reply takes its place.
        talk.hear(":2\r\n$-1\r\n+OK\r\n");
        assert!(talk.votes().iter().all(|(_, vote)| *vote == Vote::Failed), "{half:?}");
        assert!(talk.session.is_down(), "{half:?}");

        // If the rest of the message was only late, no vote is lost.
        let mut talk = idle();
        talk.hear(half);
        talk.send(2, Verb::Acquire);
        talk.hear("+b\r\n:2\r\n+OK\r\n");
        assert_eq!(talk.votes(), [(2, Vote::Granted)], "{half:?}");
    }
}

#[test]
fn a_repeated_error_does_not_count_for_another_command() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Extend);
    talk.send(2, Verb::Acquire);
    talk.send(3, Verb::Acquire);
    // Then the first lock is granted and the second refused.
    talk.hear("-WRONGTYPE no\r\n-WRONGTYPE no\r\n+OK\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Refused), (2, Vote::Failed), (3, Vote::Failed)]);
}

#[test]
fn a_peer_that_sends_invalid_replies_causes_few_connections() {
    let mut talk = ScriptedSession::ready();
    let mut connections = 0;
    for _ in 0..10_000 {
        talk.pass(1);
        talk.send(1, Verb::Acquire);
        if talk.session.wants_connection(talk.now) {
            talk.connect();
            talk.hear(greeting("a", 1_000));
            connections += 1;
        }
        talk.hear("+OK\r\n+OK\r\n");
        talk.answers();
    }
    assert!((10..80).contains(&connections), "{connections} in ten seconds");
}

#[test]
fn a_reply_that_arrives_before_its_command_is_written_does_not_count() {
    for unwritten in [1, 5, usize::MAX] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Acquire);
        let first = talk.session.output().len();
        talk.send(2, Verb::Acquire);
        let second = talk.session.output().len() - first;
        talk.session.wrote(first + second.saturating_sub(unwritten));
        talk.session.received(talk.now, b"+OK\r\n+OK\r\n");
        assert_eq!(talk.votes(), [(1, Vote::Granted), (2, Vote::Failed)], "{unwritten}");
        assert!(talk.session.is_down());
    }
}
