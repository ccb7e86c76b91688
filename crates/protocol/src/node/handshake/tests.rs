//! What the answers to a greeting say of a server.

use super::*;
use crate::node::fixture::ScriptedSession;
use crate::node::{GroupOptions, SessionOptions, WrongServer};
use std::sync::Arc;
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
    let status = talk.session.status(talk.now, None);
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
    let status = talk.session.status(talk.now, None);
    assert_eq!(status.server.as_deref(), Some("red\\u{202e}is\\u{1b}[31m"));
    assert_eq!(status.version.as_deref(), Some("7 ***\\r8"));
    // The run_id is compared and never shown.
    assert_eq!(talk.session.run_id(), Some("a\u{202e}"));
}

#[test]
fn identities_are_read_from_incomplete_answers() {
    let table = [
        ("", Identity::default()),
        ("run_id:\r\nuptime_in_seconds:soon\r\n", Identity::default()),
        ("uptime_in_seconds:-1\r\n", Identity::default()),
        (
            "uptime_in_seconds:18446744073709551615\r\n",
            Identity {
                uptime: Some(Duration::from_secs(u64::MAX)),
                ..Identity::default()
            },
        ),
        (
            "server_time_usec:1795283277899969\r\nuptime_in_seconds:10\r\n",
            Identity {
                uptime: Some(Duration::from_micros(10_899_969)),
                ..Identity::default()
            },
        ),
        (
            "server_time_usec:soon\r\nuptime_in_seconds:10\r\n",
            Identity {
                uptime: Some(Duration::from_secs(10)),
                ..Identity::default()
            },
        ),
        ("server_time_usec:1795283277899969\r\n", Identity::default()),
        (
            "redis_mode:cluster\r\n",
            Identity {
                kind: Some(ServerKind::Member),
                ..Identity::default()
            },
        ),
        (
            "server_mode:standalone\r\n",
            Identity {
                kind: Some(ServerKind::Single),
                ..Identity::default()
            },
        ),
        ("redis_mode:other\r\n", Identity::default()),
        (
            "run_id:x\n",
            Identity {
                run_id: Some("x".to_owned()),
                ..Identity::default()
            },
        ),
    ];
    for (text, expected) in table {
        assert_eq!(Identity::from_info(text.as_bytes()), expected, "{text:?}");
    }
    assert_eq!(
        Identity::from_info(&[b"run_id:", &[b'x'; 200][..]].concat()),
        Identity::default()
    );
}

/// What a node of this tag is worth whose server says this in `HELLO`, and this in `INFO`.
fn kinds(tag: &[u8], hello: &str, info: &str) -> Option<NodeError> {
    let bound = Duration::from_secs(15);
    let max_ttl = Duration::from_secs(60);
    let group = GroupOptions {
        tag: tag.into(),
        bound,
        max_ttl,
        replicas: None,
    };
    let mut options = SessionOptions::new("redis://node", 7);
    options.group = Some(Arc::new(group));
    let mut talk = ScriptedSession::new(options);
    talk.connect();
    let mode = |mode: &str| format!("$4\r\nmode\r\n${}\r\n{mode}\r\n", mode.len());
    let introduction = format!("*4\r\n$5\r\nproto\r\n:2\r\n{}", mode(hello));
    talk.hear(if hello.is_empty() {
        "-ERR unknown command 'HELLO'\r\n"
    } else {
        &introduction
    });
    let text = format!("${}\r\n{info}\r\n", info.len());
    talk.hear(if info.is_empty() {
        "-NOPERM no\r\n"
    } else {
        &text
    });
    let is_asked = talk.written().contains("redlatch:reign");
    let problem = talk.session.status(talk.now, None).last_error;
    assert_eq!(
        is_asked,
        problem.is_none(),
        "no server is told of locks that is none of these"
    );
    problem
}

#[test]
fn a_server_without_a_cluster_is_refused_before_it_is_asked_for_a_slot() {
    let wrong = |wrong| Some(NodeError::WrongServer(wrong));
    let single = "standalone";
    let member = "redis_mode:cluster\r\n";
    assert_eq!(kinds(b"{fjl}", "cluster", "redis_version:7\r\n"), None);
    assert_eq!(
        kinds(b"{fjl}", "cluster", ""),
        None,
        "the user may not ask INFO"
    );
    assert_eq!(kinds(b"{fjl}", "", member), None, "a server before Redis 6");
    assert_eq!(kinds(b"{fjl}", single, ""), wrong(WrongServer::NoCluster));
    assert_eq!(
        kinds(b"{fjl}", "", "redis_mode:standalone\r\n"),
        wrong(WrongServer::NoCluster)
    );
    assert_eq!(kinds(b"{fjl}", "", ""), wrong(WrongServer::HidesCluster));
    assert_eq!(kinds(b"", single, ""), None);
    assert_eq!(kinds(b"", "", member), wrong(WrongServer::Cluster));
    assert_eq!(kinds(b"", "sentinel", ""), wrong(WrongServer::Sentinel));
}
