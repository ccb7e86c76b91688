//! Former connections, over many connections.

use crate::engine::Verb;
use crate::node::fixture::{ScriptedSession, numbered_greeting};
use crate::node::{NodeError, STALE_MAX, SessionOptions};

/// A session with a server of this `run_id`, on a connection with this id.
fn greeted(run_id: &str, connection: u64) -> ScriptedSession {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.connect();
    talk.hear(numbered_greeting(run_id, connection));
    talk
}

/// Loses the connection, and makes another one to this run of a server. Returns what was written
/// after the greeting was answered.
fn again(talk: &mut ScriptedSession, run_id: &str, connection: u64) -> String {
    talk.lose();
    talk.pass(500);
    talk.connect();
    talk.hear(numbered_greeting(run_id, connection));
    talk.written()
}

fn kill(connection: &str) -> String {
    let length = connection.len();
    format!("*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n${length}\r\n{connection}\r\n")
}

#[test]
fn an_invalid_reply_to_the_kill_closes_the_connection() {
    // A proxy may repeat the reply to `AUTH`, or that of a script.
    let table = [
        "+OK\r\n",
        ":2\r\n",
        ":-1\r\n",
        "+PONG\r\n",
        "$2\r\nOK\r\n",
        "*0\r\n",
    ];
    for answer in table {
        let mut talk = greeted("a", 41);
        talk.send(1, Verb::Acquire);
        again(&mut talk, "a", 57);
        talk.hear(answer);
        assert!(talk.session.is_down(), "{answer}");
        // The reply may be a stray, so the kill is tried again, but not for ever.
        for connection in 58..67 {
            assert_eq!(again(&mut talk, "a", connection), kill("41"), "{answer}");
            talk.hear(answer);
        }
        assert_eq!(again(&mut talk, "a", 67), "", "{answer}");
    }
}

#[test]
fn the_number_of_remembered_former_connections_is_bounded() {
    let mut talk = greeted("a", 1);
    for connection in 2..100 {
        talk.send(connection, Verb::Acquire);
        talk.lose();
        talk.pass(500);
        talk.connect();
        // A different server each time, so no connection is killed.
        talk.hear(numbered_greeting(&format!("run {connection}"), connection));
    }
    talk.session
        .closed(talk.now, NodeError::Disconnected("gone".to_owned()));
    let stale = format!("{:?}", talk.session.server.stale);
    assert!(
        (1..=STALE_MAX).contains(&stale.matches("Connection {").count()),
        "{stale}"
    );
}
