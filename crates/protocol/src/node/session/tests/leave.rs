//! Releases of locks that stay taken for a while.

use crate::engine::Verb;
use crate::node::fixture::{ScriptedSession, about, greeting, lock, ttl};
use crate::node::{SessionOptions, script};

/// A session without a connection, with the release of a lock that stays taken for half a second.
fn disconnected() -> ScriptedSession {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    let mut request = about(Verb::Undo, lock(1), talk.now);
    request.removal_mut().keep_for = Some(ttl(500));
    talk.session.send(talk.now, None, &request);
    talk
}

fn reconnect(talk: &mut ScriptedSession) -> String {
    talk.connect();
    talk.hear(greeting("a", 1_000));
    talk.written()
}

#[test]
fn a_release_that_is_sent_later_names_the_time_that_is_left() {
    for (pause, left) in [(0, 500), (300, 200)] {
        let mut talk = disconnected();
        talk.pass(pause);
        let written = reconnect(&mut talk);
        assert!(written.contains(script::GIVE.source), "{written}");
        assert!(written.contains(&format!("\r\n{left}\r\n")), "{written}");
        // The connection is lost before the reply.
        talk.lose();
        talk.pass(100);
        let written = reconnect(&mut talk);
        assert!(written.contains(&format!("\r\n{}\r\n", left - 100)), "{written}");
    }
}

#[test]
fn a_release_that_is_sent_after_that_time_removes_the_key() {
    let mut talk = disconnected();
    talk.pass(500);
    assert!(reconnect(&mut talk).contains(script::RELEASE.source));
}
