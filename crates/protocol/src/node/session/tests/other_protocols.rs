//! Peers that speak another protocol, recognised in every state and however their bytes are split.

use crate::engine::Verb;
use crate::node::fixture::{ScriptedSession, greeting};
use crate::node::{NodeError, OtherProtocol, SessionOptions};
use crate::resp::ProtocolError;

#[test]
fn a_web_server_is_recognised_however_its_reply_is_split() {
    for length in 1..12 {
        let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
        talk.send(1, Verb::Acquire);
        talk.connect();
        for part in b"HTTP/1.1 400".chunks(length) {
            talk.hear(part);
        }
        assert!(
            matches!(talk.problem(), NodeError::NotRedis(_)),
            "in parts of {length}"
        );
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
        (
            "in the greeting",
            greeting_is("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n".len()),
        ),
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
                assert_eq!(
                    talk.session.is_down(),
                    cut >= 2,
                    "{stage}, {kind:#x}, {cut} bytes"
                );
                talk.hear(&record[cut..]);
                assert!(talk.session.is_down(), "{stage}, {kind:#x}, cut at {cut}");
                assert_eq!(talk.problem(), expected, "{stage}, {kind:#x}, cut at {cut}");
            }
        }
    }
    let mut idle = ScriptedSession::ready();
    idle.hear([0x15]);
    idle.hear([0x03]);
    assert_eq!(idle.session.problem, Some(expected));
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
    assert_eq!(
        talk.problem(),
        NodeError::Protocol(ProtocolError::UnknownType(b'H'))
    );
}
