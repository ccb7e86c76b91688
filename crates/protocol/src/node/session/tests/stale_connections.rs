//! The next connection to the same run of a server kills the former connections.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, info, numbered_greeting};
use crate::node::{NodeError, Phase, STALE_MAX, SessionOptions};

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
fn a_former_connection_with_unanswered_commands_is_killed_before_anything_else_is_sent() {
    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    talk.post(1, Verb::Undo);
    talk.send(2, Verb::Acquire);
    assert_eq!(again(&mut talk, "a", 57), kill("41"));
    assert_eq!(talk.session.phase(), Phase::Greeting);
    talk.send(3, Verb::Acquire);
    assert_eq!(talk.written(), "", "nothing is sent before the kill is answered");
    talk.hear(":1\r\n");
    assert_eq!(talk.commands(), ["EVAL 1", "SET 3"]);
    assert_eq!(talk.session.phase(), Phase::Answering);
}

#[test]
fn a_former_connection_without_unanswered_commands_is_not_killed() {
    let mut talk = greeted("a", 41);
    assert_eq!(again(&mut talk, "a", 42), "", "no command was unanswered");
    talk.send(1, Verb::Acquire);
    talk.send(2, Verb::Release);
    talk.hear("+OK\r\n:2\r\n");
    assert_eq!(again(&mut talk, "a", 57), "");
    assert_eq!(talk.session.phase(), Phase::Answering);
}

#[test]
fn a_reply_without_proof_does_not_show_that_a_command_was_executed() {
    let table = [
        (Verb::Acquire, "+OK\r\n"),
        (Verb::Acquire, "$-1\r\n"),
        (Verb::Release, "-ERR max number of clients reached\r\n"),
        (Verb::Release, "-WRONGTYPE Operation against a key\r\n"),
    ];
    for (verb, answer) in table {
        let mut talk = greeted("a", 41);
        talk.send(1, verb);
        talk.hear(answer);
        assert_eq!(talk.session.load().0, 0);
        assert_eq!(again(&mut talk, "a", 57), kill("41"), "{verb:?} {answer}");
    }
}

#[test]
fn only_own_former_connections_are_killed() {
    // Another run of the server numbers its connections anew. A server that reports neither the run
    // nor the id cannot be recognised. Ids that do not grow belong to another run.
    for (run_id, connection) in [("b", 57), ("a", 41), ("a", 7)] {
        let mut talk = greeted("a", 41);
        talk.send(1, Verb::Acquire);
        assert_eq!(again(&mut talk, run_id, connection), "", "{run_id} {connection}");
    }
    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    talk.lose();
    talk.pass(500);
    talk.connect();
    talk.hear(format!("-ERR unknown command\r\n{}", info("a", 1_000)));
    assert!(talk.written().starts_with("*4"), "its own id does not matter");
    talk.hear(":0\r\n");

    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    talk.lose();
    talk.pass(500);
    talk.connect();
    talk.hear("%1\r\n$2\r\nid\r\n:57\r\n-NOPERM no info for you\r\n");
    assert_eq!((talk.written().as_str(), talk.session.phase()), ("", Phase::Answering));
}

#[test]
fn a_former_connection_with_a_stray_error_in_its_greeting_is_killed() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.connect();
    talk.send(1, Verb::Acquire);
    let hello = "%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:41\r\n";
    talk.hear(format!("{hello}-WRONGTYPE Operation against a key\r\n"));
    assert_eq!(talk.commands(), ["INFO"], "the error may be unsolicited");
    talk.hear(info("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL", "SET 1"]);
    // The reply to the second `INFO`.
    talk.hear(info("a", 1_000));
    assert!(talk.session.is_down());
    assert_eq!(again(&mut talk, "a", 57), kill("41"));
}

#[test]
fn former_connections_of_two_servers_behind_one_address_are_distinguished() {
    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    assert_eq!(again(&mut talk, "b", 41), "");
    talk.send(2, Verb::Acquire);
    assert_eq!(again(&mut talk, "a", 57), kill("41"), "it may still deliver a command");
    talk.hear(":1\r\n");
    talk.send(3, Verb::Acquire);
    assert_eq!(again(&mut talk, "b", 42), kill("41"));
    talk.hear(":1\r\n");
    assert_eq!(again(&mut talk, "a", 58), kill("57"));
}

#[test]
fn the_connection_is_used_whatever_the_server_replies_to_the_kill() {
    let table = [
        (":0\r\n", false),
        (":1\r\n", false),
        ("-NOPERM no\r\n", false),
        ("-ERR unknown command `CLIENT`\r\n", false),
        ("-ERR something else\r\n", true),
    ];
    for (answer, is_tried_again) in table {
        let mut talk = greeted("a", 41);
        talk.send(1, Verb::Acquire);
        assert_eq!(again(&mut talk, "a", 57), kill("41"));
        talk.hear(answer);
        assert_eq!(talk.votes(), [(1, Vote::Failed)]);
        talk.send(2, Verb::Release);
        assert_eq!(talk.commands(), ["EVAL 2"], "{answer}");
        talk.hear(":2\r\n");
        let expected = if is_tried_again { kill("41") } else { String::new() };
        assert_eq!(again(&mut talk, "a", 58), expected, "{answer}");
    }
}

#[test]
fn an_invalid_reply_to_the_kill_closes_the_connection() {
    // A proxy may repeat the reply to `AUTH`, or that of a script.
    let table = ["+OK\r\n", ":2\r\n", ":-1\r\n", "+PONG\r\n", "$2\r\nOK\r\n", "*0\r\n"];
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
fn a_server_too_busy_to_kill_a_connection_is_not_used_until_it_can() {
    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    for connection in [57, 58] {
        assert_eq!(again(&mut talk, "a", connection), kill("41"));
        talk.hear("-BUSY Redis is busy running a script.\r\n");
        assert!(talk.session.is_down());
    }
    assert_eq!(again(&mut talk, "a", 59), kill("41"));
    talk.hear(":1\r\n");
    assert_eq!(talk.session.phase(), Phase::Answering);
}

#[test]
fn a_connection_closed_for_an_invalid_reply_is_killed() {
    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    talk.hear(":5\r\n");
    assert!(talk.session.is_down(), "and the command may still be executed");
    assert_eq!(again(&mut talk, "a", 57), kill("41"));
}

#[test]
fn a_connection_lost_before_the_kill_leaves_the_kill_to_the_next_one() {
    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    assert_eq!(again(&mut talk, "a", 57), kill("41"));
    assert_eq!(
        again(&mut talk, "a", 58),
        kill("41"),
        "only the kill was written to the second connection"
    );
    talk.hear(":1\r\n");
    talk.send(2, Verb::Acquire);
    assert_eq!(again(&mut talk, "a", 59), kill("58"));
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
    talk.session.closed(talk.now, NodeError::Disconnected("gone".to_owned()));
    let stale = format!("{:?}", talk.session.server.stale);
    assert!((1..=STALE_MAX).contains(&stale.matches("Connection {").count()), "{stale}");
}

#[test]
fn the_time_limit_of_the_kill_starts_when_it_is_sent() {
    let mut talk = greeted("a", 41);
    talk.send(1, Verb::Acquire);
    talk.lose();
    talk.pass(500);
    talk.connect();
    // The connection is not driven for a while. Bytes are read before the tick.
    talk.now = talk.now.after(std::time::Duration::from_millis(2_100));
    talk.hear(numbered_greeting("a", 57));
    talk.pass(0);
    assert_eq!(talk.written(), kill("41"));
    talk.pass(1_999);
    assert_eq!(talk.session.phase(), Phase::Greeting);
    talk.pass(1);
    assert!(talk.session.is_down(), "the time limit has passed");
}
