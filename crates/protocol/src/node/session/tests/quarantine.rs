//! Nodes whose grants do not count because they were started too recently.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting};
use crate::node::{NodeError, SessionOptions};
use std::time::Duration;

/// The quarantine that a grant reports `later` after a greeting with this uptime in seconds.
fn quarantined(uptime: &str, later: u64) -> Option<Duration> {
    let mut options = SessionOptions::new("redis://node", 7);
    options.quarantine = Some(Duration::from_secs(60));
    let mut talk = ScriptedSession::new(options);
    talk.connect();
    talk.hear(greeting("a", 7).replace("uptime_in_seconds:7", uptime));
    talk.pass(later);
    talk.send(1, Verb::Acquire);
    talk.hear("+OK\r\n");
    let answer = talk.answers().remove(0);
    match answer.reply.problem {
        None => {
            assert_eq!(answer.reply.vote, Vote::Granted);
            None
        }
        Some(NodeError::Quarantined { left }) => {
            assert_eq!(answer.reply.vote, Vote::Failed);
            Some(left)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_grant_counts_when_the_node_has_certainly_been_up_for_long_enough() {
    // The reported uptime is the difference of two times, each truncated to whole seconds: it may
    // be almost a second too large.
    let uptime = "uptime_in_seconds:7";
    assert_eq!(quarantined(uptime, 0), Some(Duration::from_secs(54)));
    assert_eq!(quarantined(uptime, 53_999), Some(Duration::from_millis(1)));
    assert_eq!(quarantined(uptime, 54_000), None);
    // The replacement has the same length, so the length prefix stays valid.
    assert_eq!(quarantined("uptime_in_second_:7", 59_999), Some(Duration::from_millis(1)));
    assert_eq!(quarantined("uptime_in_second_:7", 60_000), None);
    assert_eq!(quarantined("uptime_in_seconds:0", 0), Some(Duration::from_secs(60)));
}

/// A session whose node greets with this `run_id`, and this uptime in seconds.
fn greeted(run_id: &str, uptime: u64) -> ScriptedSession {
    let mut options = SessionOptions::new("redis://node", 7);
    options.quarantine = Some(Duration::from_secs(60));
    let mut talk = ScriptedSession::new(options);
    talk.connect();
    talk.hear(greeting(run_id, uptime));
    talk
}

/// Loses the connection, and makes another one after this many seconds.
fn greeted_again(talk: &mut ScriptedSession, seconds: u64, run_id: &str, uptime: u64) {
    talk.lose();
    talk.pass(seconds * 1_000);
    talk.connect();
    talk.hear(greeting(run_id, uptime));
}

/// The remaining quarantine in milliseconds, as a grant reports it.
fn left(talk: &mut ScriptedSession) -> u128 {
    talk.send(1, Verb::Acquire);
    talk.hear("+OK\r\n");
    let answer = talk.answers().remove(0);
    let reported = talk.session.status(talk.now, None).quarantine;
    match answer.reply.problem {
        None => {
            assert_eq!((answer.reply.vote, reported), (Vote::Granted, None));
            0
        }
        Some(NodeError::Quarantined { left }) => {
            assert_eq!((answer.reply.vote, reported), (Vote::Failed, Some(left)));
            left.as_millis()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_quarantined_node_still_refuses_extends_and_releases() {
    let mut talk = greeted("a", 0);
    talk.send(1, Verb::Extend);
    talk.send(2, Verb::Release);
    talk.send(3, Verb::Acquire);
    talk.hear(":1\r\n:-2\r\n$-1\r\n");
    let votes = [(1, Vote::Granted), (2, Vote::Refused), (3, Vote::Refused)];
    assert_eq!(talk.votes(), votes);
}

#[test]
fn a_quarantined_node_grants_a_handoff_of_a_held_lock_but_not_of_a_lost_one() {
    let mut talk = greeted("a", 0);
    for (serial, reply) in [
        (1, "*4\r\n:1\r\n:0\r\n:0\r\n:0\r\n"),
        (2, "*4\r\n:2\r\n:1\r\n:0\r\n:0\r\n"),
        (3, ":-3\r\n"),
    ] {
        talk.send(serial, Verb::Handoff);
        talk.hear(reply);
    }
    let votes = [(1, Vote::Granted), (2, Vote::Failed), (3, Vote::Refused)];
    assert_eq!(talk.votes(), votes);
}

#[test]
fn the_next_greeting_reveals_a_restart() {
    let mut talk = greeted("a", 1_000);
    assert_eq!(left(&mut talk), 0);
    greeted_again(&mut talk, 5, "b", 4);
    assert_eq!(left(&mut talk), 57_000);
    // The quarantine of the same server continues on another connection.
    greeted_again(&mut talk, 50, "b", 54);
    assert_eq!(left(&mut talk), 7_000);
    talk.pass(7_000);
    assert_eq!(left(&mut talk), 0);
}

#[test]
fn the_uptime_of_another_server_counts_only_from_the_last_reply_of_the_former_one() {
    // A promoted replica, or a server whose clock was set, reports a long uptime. But the former
    // server replied two seconds before.
    let mut talk = greeted("a", 1_000);
    greeted_again(&mut talk, 2, "b", 1_000);
    assert_eq!(left(&mut talk), 58_000);
    // After 61 seconds without a reply, the reported uptime is possible.
    greeted_again(&mut talk, 61, "c", 1_000);
    assert_eq!(left(&mut talk), 0);
    // A server without a `run_id` counts as the same server.
    greeted_again(&mut talk, 1, "", 1_000);
    assert_eq!(left(&mut talk), 0);
}

#[test]
fn without_a_reported_uptime_the_quarantine_counts_from_the_greeting() {
    let mut talk = greeted("a", 1_000);
    talk.lose();
    talk.pass(1_000);
    talk.connect();
    talk.hear("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n-NOPERM no permission to run 'info'\r\n");
    talk.send(9, Verb::Release);
    talk.hear(":1\r\n");
    talk.answers();
    assert_eq!(left(&mut talk), 60_000);
    talk.pass(60_000);
    assert_eq!(left(&mut talk), 0);
}

#[test]
fn no_quarantine_is_reported_without_a_connection() {
    let mut talk = greeted("a", 0);
    assert!(talk.session.status(talk.now, None).quarantine.is_some());
    talk.lose();
    assert_eq!(talk.session.status(talk.now, None).quarantine, None);
}
