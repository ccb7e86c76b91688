//! Removals that a node refuses, and scripts that it has forgotten.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting, request, ticket};
use crate::node::{NodeError, OtherProtocol, SessionOptions};
use crate::resp::ProtocolError;
use std::time::Duration;

const SILENCE_MAX: Duration = Duration::from_millis(500);
const LOADING: &str = "-LOADING Redis is loading the dataset in memory\r\n";

#[test]
fn a_refused_removal_stays_pending_for_its_ttl_and_no_longer() {
    let mut talk = ScriptedSession::ready();
    talk.post(1, Verb::Undo);
    assert_eq!(talk.commands(), ["EVAL 1"]);
    let ttl = request(Verb::Undo, 1, talk.now).ttl().expect("an undo has a ttl").as_duration();
    let (start, mut times) = (talk.now, 0);
    // The node gets other commands from time to time, and refuses these and the removal.
    while talk.session.load() != (0, 0) {
        talk.hear(LOADING.repeat(talk.session.load().0));
        talk.pass(501);
        talk.send(9, Verb::Acquire);
        talk.hear(LOADING.repeat(talk.session.load().0));
        times += talk.commands().iter().filter(|command| *command == "EVAL 1").count();
        talk.answers();
        assert!(talk.now.since(start) < ttl + Duration::from_secs(2), "it stays pending for ever");
    }
    assert!(times >= 1, "it is sent again");
}

#[test]
fn a_refused_removal_is_sent_again_after_a_pause() {
    for refusal in [LOADING, "-BUSY Redis is busy running a script.\r\n"] {
        let mut talk = ScriptedSession::ready();
        talk.post(1, Verb::Undo);
        assert_eq!(talk.session.next_deadline(), Some(talk.now.after(SILENCE_MAX)));
        talk.hear(refusal);
        talk.written();
        let deadline = talk.now.after(Duration::from_millis(500));
        assert_eq!(talk.session.next_deadline(), Some(deadline), "{refusal}");
        talk.pass(499);
        assert_eq!(talk.commands(), [""; 0], "{refusal}");
        talk.pass(1);
        assert_eq!(talk.commands(), ["EVAL 1"], "{refusal}");
        talk.hear(":2\r\n");
        assert_eq!((talk.session.load(), talk.session.next_deadline()), ((0, 0), None));
    }
}

#[test]
fn an_extension_with_an_unknown_script_is_always_sent_again() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Extend);
    talk.hear(":1\r\n");
    // The next one is sent by the digest.
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk.commands();
    let extension = request(Verb::Extend, 1, talk.now);
    talk.session.send(talk.now, Some(ticket(2)), &extension);
    talk.session.send(talk.now, Some(ticket(3)), &extension);
    assert_eq!(talk.commands(), ["EVALSHA 1", "EVALSHA 1"]);
    talk.hear("-NOSCRIPT No matching script. Please use EVAL.\r\n".repeat(2));
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 1"], "an extension never shortens the ttl");
    talk.hear(":4\r\n:5\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Granted), (3, Vote::Granted)]);
}

#[test]
fn a_removal_with_an_invalid_reply_stays_pending() {
    let nonsense =
        ["+OK\r\n", ":7\r\n", "$-1\r\n", "*1\r\n:1\r\n", "-NOSCRIPT No matching script.\r\n"];
    for reply in nonsense {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Release);
        assert_eq!(talk.commands(), ["EVAL 1"]);
        talk.hear(reply);
        assert_eq!((talk.votes(), talk.session.load().1), (vec![(1, Vote::Failed)], 1), "{reply}");
        // Not immediately: the node might send such replies for ever.
        talk.pass(20);
        if talk.session.is_down() {
            assert!(talk.session.wants_connection(talk.now));
            talk.connect();
            talk.hear(greeting("a", 1_000));
        }
        assert_eq!(talk.commands(), [""; 0], "{reply}");
        talk.pass(500);
        assert_eq!(talk.commands(), ["EVAL 1"], "{reply}");
    }
}

#[test]
fn a_web_server_is_recognised_however_its_reply_is_split() {
    for length in 1..12 {
        let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
        talk.send(1, Verb::Acquire);
        talk.connect();
        for part in b"HTTP/1.1 400".chunks(length) {
            talk.hear(part);
        }
        assert!(matches!(talk.problem(), NodeError::NotRedis(_)), "in parts of {length}");
    }
}

/// Sessions in every state in which bytes can arrive, each with one unanswered command.
fn stages() -> [(&'static str, ScriptedSession); 4] {
    let greeting_is = |answered: usize| {
        let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
        talk.send(1, Verb::Acquire);
        talk.connect();
        talk.hear(&greeting("a", 1_000)[..answered]);
        talk
    };
    let mut asked = ScriptedSession::ready();
    asked.send(1, Verb::Acquire);
    let mut answered = ScriptedSession::ready();
    answered.send(2, Verb::Ping);
    answered.hear("+PONG\r\n");
    answered.answers();
    answered.send(1, Verb::Acquire);
    [
        ("before the greeting", greeting_is(0)),
        ("in the greeting", greeting_is("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n".len())),
        ("before the first answer", asked),
        ("after an answer", answered),
    ]
}

#[test]
fn tls_is_recognised_in_every_state_for_every_record_type_however_it_is_split() {
    let expected = NodeError::NotRedis(OtherProtocol::Tls);
    assert!(expected.is_permanent());
    for kind in 0x14..=0x18 {
        let record = [kind, 0x03, 0x03, 0x00, 0x02, 0x02, 0x0a];
        for cut in 0..=record.len() {
            for (stage, mut talk) in stages() {
                talk.hear(&record[..cut]);
                assert_eq!(talk.session.is_down(), cut >= 2, "{stage}, {kind:#x}, {cut} bytes");
                talk.hear(&record[cut..]);
                assert!(talk.session.is_down(), "{stage}, {kind:#x}, cut at {cut}");
                assert_eq!(talk.problem(), expected, "{stage}, {kind:#x}, cut at {cut}");
            }
        }
    }
    let mut idle = ScriptedSession::ready();
    idle.hear([0x15]);
    idle.hear([0x03]);
    assert_eq!(idle.session.status(idle.now, None).last_error, Some(expected));
}

/// The error for this byte at the beginning of a reply. A server that has spoken RESP before is no
/// other server.
fn no_resp(stage: &str, byte: u8) -> NodeError {
    if stage == "before the greeting" {
        return NodeError::NotRedis(OtherProtocol::Unknown);
    }
    NodeError::Protocol(ProtocolError::UnknownType(byte))
}

#[test]
fn a_byte_that_could_begin_tls_is_judged_with_the_next_byte() {
    for (stage, mut talk) in stages() {
        talk.hear([0x16]);
        assert!(!talk.session.is_down(), "{stage}");
        talk.hear("+OK\r\n");
        assert_eq!(talk.problem(), no_resp(stage, 0x16), "{stage}");
    }
    for byte in [0x13, 0x19] {
        for (stage, mut talk) in stages() {
            talk.hear([byte, b'+']);
            assert_eq!(talk.problem(), no_resp(stage, byte), "{stage}");
        }
    }
    // A valid reply may contain such a byte.
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear(b"-\x15\x03\r\n");
    assert!(matches!(talk.problem(), NodeError::Server(_)));
}

#[test]
fn a_peer_that_has_spoken_redis_is_not_reported_as_a_web_server() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear("H");
    assert_eq!(talk.problem(), NodeError::Protocol(ProtocolError::UnknownType(b'H')));
}

#[test]
fn a_pending_release_is_written_before_the_next_command_on_the_same_connection() {
    let mut talk = ScriptedSession::ready();
    talk.post(1, Verb::Undo);
    talk.commands();
    // The reply is read late. The pause counts from the time the command was sent.
    talk.now = talk.now.after(Duration::from_millis(600));
    talk.hear("-BUSY Redis is busy running a script.\r\n");
    talk.send(2, Verb::Extend);
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 2"], "the removal is written first");
}

#[test]
fn a_pending_release_whose_pause_is_over_is_written_before_a_new_command() {
    let mut talk = ScriptedSession::ready();
    talk.post(1, Verb::Undo);
    talk.commands();
    talk.hear("-BUSY Redis is busy running a script.\r\n");
    assert_eq!(talk.commands(), [""; 0], "there is a pause after a refusal");
    // No tick has happened since.
    talk.now = talk.now.after(Duration::from_millis(600));
    talk.send(2, Verb::Extend);
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 2"]);
}

#[test]
fn an_invalid_reply_is_followed_by_a_pause_also_on_a_working_connection() {
    let pauses = (0..20).filter(|seed| {
        let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", *seed));
        talk.connect();
        talk.hear(greeting("a", 1_000));
        talk.send(1, Verb::Acquire);
        talk.hear("+OK\r\n");
        talk.send(2, Verb::Release);
        talk.hear("+OK\r\n");
        assert!(talk.session.is_down());
        !talk.session.wants_connection(talk.now)
    });
    assert!(pauses.count() > 10);
}
