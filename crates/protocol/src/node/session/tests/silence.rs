//! Silent nodes, and the pause before the next connection.

use crate::engine::Verb;
use crate::node::fixture::{ScriptedSession, at, greeting};
use crate::node::{NodeError, Phase, Session, SessionOptions};
use std::time::Duration;

#[test]
fn a_silent_node_loses_its_connection() {
    let mut talk = ScriptedSession::ready();
    talk.pass(60_000);
    assert!(!talk.session.is_down(), "no command is unanswered");
    talk.send(1, Verb::Acquire);
    assert_eq!(talk.session.next_deadline(), Some(at(60_500)));
    talk.pass(499);
    assert!(!talk.session.is_down());
    talk.pass(1);
    assert_eq!(talk.problem(), NodeError::TimedOut(Phase::Answering));
    assert!(talk.session.is_down());
}

/// A session whose attempts to connect may take half a second.
fn impatient() -> ScriptedSession {
    let mut options = SessionOptions::new("redis://node", 7);
    options.connect_timeout = Duration::from_millis(500);
    ScriptedSession::new(options)
}

#[test]
fn one_attempt_to_connect_is_limited_from_the_name_to_the_end_of_the_greeting() {
    let mut talk = impatient();
    talk.send(1, Verb::Acquire);
    talk.session.connecting(talk.now, Phase::Resolving);
    assert_eq!(talk.session.next_deadline(), Some(at(500)));
    talk.pass(300);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.pass(200);
    assert_eq!(talk.problem(), NodeError::TimedOut(Phase::Connecting));

    talk.pass(500);
    talk.send(2, Verb::Acquire);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.pass(300);
    talk.connect();
    talk.pass(100);
    talk.hear("%0\r\n");
    talk.pass(99);
    assert!(!talk.session.is_down());
    talk.pass(1);
    assert_eq!(talk.problem(), NodeError::TimedOut(Phase::Greeting));
}

#[test]
fn an_attempt_to_connect_may_take_longer_than_a_node_may_be_silent() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Acquire);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.pass(1_200);
    talk.connect();
    talk.pass(700);
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands().len(), 1, "the request has waited");
    talk.pass(499);
    assert!(!talk.session.is_down());
    talk.pass(1);
    assert_eq!(talk.problem(), NodeError::TimedOut(Phase::Answering));
}

#[test]
fn the_time_to_connect_begins_again_with_a_step_that_no_thread_was_there_to_see() {
    let mut talk = impatient();
    talk.send(1, Verb::Acquire);
    talk.session.connecting(talk.now, Phase::Connecting);
    // Nobody calls `tick` meanwhile.
    talk.now = at(60_000);
    talk.connect();
    assert_eq!(talk.session.next_deadline(), Some(at(60_500)));
    talk.now = at(120_000);
    talk.hear(greeting("a", 1_000));
    talk.pass(0);
    assert!(talk.session.is_ready());
}

/// How long the session pauses before the next connection.
fn pause(session: &Session, now: crate::time::Time) -> Duration {
    let mut time = now;
    while !session.wants_connection(time) {
        time = time.after(Duration::from_micros(100));
    }
    time.since(now)
}

#[test]
fn pauses_grow_while_a_server_accepts_and_closes_connections() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        talk.post(1, Verb::Undo);
        talk.connect();
        talk.hear(greeting("a", 1_000));
        talk.lose();
        longest = longest.max(pause(&talk.session, talk.now));
        talk.pass(500);
    }
    assert!(longest > Duration::from_millis(250), "{longest:?}");
}

#[test]
fn the_pause_counts_from_the_failure_and_not_from_when_a_thread_learns_of_it() {
    let wants = |talk: &mut ScriptedSession| {
        talk.now = at(4_000);
        talk.lose();
        talk.send(2, Verb::Acquire);
        talk.session.wants_connection(talk.now)
    };
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    assert!(wants(&mut talk), "nobody has read the end of the connection before");
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Acquire);
    talk.connect();
    assert!(wants(&mut talk), "the greeting was not answered");
}

#[test]
fn a_working_connection_that_is_closed_while_idle_is_made_again_without_a_pause() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear("+OK\r\n");
    talk.lose();
    assert!(!talk.session.wants_connection(talk.now), "there is no request yet");
    talk.send(2, Verb::Acquire);
    assert!(talk.session.wants_connection(talk.now));
}

#[test]
fn removals_are_awaited_until_the_node_has_been_silent_for_too_long() {
    let are_awaited = |talk: &ScriptedSession| talk.session.has_removals(talk.now);
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    assert!(!are_awaited(&talk), "there is nothing to remove");
    talk.post(1, Verb::Undo);
    assert!(are_awaited(&talk));
    talk.pass(49);
    assert!(are_awaited(&talk));
    talk.hear("+OK\r\n");
    talk.pass(49);
    assert!(are_awaited(&talk), "the node has just replied");
    talk.pass(1);
    assert!(!are_awaited(&talk), "the node may be stopped");
    talk.hear(":2\r\n");
    assert!(!are_awaited(&talk), "the key has been removed");

    talk.lose();
    talk.pass(1_000);
    talk.post(2, Verb::Undo);
    assert!(!are_awaited(&talk), "no connection is being made");
    talk.session.connecting(talk.now, Phase::Connecting);
    assert!(are_awaited(&talk), "the connection is being made");
}

#[test]
fn an_invalid_reply_is_followed_by_a_pause_also_on_a_working_connection() {
    let pauses = (0..20).filter(|seed| {
        let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", *seed));
        talk.connect();
        talk.hear(greeting("a", 1_000));
        talk.send(1, Verb::Acquire);
        talk.hear("+OK\r\n");
        talk.send(2, Verb::Release);
        talk.hear("+OK\r\n");
        assert!(talk.session.is_down());
        !talk.session.wants_connection(talk.now)
    });
    assert!(pauses.count() > 10);
}
