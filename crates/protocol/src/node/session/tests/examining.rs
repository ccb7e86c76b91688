//! Questions about the server's state.

use crate::engine::{Command, Ping, Request, Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting, request, ticket};
use crate::node::{CrashLoss, NodeStatus, Role};
use std::time::Duration;

const QUESTIONS: [&str; 9] = [
    "INFO", "INFO", "INFO", "INFO", "CONFIG", "CONFIG", "CONFIG", "TIME", "PING",
];
const DENIED: &str = "-NOPERM this user has no permissions to run the command\r\n";

fn examination(talk: &ScriptedSession) -> Request {
    let ping = request(Verb::Ping, 1, talk.now);
    Request {
        command: Command::Ping(Ping { asks: true }),
        ..ping
    }
}

fn examine(talk: &mut ScriptedSession, serial: u64) {
    let request = examination(talk);
    talk.session.send(talk.now, Some(ticket(serial)), &request);
}

fn status(talk: &ScriptedSession) -> NodeStatus {
    talk.session.status(talk.now)
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn setting(name: &str, value: &str) -> String {
    format!("%1\r\n{}{}", bulk(name), bulk(value))
}

fn answers() -> [String; 9] {
    [
        bulk("used_memory:10\r\nmaxmemory:20\r\nmaxmemory_policy:noeviction\r\n"),
        bulk("aof_enabled:1\r\n"),
        bulk("role:master\r\nconnected_slaves:3\r\n"),
        bulk("cluster_enabled:0\r\n"),
        setting("appendfsync", "everysec"),
        setting("save", ""),
        setting("maxmemory-policy", "allkeys-lru"),
        "*2\r\n$2\r\n17\r\n$1\r\n5\r\n".to_owned(),
        "+PONG\r\n".to_owned(),
    ]
}

#[test]
fn all_questions_are_written_at_once_before_the_ping() {
    let mut talk = ScriptedSession::ready();
    examine(&mut talk, 1);
    let sent_at = talk.now;
    assert_eq!(talk.commands(), QUESTIONS);
    talk.pass(7);
    talk.hear(answers().concat());
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    let status = status(&talk);
    assert_eq!(
        status.persistence.crash_loss(),
        Some(CrashLoss::LastSeconds)
    );
    assert_eq!(status.persistence.snapshots, Some(false));
    assert_eq!(
        (status.memory.used, status.memory.max),
        (Some(10), Some(20))
    );
    assert_eq!(status.memory.policy.as_deref(), Some("noeviction"));
    assert_eq!(status.role, Some(Role::Master { replicas: 3 }));
    assert_eq!(status.is_cluster, Some(false));
    let reading = status.clock_reading.expect("the server told its time");
    assert_eq!(
        (reading.micros, reading.between),
        (17_000_005, (sent_at, talk.now))
    );
}

#[test]
fn a_ping_for_nothing_else_asks_nothing() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Ping);
    assert_eq!(talk.commands(), ["PING"]);
}

#[test]
fn a_question_that_is_refused_is_no_error_and_is_not_asked_again_on_this_connection() {
    let mut talk = ScriptedSession::ready();
    examine(&mut talk, 1);
    let mut replies = answers();
    for index in [0, 4, 5, 6, 7] {
        DENIED.clone_into(&mut replies[index]);
    }
    talk.hear(replies.concat());
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    let seen = status(&talk);
    assert_eq!((seen.last_error, seen.clock_reading), (None, None));
    assert_eq!(seen.memory, crate::node::Memory::default());
    assert_eq!(
        (seen.persistence.append_only, seen.persistence.fsync),
        (Some(true), None)
    );
    talk.commands();
    examine(&mut talk, 2);
    assert_eq!(talk.commands(), ["INFO", "INFO", "INFO", "PING"]);
    // The next connection may be another user's, or another server's.
    talk.lose();
    talk.pass(1_000);
    talk.connect();
    talk.hear(greeting("b", 1_000));
    assert_eq!(status(&talk).role, None);
    examine(&mut talk, 3);
    assert_eq!(talk.commands(), QUESTIONS);
}

#[test]
fn a_question_that_fails_for_now_is_asked_again_and_its_field_is_unknown() {
    let mut talk = ScriptedSession::ready();
    for serial in 1..3 {
        examine(&mut talk, serial);
        assert_eq!(talk.commands(), QUESTIONS);
        talk.hear(answers().concat());
    }
    assert_eq!(status(&talk).is_cluster, Some(false));
    examine(&mut talk, 3);
    let mut replies = answers();
    "-LOADING Redis is loading the dataset in memory\r\n".clone_into(&mut replies[3]);
    talk.hear(replies.concat());
    assert_eq!(
        (status(&talk).is_cluster, status(&talk).last_error),
        (None, None)
    );
    examine(&mut talk, 4);
    talk.commands();
    talk.hear(answers().concat());
    assert_eq!(status(&talk).is_cluster, Some(false));
}

#[test]
fn a_surplus_reply_among_the_answers_closes_the_connection() {
    for index in 0..9 {
        for surplus in ["-ERR what\r\n", "+OK\r\n", "*0\r\n"] {
            let mut talk = ScriptedSession::ready();
            examine(&mut talk, 1);
            let mut replies = answers().to_vec();
            replies.insert(index, surplus.to_owned());
            talk.hear(replies.concat());
            assert!(talk.session.is_down(), "{surplus:?} before answer {index}");
            assert_eq!(
                talk.votes(),
                [(1, Vote::Failed)],
                "{surplus:?} before answer {index}"
            );
            assert_eq!(status(&talk).role, None, "there is no connection");
        }
    }
}

#[test]
fn answers_that_do_not_come_leave_their_fields_unknown_and_lock_commands_work_behind_them() {
    let mut talk = ScriptedSession::ready();
    examine(&mut talk, 1);
    talk.send(2, Verb::Acquire);
    talk.hear(answers()[..2].concat());
    talk.pass(49);
    assert_eq!(talk.votes(), []);
    assert_eq!(status(&talk).memory.used, Some(10));
    assert_eq!(
        (status(&talk).role, status(&talk).persistence.fsync),
        (None, None)
    );
    talk.pass(1);
    assert!(
        talk.session
            .unanswered_since()
            .is_some_and(|since| { talk.now.since(since) == Duration::from_millis(50) })
    );
    talk.hear(answers()[2..].concat() + "+OK\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted), (2, Vote::Granted)]);
}
