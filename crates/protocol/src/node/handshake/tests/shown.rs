//! What a status shows of a server's answers.

use crate::node::fixture::ScriptedSession;
use crate::node::{Credentials, SessionOptions};
use std::time::Duration;

/// The session after a greeting with these credentials that the server answers with `replies`.
fn greet(credentials: Credentials, replies: &[&str]) -> ScriptedSession {
    let options = SessionOptions {
        credentials,
        ..SessionOptions::new("redis://node", 7)
    };
    let mut talk = ScriptedSession::new(options);
    talk.send(1, crate::engine::Verb::Ping);
    talk.connect();
    replies.iter().for_each(|reply| talk.hear(reply));
    talk
}

#[test]
fn a_current_server_is_identified_by_its_answers() {
    let mut talk = greet(
        Credentials::default(),
        &[&crate::node::fixture::greeting("a", 9)],
    );
    assert_eq!(talk.commands(), ["PING"]);
    let status = talk.session.status(talk.now);
    assert!(status.is_connected && status.last_error.is_none());
    assert_eq!(status.server.as_deref(), Some("redis"));
    assert_eq!(status.version.as_deref(), Some("7.0.15"));
    assert_eq!(status.uptime, Some(Duration::from_secs(9)));
    assert_eq!(talk.session.run_id(), Some("a"));
}

#[test]
fn names_and_versions_are_shown_without_secrets_and_control_characters() {
    let text =
        "server_name:red\u{202e}is\x1b[31m\r\nredis_version:7 s3cret\r8\r\nrun_id:a\u{202e}\r\n";
    let info = format!("${}\r\n{text}\r\n", text.len());
    let password = Credentials::new(None, Some(b"s3cret"), 0, None);
    let talk = greet(password, &["+OK\r\n", "%0\r\n", &info]);
    let status = talk.session.status(talk.now);
    assert_eq!(status.server.as_deref(), Some("red\\u{202e}is\\u{1b}[31m"));
    assert_eq!(status.version.as_deref(), Some("7 ***\\r8"));
    // The run_id is compared and never shown.
    assert_eq!(talk.session.run_id(), Some("a\u{202e}"));
}
