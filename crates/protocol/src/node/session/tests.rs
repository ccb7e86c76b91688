//! One session, in literal bytes and times.

mod examining;
mod handoff;
mod leave;
mod limits;
mod notifications;
mod quarantine;
mod refusals;
mod reign;
mod several;
mod shares;
mod silence;
mod sources;
mod stale_connections;
mod stray;

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, at, greeting, request, ticket, ttl};
use crate::node::{NodeError, PENDING_MAX, Phase, SessionOptions};

#[test]
fn no_command_is_written_before_the_greeting_is_answered() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Acquire);
    assert!(talk.session.wants_connection(talk.now));
    let hello = talk.connect();
    assert!(hello.starts_with("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"), "{hello}");
    // Neither requests before the connection was established nor requests during the greeting.
    talk.send(2, Verb::Acquire);
    talk.post(3, Verb::Undo);
    assert_eq!(talk.written(), "");
    let greeting = greeting("a", 1_000);
    let (most, last) = greeting.split_at(greeting.len() - 1);
    for byte in most.bytes() {
        talk.hear([byte]);
        assert_eq!(talk.written(), "");
    }
    talk.hear(last);
    assert_eq!(talk.commands(), ["EVAL 3", "SET 1", "SET 2"]);
}

#[test]
fn replies_are_matched_to_commands_in_order() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.send(2, Verb::Acquire);
    talk.send(3, Verb::Ping);
    talk.hear("+OK\r\n$-1\r");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk.hear("\n+PONG\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Refused), (3, Vote::Granted)]);
}

#[test]
fn push_messages_do_not_count_as_replies() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear(">2\r\n+invalidate\r\n_\r\n|1\r\n+key\r\n:1\r\n");
    assert_eq!(talk.votes(), []);
    talk.hear("+OK\r\n>1\r\n+message\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    assert!(!talk.session.is_down());
}

#[test]
fn an_invalid_reply_closes_the_connection_and_fails_every_vote_on_it() {
    let table = [
        (Verb::Release, ":2\r\n"),
        (Verb::Acquire, "$2\r\nOK\r\n"),
        (Verb::Acquire, "*-1\r\n"),
        (Verb::Acquire, ":1\r\n"),
        (Verb::Extend, "+OK\r\n"),
        (Verb::Extend, "$-1\r\n"),
        (Verb::Ping, "+OK\r\n"),
        (Verb::Acquire, "*1\r\n+OK\r\n"),
    ];
    for (verb, reply) in table {
        let mut talk = ScriptedSession::ready();
        talk.send(1, verb);
        talk.send(2, Verb::Acquire);
        talk.hear(format!("{reply}+OK\r\n"));
        assert_eq!(talk.votes(), [(1, Vote::Failed), (2, Vote::Failed)], "{reply:?}");
        assert!(talk.session.is_down(), "{reply:?}");
    }
}

#[test]
fn unsolicited_bytes_close_the_connection() {
    for extra in ["+OK\r\n", "-ERR what\r\n", "@"] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Acquire);
        talk.hear(format!("+OK\r\n{extra}"));
        assert_eq!(talk.votes(), [(1, Vote::Granted)]);
        assert!(talk.session.is_down(), "{extra:?}");
    }
}

#[test]
fn server_errors_do_not_close_the_connection() {
    for error in ["LOADING", "MISCONF", "OOM", "BUSY", "NOPERM", "MOVED 1 h:1", "ERR", ""] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Acquire);
        talk.send(2, Verb::Acquire);
        talk.hear(format!("-{error}\r\n+OK\r\n"));
        // The error may be unsolicited. Then each later reply answers the command before.
        assert_eq!(talk.votes(), [(1, Vote::Failed), (2, Vote::Failed)], "{error}");
        assert!(!talk.session.is_down());
    }
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear("-READONLY You can't write against a read only replica.\r\n");
    assert!(matches!(talk.problem(), NodeError::Server(_)));
    assert!(talk.session.is_down(), "the name may lead to another server by now");
}

#[test]
fn a_reply_cut_anywhere_leaves_the_vote_unknown() {
    let reply = b"+OK\r\n";
    for cut in 0..reply.len() {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Acquire);
        talk.hear(&reply[..cut]);
        talk.lose();
        assert!(matches!(talk.problem(), NodeError::Disconnected(_)), "cut at {cut}");
    }
}

#[test]
fn an_incomplete_reply_is_not_continued_by_the_next_connection() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear("$1000\r\n");
    talk.lose();
    assert_eq!(talk.votes(), [(1, Vote::Failed)]);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    talk.send(2, Verb::Acquire);
    talk.hear("+OK\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Granted)]);
}

#[test]
fn scripts_are_sent_by_source_again_on_a_new_connection() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Extend);
    talk.hear(":1\r\n");
    talk.lose();
    talk.connect();
    talk.hear(greeting("b", 0));
    talk.send(2, Verb::Extend);
    assert_eq!(talk.commands(), ["EVAL 2"]);
}

#[test]
fn an_unknown_script_is_sent_by_its_source_once_and_in_the_same_round() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Extend);
    assert_eq!(talk.commands(), ["EVAL 1"], "it is unknown which scripts the node has");
    talk.hear(":1\r\n");
    talk.send(2, Verb::Extend);
    assert_eq!(talk.commands(), ["EVALSHA 2"]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), ["EVAL 2"]);
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), [""; 0]);
    assert_eq!(talk.votes(), [(2, Vote::Failed)]);
}

#[test]
fn a_removal_works_on_a_server_that_has_forgotten_its_script() {
    for verb in [Verb::Release, Verb::Undo] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Release);
        talk.hear(":1\r\n");
        assert_eq!(
            (talk.commands(), talk.votes()),
            (vec!["EVAL 1".into()], vec![(1, Vote::Granted)])
        );
        // It may forget the script later, when no caller waits for its reply any more.
        talk.send(2, verb);
        assert_eq!(talk.commands(), ["EVAL 2"], "{verb:?}");
    }
}

#[test]
fn an_undo_is_written_after_its_attempt_and_without_a_waiter() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.post(1, Verb::Undo);
    assert_eq!(talk.commands(), ["SET 1", "EVAL 1"]);
    talk.hear("+OK\r\n:2\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    assert_eq!(talk.session.load(), (0, 0));
}

#[test]
fn pending_releases_survive_the_connection_and_are_written_first() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.post(1, Verb::Undo);
    talk.lose();
    talk.post(2, Verb::Undo);
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 2)));
    talk.pass(20);
    talk.send(3, Verb::Acquire);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 2", "SET 3"]);
    talk.lose();
    assert_eq!(talk.session.load(), (0, 2), "a release stays pending until it is answered");
}

#[test]
fn a_pending_release_is_dropped_when_its_key_has_expired() {
    let mut talk = ScriptedSession::ready();
    talk.post(1, Verb::Undo);
    talk.lose();
    talk.pass(999);
    assert_eq!(talk.session.load(), (0, 1));
    talk.pass(1);
    assert_eq!(talk.session.load(), (0, 0));
    assert!(!talk.session.wants_connection(at(5_000)));
}

#[test]
fn a_removal_without_a_connection_fails_when_it_is_dropped() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.session.connecting(talk.now, Phase::Connecting);
    let mut short = request(Verb::Undo, 1, talk.now);
    short.removal_mut().ttl = ttl(5);
    talk.session.send(talk.now, Some(ticket(1)), &short);
    talk.pass(5);
    assert_eq!(talk.session.load(), (0, 0));
    assert_eq!(talk.problem(), NodeError::TimedOut(Phase::Connecting));
}

#[test]
fn a_removal_fails_when_there_is_no_connection() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Release);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.lose();
    assert!(matches!(talk.problem(), NodeError::Disconnected(_)));
    assert_eq!(talk.session.load(), (0, 1), "it stays pending");
}

#[test]
fn pending_releases_are_bounded_and_the_oldest_is_dropped() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    for _ in 0..PENDING_MAX + 10 {
        talk.post(1, Verb::Undo);
    }
    assert_eq!(talk.session.load(), (0, PENDING_MAX));
}

#[test]
fn a_request_cancelled_before_it_is_sent_is_not_sent_unless_it_is_a_removal() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Acquire);
    talk.send(2, Verb::Release);
    talk.connect();
    assert!(talk.session.cancel(ticket(1)) && talk.session.cancel(ticket(2)));
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL 2"]);
    talk.hear(":1\r\n");
    assert_eq!(talk.votes(), []);
    talk.send(3, Verb::Acquire);
    assert!(!talk.session.cancel(ticket(3)), "a sent request may have been executed");
}
