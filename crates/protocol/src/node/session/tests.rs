//! One session, in literal bytes and times: conversations, which are in `scenarios`, and properties
//! of it.

mod examining;
mod handoff;
mod leave;
mod limits;
mod notifications;
mod quarantine;
mod refusals;
mod scenario;
mod several;
mod shares;
mod silence;
mod sources;
mod stale_connections;
mod stray;

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, at, greeting, request, ticket, ttl};
use crate::node::{NodeError, PENDING_MAX, Phase, SessionOptions};

#[test]
fn scripts_are_sent_by_source_again_on_a_new_connection() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Extend);
    talk.hear(":1\r\n");
    talk.lose();
    talk.connect();
    talk.hear(greeting("b", 0));
    talk.send(2, Verb::Extend);
    assert_eq!(talk.commands(), ["EVAL 2"]);
}

#[test]
fn an_unknown_script_is_sent_by_its_source_once_and_in_the_same_round() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Extend);
    assert_eq!(talk.commands(), ["EVAL 1"], "it is unknown which scripts the node has");
    talk.hear(":1\r\n");
    talk.send(2, Verb::Extend);
    assert_eq!(talk.commands(), ["EVALSHA 2"]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), ["EVAL 2"]);
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), [""; 0]);
    assert_eq!(talk.votes(), [(2, Vote::Failed)]);
}

#[test]
fn a_removal_works_on_a_server_that_has_forgotten_its_script() {
    for verb in [Verb::Release, Verb::Undo] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Release);
        talk.hear(":1\r\n");
        assert_eq!(
            (talk.commands(), talk.votes()),
            (vec!["EVAL 1".into()], vec![(1, Vote::Granted)])
        );
        // It may forget the script later, when no caller waits for its reply any more.
        talk.send(2, verb);
        assert_eq!(talk.commands(), ["EVAL 2"], "{verb:?}");
    }
}

#[test]
fn an_undo_is_written_after_its_attempt_and_without_a_waiter() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.post(1, Verb::Undo);
    assert_eq!(talk.commands(), ["SET 1", "EVAL 1"]);
    talk.hear("+OK\r\n:2\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    assert_eq!(talk.session.load(), (0, 0));
}

#[test]
fn pending_releases_survive_the_connection_and_are_written_first() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.post(1, Verb::Undo);
    talk.lose();
    talk.post(2, Verb::Undo);
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 2)));
    talk.pass(20);
    talk.send(3, Verb::Acquire);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 2", "SET 3"]);
    talk.lose();
    assert_eq!(talk.session.load(), (0, 2), "a release stays pending until it is answered");
}

#[test]
fn a_pending_release_is_dropped_when_its_key_has_expired() {
    let mut talk = ScriptedSession::ready();
    talk.post(1, Verb::Undo);
    talk.lose();
    talk.pass(999);
    assert_eq!(talk.session.load(), (0, 1));
    talk.pass(1);
    assert_eq!(talk.session.load(), (0, 0));
    assert!(!talk.session.wants_connection(at(5_000)));
}

#[test]
fn a_removal_without_a_connection_fails_when_it_is_dropped() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.session.connecting(talk.now, Phase::Connecting);
    let mut short = request(Verb::Undo, 1, talk.now);
    short.removal_mut().ttl = ttl(5);
    talk.session.send(talk.now, Some(ticket(1)), &short);
    talk.pass(5);
    assert_eq!(talk.session.load(), (0, 0));
    assert_eq!(talk.problem(), NodeError::TimedOut(Phase::Connecting));
}

#[test]
fn a_removal_fails_when_there_is_no_connection() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Release);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.lose();
    assert!(matches!(talk.problem(), NodeError::Disconnected(_)));
    assert_eq!(talk.session.load(), (0, 1), "it stays pending");
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
fn replies() {
    scenario::play_file("replies");
}
