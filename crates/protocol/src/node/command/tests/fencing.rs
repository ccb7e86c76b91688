//! Fenced locks: the encoding of requests with counters, and the meaning of their answers.

use super::*;
use crate::engine::Command;
use crate::engine::FENCE_MAX;
use crate::node::fixture::{fenced, fenced_handoff};
use crate::node::script;
use std::sync::Arc;

const COUNTER: &[u8] = b"key:redlatch:fence";
const LIFE: &[u8] = b"3600000";

/// A fenced lock with these keys after its first.
fn several(more_keys: Vec<Arc<[u8]>>) -> LockId {
    let lock = fenced(Verb::Acquire, 7, at(0))
        .lock()
        .expect("a lock is taken")
        .clone();
    let attributes = lock.attributes.map(|attributes| LockAttributes {
        more_keys,
        ..(*attributes).clone()
    });
    LockId {
        attributes: attributes.map(Arc::new),
        ..lock
    }
}

#[test]
fn requests_that_take_or_confirm_a_fenced_lock_send_its_counter() {
    let claim = script::CLAIM;
    let fence = script::FENCE;
    let token = &[7; 20][..];
    let before = &[8; 20][..];
    let acquire = fenced(Verb::Acquire, 7, at(0));
    let sha1 = claim.sha1.as_bytes();
    let expected: &[&[u8]] = &[
        b"EVALSHA", sha1, b"2", b"key", COUNTER, b"1", b"", token, b"1000", b"50", LIFE, b"", b"57",
    ];
    assert_eq!(encoded(&acquire, Form::Digest), words(expected));

    let over = fenced_handoff(8, 7, at(0));
    let source = claim.source.as_bytes();
    let expected: &[&[u8]] = &[
        b"EVAL", source, b"2", b"key", COUNTER, b"1", before, token, b"1000", b"50", LIFE, b"",
        b"57",
    ];
    assert_eq!(encoded(&over, Form::Source), words(expected));

    let mut confirm = fenced(Verb::Fence, 7, at(0));
    let Command::Fence(fenced) = &mut confirm.command else {
        panic!("{confirm:?}")
    };
    fenced.fence = FENCE_MAX;
    let sha1 = fence.sha1.as_bytes();
    let largest = b"4504699138998272";
    let expected: &[&[u8]] = &[
        b"EVALSHA", sha1, b"2", b"key", COUNTER, b"1", token, largest, LIFE, b"57",
    ];
    assert_eq!(encoded(&confirm, Form::Digest), words(expected));
}

#[test]
fn nothing_else_about_a_fenced_lock_touches_a_counter() {
    for verb in [Verb::Extend, Verb::Release, Verb::Undo, Verb::Restore] {
        let bytes = encoded(&fenced(verb, 7, at(0)), Form::Digest);
        let plain = request(verb, 7, at(0));
        assert_eq!(bytes, encoded(&plain, Form::Digest), "{verb:?}");
    }
    // The same holds for several keys.
    let more_keys = vec![Arc::from(&b"more"[..])];
    for verb in [Verb::Extend, Verb::Release, Verb::Undo, Verb::Restore] {
        let request = about(verb, several(more_keys.clone()), at(0));
        let text = String::from_utf8_lossy(&encoded(&request, Form::Digest)).into_owned();
        assert!(
            text.contains("more") && !text.contains(":redlatch:fence"),
            "{verb:?} {text}"
        );
    }
}

#[test]
fn a_set_of_keys_has_as_many_counters_in_the_same_order() {
    let request = about(Verb::Acquire, several(vec![Arc::from(&b"more"[..])]), at(0));
    let text = String::from_utf8_lossy(&encoded(&request, Form::Digest)).into_owned();
    let order = "$1\r\n6\r\n$3\r\nkey\r\n$4\r\nmore\r\n$18\r\nkey:redlatch:fence\r\n\
                 $19\r\nmore:redlatch:fence\r\n$18\r\nkey:redlatch:queue\r\n\
                 $19\r\nmore:redlatch:queue\r\n$1\r\n2\r\n";
    assert!(text.contains(order), "{text}");
}

#[test]
fn a_claim_is_answered_with_the_former_state_and_the_counter() {
    for verb in [Verb::Acquire, Verb::Handoff] {
        let claim = fenced(verb, 7, at(0));
        for (state, is_new) in [(0, false), (1, true)] {
            for counter in [0, 1, 50, FENCE_MAX] {
                let found = meaning(
                    &claim,
                    format!("*4\r\n:57\r\n:{state}\r\n:{counter}\r\n:2\r\n"),
                );
                let expected = NodeReply {
                    is_awaited: true,
                    ..claimed(is_new, counter)
                };
                assert_eq!(found, Ok(expected), "{verb:?}");
            }
        }
        assert_eq!(meaning(&claim, ":-57\r\n"), Ok(no()));
    }
}

#[test]
fn an_invalid_answer_to_a_claim_is_nonsense() {
    let nonsense = [
        "*4\r\n:57\r\n:0\r\n:-1\r\n:0\r\n",
        "*4\r\n:57\r\n:1\r\n:4504699138998273\r\n:0\r\n",
        "*4\r\n:57\r\n:1\r\n:9223372036854775807\r\n:0\r\n",
        "*4\r\n:57\r\n:2\r\n:1\r\n:0\r\n",
        "*4\r\n:57\r\n:-1\r\n:1\r\n:0\r\n",
        "*4\r\n:56\r\n:1\r\n:1\r\n:0\r\n",
        "*4\r\n:-57\r\n:1\r\n:1\r\n:0\r\n",
        "*4\r\n:57\r\n:1\r\n$1\r\n1\r\n:0\r\n",
        "*4\r\n:57\r\n$1\r\n1\r\n:1\r\n:0\r\n",
        "*4\r\n:57\r\n:1\r\n_\r\n:0\r\n",
        "*4\r\n:57\r\n:1\r\n:1\r\n:-1\r\n",
        "*4\r\n:57\r\n:1\r\n:1\r\n_\r\n",
        "*5\r\n:57\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
        "*3\r\n:57\r\n:1\r\n:1\r\n",
        "*2\r\n:57\r\n:1\r\n",
        "*0\r\n",
        ":57\r\n",
        ":0\r\n",
        "+OK\r\n",
        "_\r\n",
    ];
    for verb in [Verb::Acquire, Verb::Handoff] {
        nonsense
            .iter()
            .for_each(|bytes| is_nonsense(&fenced(verb, 7, at(0)), bytes));
    }
}

#[test]
fn a_confirmation_is_answered_with_yes_or_no() {
    let confirm = fenced(Verb::Fence, 7, at(0));
    assert_eq!(meaning(&confirm, ":57\r\n"), Ok(yes()));
    assert_eq!(meaning(&confirm, ":-57\r\n"), Ok(no()));
    assert_eq!(meaning(&confirm, "-WRONGTYPE no string\r\n"), Ok(no()));
    assert_eq!(
        meaning(&confirm, "-NOSCRIPT No matching script.\r\n"),
        Err(NoReply::UnknownScript)
    );
    [":1\r\n", "*2\r\n:57\r\n:9\r\n", "+OK\r\n", "_\r\n"]
        .iter()
        .for_each(|bytes| is_nonsense(&confirm, bytes));
}

#[test]
fn a_counter_that_cannot_be_raised_is_a_permanent_error() {
    for verb in [Verb::Acquire, Verb::Handoff, Verb::Fence] {
        let found = meaning(
            &fenced(verb, 7, at(0)),
            "-FENCE a counter of this lock is no number\r\n",
        );
        let Err(NoReply::Failed(problem)) = found else {
            panic!("{verb:?}: {found:?}")
        };
        assert!(problem.is_permanent(), "{verb:?}");
        let NodeError::Server(error) = problem else {
            panic!("{problem}")
        };
        assert_eq!(error.kind, ServerErrorKind::Counter);
    }
}
