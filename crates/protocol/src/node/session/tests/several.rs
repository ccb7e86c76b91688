//! Requests about several keys: always sent as a script, and all keys count for the room.

use crate::engine::{LockAttributes, LockId, Request, Verb, Vote};
use crate::node::fixture::{self, ScriptedSession, at, greeting, lock, ticket};
use crate::node::{IN_FLIGHT_BYTES_MAX, NodeError, Phase, SessionOptions};
use std::sync::Arc;

/// A request about `key`, and `more` other keys of this length.
fn about(verb: Verb, owner: u8, more: usize, length: usize) -> Request {
    let name = |number: usize| format!("{number:0length$}").into_bytes().into();
    let more_keys = (0..more).map(name).collect();
    let attributes = Some(Arc::new(LockAttributes { more_keys, ..LockAttributes::default() }));
    fixture::about(verb, LockId { attributes, ..lock(owner) }, at(0))
}

fn send(talk: &mut ScriptedSession, serial: u64, verb: Verb) {
    let request = about(verb, serial as u8, 1, 4);
    talk.session.send(talk.now, Some(ticket(serial)), &request);
}

fn post(talk: &mut ScriptedSession, owner: u8, verb: Verb) {
    talk.session.send(talk.now, None, &about(verb, owner, 1, 4));
}

/// A node that has run the script.
fn experienced() -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 90, Verb::Acquire);
    talk.hear("*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
    assert_eq!(
        (talk.commands(), talk.votes()),
        (vec!["EVAL 90".into()], vec![(90, Vote::Granted)])
    );
    talk
}

#[test]
fn an_unknown_script_is_sent_again_unless_its_undo_is_in_flight() {
    let mut talk = experienced();
    send(&mut talk, 1, Verb::Acquire);
    assert_eq!(talk.commands(), ["EVALSHA 1"]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), ["EVAL 1"]);
    talk.hear("*4\r\n:3\r\n:1\r\n:0\r\n:0\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);

    let mut talk = experienced();
    send(&mut talk, 1, Verb::Acquire);
    post(&mut talk, 1, Verb::Undo);
    assert_eq!(talk.commands(), ["EVALSHA 1", "EVAL 1"]);
    talk.hear("-NOSCRIPT No matching script.\r\n:-3\r\n");
    assert_eq!(talk.commands(), [""; 0], "after its undo, nothing would remove its keys");
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 0)));
}

#[test]
fn a_pending_release_removes_all_keys() {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 1, Verb::Acquire);
    talk.lose();
    post(&mut talk, 1, Verb::Undo);
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 1)));
    talk.pass(20);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    let removal = talk.written();
    assert!(removal.contains("$1\r\n2\r\n$3\r\nkey\r\n$4\r\n0000\r\n"), "{removal}");
    talk.hear(":2\r\n");
    assert_eq!(talk.session.load(), (0, 0));
}

#[test]
fn an_invalid_counter_fails_the_attempt_permanently() {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 1, Verb::Acquire);
    talk.hear("-FENCE a counter of this lock is no number\r\n");
    let problem = talk.problem();
    assert!(problem.is_permanent() && matches!(problem, NodeError::Server(_)), "{problem}");
    assert!(!talk.session.is_down());
}

#[test]
fn all_keys_count_towards_the_room_of_a_silent_node() {
    let large = |verb, serial: u64| about(verb, serial as u8, 63, 1_000);
    // One session is connected, the other has not been greeted yet.
    let (mut ready, mut new) =
        (ScriptedSession::ready(), ScriptedSession::new(SessionOptions::new("redis://node", 7)));
    ready.send(0, Verb::Ping);
    new.session.connecting(new.now, Phase::Connecting);
    for mut talk in [ready, new] {
        talk.pass(50);
        let sent = (1..200).take_while(|serial| {
            talk.session.send(talk.now, Some(ticket(*serial)), &large(Verb::Acquire, *serial));
            talk.answers().is_empty()
        });
        let sent = sent.count();
        assert!((7..=9).contains(&sent), "{sent} times 63,000 bytes");
        // Removals are still accepted, and are bounded.
        for serial in 0..200 {
            talk.session.send(talk.now, None, &large(Verb::Undo, serial));
        }
        let (unanswered, pending) = talk.session.load();
        assert!((sent..=18).contains(&(unanswered.max(pending))), "{unanswered}, {pending}");
        assert!(talk.session.output().len() <= IN_FLIGHT_BYTES_MAX + 70_000);
    }
}

#[test]
fn a_refused_request_for_several_keys_leaves_no_pending_release() {
    for refusal in [":-1\r\n", "-WRONGTYPE Operation against a key\r\n"] {
        let mut talk = ScriptedSession::ready();
        send(&mut talk, 1, Verb::Acquire);
        talk.hear(refusal);
        assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Refused)], (0, 0)));
    }
}

#[test]
fn invalid_lists_close_the_connection() {
    let table = [
        (Verb::Acquire, "*1\r\n:1\r\n"),
        (Verb::Acquire, "*3\r\n:1\r\n:1\r\n:1\r\n"),
        (Verb::Acquire, "*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"),
        (Verb::Acquire, "*4\r\n:2\r\n:1\r\n:1\r\n:1\r\n"),
        (Verb::Acquire, "*4\r\n:1\r\n:2\r\n:1\r\n:1\r\n"),
        (Verb::Acquire, "*4\r\n:1\r\n:1\r\n:-1\r\n:1\r\n"),
        (Verb::Acquire, "*4\r\n:1\r\n:1\r\n:1\r\n:-1\r\n"),
        (Verb::Acquire, "*4\r\n:1\r\n:1\r\n:9007199254740992\r\n:1\r\n"),
        (Verb::Acquire, "*4\r\n:1\r\n$1\r\n1\r\n:1\r\n:1\r\n"),
        (Verb::Acquire, "+OK\r\n"),
        (Verb::Acquire, "$-1\r\n"),
        (Verb::Acquire, ":1\r\n"),
        (Verb::Release, "*3\r\n:1\r\n:1\r\n:1\r\n"),
        (Verb::Extend, "*3\r\n:1\r\n:1\r\n:1\r\n"),
    ];
    for (verb, reply) in table {
        let mut talk = ScriptedSession::ready();
        send(&mut talk, 1, verb);
        talk.hear(reply);
        assert!(matches!(talk.problem(), NodeError::UnexpectedReply(_)), "{verb:?} {reply:?}");
        assert!(talk.session.is_down(), "{verb:?} {reply:?}");
    }
}
