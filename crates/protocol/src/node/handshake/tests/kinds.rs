//! Servers of another kind than the URL names.

use crate::node::fixture::ScriptedSession;
use crate::node::{GroupOptions, NodeError, SessionOptions, WrongServer};
use std::sync::Arc;
use std::time::Duration;

/// What a node of this tag is worth whose server says this in `HELLO`, and this in `INFO`.
fn kinds(tag: &[u8], hello: &str, info: &str) -> Option<NodeError> {
    let bound = Duration::from_secs(15);
    let max_ttl = Duration::from_secs(60);
    let group = GroupOptions {
        tag: tag.into(),
        bound,
        named_within: bound,
        max_ttl,
        replicas: None,
        skew: Duration::ZERO,
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
    let problem = talk.session.status(talk.now).last_error;
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
