//! Bytes that are split anywhere, and bytes that arrive before a command is written.

use crate::engine::{Verb, Vote};
use crate::node::SessionOptions;
use crate::node::driver::STRAYS_FOR;
use crate::node::fixture::{ScriptedSession, greeting};
use std::time::Duration;

/// An idle session whose previous command was answered.
fn idle() -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear("+OK\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk
}

#[test]
fn push_messages_and_attributes_are_accepted_at_any_time_however_split() {
    let message = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n|1\r\n+a\r\n$2\r\nbc\r\n";
    for cut in 0..=message.len() {
        let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
        talk.connect();
        greeting("a", 1_000)
            .bytes()
            .for_each(|byte| talk.hear([byte]));
        talk.send(1, Verb::Ping);
        talk.hear("+PONG\r\n");
        talk.answers();
        talk.hear(&message[..cut]);
        assert!(!talk.session.is_down(), "cut at {cut}");
        talk.commands();
        talk.send(2, Verb::Acquire);
        let is_proven = talk.commands() == ["EVAL", "SET 2"];
        talk.hear(&message[cut..]);
        assert_eq!(talk.votes(), [], "cut at {cut}");
        talk.hear(if is_proven {
            ":2\r\n$-1\r\n"
        } else {
            "$-1\r\n"
        });
        assert_eq!(talk.votes(), [(2, Vote::Refused)], "cut at {cut}");
    }
}

#[test]
fn bytes_that_could_pass_for_a_reply_must_be_read_before_a_request_is_written() {
    let must_be_read_before = |talk: &ScriptedSession, verb| {
        talk.session
            .must_be_read_before(&crate::node::fixture::request(verb, 3, talk.now))
    };
    let mut talk = idle();
    assert_eq!(must_be_read_before(&talk, Verb::Acquire), Some(STRAYS_FOR));
    assert_eq!(must_be_read_before(&talk, Verb::Release), Some(STRAYS_FOR));
    talk.send(2, Verb::Release);
    assert_eq!(
        must_be_read_before(&talk, Verb::Acquire),
        Some(STRAYS_FOR),
        "a repeated reply could count for it"
    );
    assert_eq!(
        must_be_read_before(&talk, Verb::Release),
        None,
        "its reply carries a proof"
    );
    talk.lose();
    assert_eq!(
        must_be_read_before(&talk, Verb::Acquire),
        None,
        "there is no connection"
    );
}

#[test]
fn a_removal_that_may_be_answered_with_an_error_is_looked_for_at_once() {
    for (reply, current_for) in [
        ("+OK\r\n", STRAYS_FOR),
        ("$-1\r\n", Duration::ZERO),
        ("-WRONGTYPE it is a list\r\n", Duration::ZERO),
    ] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Acquire);
        talk.hear(reply);
        talk.send(2, Verb::Release);
        let next = crate::node::fixture::request(Verb::Acquire, 3, talk.now);
        let found = talk.session.must_be_read_before(&next);
        assert_eq!(found, Some(current_for), "{reply}");
    }
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
        assert_eq!(
            talk.votes(),
            [(1, Vote::Granted), (2, Vote::Failed)],
            "{unwritten}"
        );
        assert!(talk.session.is_down());
    }
}
