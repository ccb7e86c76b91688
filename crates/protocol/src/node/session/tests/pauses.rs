//! The pause before the next connection, over many connections.

use crate::engine::Verb;
use crate::node::fixture::{ScriptedSession, greeting};
use crate::node::{Session, SessionOptions};
use std::time::Duration;

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
    assert!(
        (10..80).contains(&connections),
        "{connections} in ten seconds"
    );
}
