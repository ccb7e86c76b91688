//! Handoffs that fail on a node: no key of either lock may stay there.

use crate::engine::{LockAttributes, Request, Token, Verb, Vote};
use crate::node::SessionOptions;
use crate::node::fixture::{self, ScriptedSession, greeting, ticket, ttl};
use std::sync::Arc;

/// The handoff of the lock of `before` to `owner`.
fn handoff(before: u8, owner: u8, talk: &ScriptedSession) -> Request {
    fixture::handoff(before, owner, talk.now)
}

fn send(talk: &mut ScriptedSession, serial: u64, before: u8, owner: u8) {
    let request = handoff(before, owner, talk);
    talk.session.send(talk.now, Some(ticket(serial)), &request);
}

/// A node that has run both scripts.
fn experienced() -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 90, 91, 92);
    talk.send(93, Verb::Release);
    talk.hear("*4\r\n:1\r\n:0\r\n:0\r\n:0\r\n:2\r\n");
    talk.written();
    talk.answers();
    talk
}

#[test]
fn a_handoff_lost_with_its_connection_leaves_the_former_lock_pending_release() {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 1, 4, 5);
    talk.lose();
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 1)));
    talk.post(5, Verb::Undo);
    talk.pass(20);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL 4", "EVAL 5"]);
}

#[test]
fn a_handoff_that_was_never_sent_leaves_no_pending_release() {
    // The sender of a handoff knows which nodes may hold the former key. A node that has been down
    // for long does not.
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    send(&mut talk, 1, 4, 5);
    talk.connect();
    talk.lose();
    send(&mut talk, 2, 5, 6);
    assert!(talk.answers().iter().all(|answer| !answer.was_sent));
    assert_eq!(talk.session.load(), (0, 0));
}

#[test]
fn a_handoff_answered_with_an_error_leaves_the_former_lock_pending_release() {
    let mut talk = ScriptedSession::ready();
    send(&mut talk, 1, 4, 5);
    talk.hear("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 1)));
}

#[test]
fn a_granted_or_refused_handoff_leaves_no_pending_release() {
    for answer in [":-1\r\n", "*4\r\n:1\r\n:0\r\n:0\r\n:0\r\n", "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n"] {
        let mut talk = ScriptedSession::ready();
        send(&mut talk, 1, 4, 5);
        talk.hear(answer);
        assert_eq!(talk.session.load(), (0, 0), "{answer}");
    }
}

#[test]
fn the_pending_release_of_the_former_lock_lasts_as_long_as_its_longest_ttl() {
    let mut talk = ScriptedSession::ready();
    let mut request = handoff(4, 5, &talk);
    request.claim_mut().ttl = ttl(10);
    request.predecessor_mut().ttl_longest = ttl(1_000);
    talk.session.send(talk.now, Some(ticket(1)), &request);
    talk.lose();
    talk.pass(999);
    assert_eq!(talk.session.load(), (0, 1));
    talk.pass(1);
    assert_eq!(talk.session.load(), (0, 0));
}

#[test]
fn a_handoff_with_an_unknown_script_is_not_sent_again_after_its_undo() {
    let mut talk = experienced();
    send(&mut talk, 1, 4, 5);
    talk.post(5, Verb::Undo);
    assert_eq!(talk.commands(), ["EVALSHA 4", "EVAL 5"]);
    talk.hear("-NOSCRIPT No matching script.\r\n:-4\r\n");
    // After the undo, nothing would remove the key of the handoff.
    assert_eq!(talk.commands(), ["EVAL 4"], "the removal of the former lock");
    assert_eq!(talk.votes(), [(1, Vote::Failed)]);
    talk.hear(":5\r\n");
    assert_eq!(talk.session.load(), (0, 0));
}

#[test]
fn a_handoff_with_an_unknown_script_is_sent_again_without_an_undo() {
    let mut talk = experienced();
    send(&mut talk, 1, 4, 5);
    // The undo of another lock does not matter.
    talk.post(8, Verb::Undo);
    talk.written();
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert!(talk.written().contains("EVAL\r\n"));
    talk.hear(":-4\r\n*4\r\n:5\r\n:0\r\n:0\r\n:0\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
}

#[test]
fn a_refused_handoff_of_several_keys_leaves_the_former_lock_pending_release() {
    // Another lock holds one of the keys. The former lock may hold the others.
    for refusal in [":-1\r\n", "-WRONGTYPE Operation against a key\r\n"] {
        let mut talk = ScriptedSession::ready();
        let mut request = handoff(4, 5, &talk);
        let more_keys = vec![Arc::from(&b"more"[..])];
        let attributes = Some(Arc::new(LockAttributes { more_keys, ..LockAttributes::default() }));
        request.predecessor_mut().attributes.clone_from(&attributes);
        request.claim_mut().lock.attributes = attributes;
        talk.session.send(talk.now, Some(ticket(1)), &request);
        assert_eq!(talk.commands(), ["EVAL 4"], "its first token is that of the former lock");
        talk.hear(refusal);
        assert_eq!(talk.votes(), [(1, Vote::Refused)]);
        let removal = talk.written();
        assert!(removal.contains("more") && removal.contains(&"\u{4}".repeat(Token::LEN)));
        talk.hear(":-2\r\n");
        assert_eq!(talk.session.load(), (0, 0));
    }
}
