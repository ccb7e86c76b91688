//! Shares of a lock: the encoding of requests about them, and the meaning of their answers.

mod answers;

use super::*;
use crate::engine::{PERMITS_MAX, Share};
use crate::node::command::member_of;
use crate::node::fixture::{WAITER, share};
use crate::node::script;

const TOKEN: &[u8] = &[7; Token::LEN];
const OTHER: &[u8] = &[WAITER; Token::LEN];
const COUNTER: &[u8] = b"key:redlatch:fence";
const HOLDERS: &[u8] = b"key:redlatch:holders";
/// The number that `TOKEN` begins with, by which a client chooses the permit to look at first.
const START: u32 = 0x0707_0707;

const READER: Share = Share::Reader;
/// One of four permits, before and after it was granted.
const ANY: Share = Share::Permit {
    of: 4,
    number: None,
};
const THIRD: Share = Share::Permit {
    of: 4,
    number: Some(2),
};

fn about_share(verb: Verb, of: Share) -> Request {
    about(verb, share(7, of), at(0))
}

/// The same with an owner's label and a counter.
fn fenced_and_labelled(verb: Verb, of: Share) -> Request {
    let lock = share(7, of);
    let attributes = LockAttributes {
        owner: b"host-3 \xff".to_vec(),
        fence: Some(ttl(3_600_000)),
        ..(**lock.attributes.as_ref().expect("a share has attributes")).clone()
    };
    about(
        verb,
        LockId {
            attributes: Some(Arc::new(attributes)),
            ..lock
        },
        at(0),
    )
}

/// The command with these words between the script and the number.
fn call(script: script::Script, arguments: &[&[u8]]) -> Vec<u8> {
    words(&[&[b"EVALSHA", script.sha1.as_bytes()], arguments, &[b"57"]].concat())
}

#[test]
fn taking_a_share_sends_what_is_wanted_and_the_permit_to_look_at_first() {
    let first = (START % 4).to_string();
    for (of, permits, from) in [
        (READER, &b"0"[..], &b"0"[..]),
        (ANY, b"4", first.as_bytes()),
    ] {
        let expected: &[&[u8]] = &[
            b"1", b"key", TOKEN, b"1000", permits, from, b"", b"50", b"0",
        ];
        let acquire = encoded(&about_share(Verb::Acquire, of), Form::Digest);
        assert_eq!(acquire, call(script::SHARE, expected), "{of:?}");
        // In a turn the node has a permit for the waiter.
        let expected: &[&[u8]] = &[
            b"1", b"key", TOKEN, b"1000", permits, b"", OTHER, b"50", b"0",
        ];
        let turn = encoded(&about_share(Verb::Turn, of), Form::Digest);
        assert_eq!(turn, call(script::SHARE, expected), "{of:?}");
        let value = [TOKEN, b"host-3 \xff"].concat();
        let expected: &[&[u8]] = &[
            b"2",
            b"key",
            b"key:redlatch:fence",
            &value,
            b"1000",
            permits,
            b"",
            OTHER,
            b"50",
            b"3600000",
        ];
        let turn = encoded(&fenced_and_labelled(Verb::Turn, of), Form::Digest);
        assert_eq!(turn, call(script::SHARE, expected), "{of:?}");
    }
    // Unless the engine names the one to take.
    let named = Share::Permit {
        of: 4,
        number: Some(3),
    };
    let expected: &[&[u8]] = &[b"1", b"key", TOKEN, b"1000", b"4", b"3", OTHER, b"50", b"0"];
    let turn = encoded(&about_share(Verb::Turn, named), Form::Digest);
    assert_eq!(turn, call(script::SHARE, expected));
}

#[test]
fn the_permit_to_look_at_first_is_below_the_count_and_depends_on_the_token() {
    let first = |owner: u8, of| {
        let permit = Share::Permit { of, number: None };
        let bytes = encoded(
            &about(Verb::Acquire, share(owner, permit), at(0)),
            Form::Digest,
        );
        let (Reply::Array(words), _) = decode(&bytes).expect("RESP").expect("a command") else {
            panic!("{}", bytes.escape_ascii())
        };
        let Some(Reply::Bulk(digits)) = words.iter().nth(12) else {
            panic!("{words:?}")
        };
        std::str::from_utf8(digits)
            .expect("digits")
            .parse::<u32>()
            .expect("a number")
    };
    for of in [1, 2, 3, 4, 1_000, PERMITS_MAX] {
        (0..=255).for_each(|owner| assert!(first(owner, of) < of));
    }
    let found: Vec<u32> = (0..4).map(|owner| first(owner, 4)).collect();
    assert_eq!(
        found,
        [0, 1, 2, 3],
        "clients that come together look at different ones"
    );
}

#[test]
fn keeping_a_share_sends_its_permit() {
    for (verb, mode) in [(Verb::Extend, &b""[..]), (Verb::Restore, b"restore")] {
        for (of, permit) in [(READER, &b""[..]), (THIRD, b"2")] {
            let expected = call(
                script::KEEP_SHARED,
                &[b"1", b"key", permit, TOKEN, b"1000", mode],
            );
            assert_eq!(
                encoded(&about_share(verb, of), Form::Digest),
                expected,
                "{verb:?} {of:?}"
            );
            // No counter, whether the lock is fenced or not.
            let value = [TOKEN, b"host-3 \xff"].concat();
            let words: &[&[u8]] = &[b"1", b"key", permit, &value, b"1000", mode];
            let expected = call(script::KEEP_SHARED, words);
            assert_eq!(
                encoded(&fenced_and_labelled(verb, of), Form::Digest),
                expected,
                "{of:?}"
            );
        }
    }
}

#[test]
fn giving_a_share_back_names_no_permit_but_the_waiter_and_how_long_it_stays() {
    let waiter = Some(Token::new([WAITER; Token::LEN]));
    for verb in [Verb::Release, Verb::Undo] {
        for (of, permits) in [(READER, &b"0"[..]), (ANY, b"4"), (THIRD, b"4")] {
            let table = [
                (None, None, &b""[..], &b""[..]),
                (waiter, None, OTHER, b""),
                (None, Some(ttl(29_000)), b"", b"29000"),
                (waiter, Some(ttl(29_000)), OTHER, b"29000"),
            ];
            for (waiter, keep_for, name, stays) in table {
                let mut request = about_share(verb, of);
                let removal = request.removal_mut();
                (removal.waiter, removal.keep_for) = (waiter, keep_for);
                let is_short = of == READER && name.is_empty() && stays.is_empty();
                let expected: &[&[u8]] = if is_short {
                    let source = script::RELEASE_READER.source.as_bytes();
                    &[b"EVAL", source, b"1", b"key", TOKEN, b"57"]
                } else {
                    let source = script::RELEASE_SHARED.source.as_bytes();
                    &[
                        b"EVAL", source, b"1", b"key", TOKEN, permits, name, stays, b"57",
                    ]
                };
                assert_eq!(
                    encoded(&request, Form::Source),
                    words(expected),
                    "{verb:?} {of:?}"
                );
            }
        }
    }
}

#[test]
fn a_waiter_says_in_its_lease_what_it_wants() {
    let of_four = &b"7s4 350 1000  "[..];
    for (of, lease) in [
        (READER, &b"7s0 350 1000  "[..]),
        (ANY, of_four),
        (THIRD, of_four),
    ] {
        let expected: &[&[u8]] = &[b"1", b"key", TOKEN, b"0", TOKEN, lease, b"1000"];
        let queue = encoded(&about_share(Verb::Queue, of), Form::Digest);
        assert_eq!(queue, call(script::QUEUE, expected), "{of:?}");
    }
    let value = [TOKEN, b"host-3 \xff"].concat();
    let expected: &[&[u8]] = &[
        b"1",
        b"key",
        TOKEN,
        b"0",
        &value,
        b"7s4 350 1000  host-3 \xff",
        b"1000",
    ];
    let queue = encoded(&fenced_and_labelled(Verb::Queue, ANY), Form::Digest);
    assert_eq!(queue, call(script::QUEUE, expected));
}

#[test]
fn a_number_is_confirmed_for_the_member_that_stands_for_the_share() {
    let value = [TOKEN, b"host-3 \xff"].concat();
    for (of, before) in [(READER, &b":"[..]), (THIRD, b"2:")] {
        let member = [before, &value].concat();
        let confirm = fenced_and_labelled(Verb::Fence, of);
        assert_eq!(member_of(confirm.lock().expect("a lock")), member);
        let expected: &[&[u8]] = &[
            b"3", b"key", COUNTER, HOLDERS, b"1", &member, b"50", b"3600000",
        ];
        assert_eq!(
            encoded(&confirm, Form::Digest),
            call(script::FENCE, expected),
            "{of:?}"
        );
        let permit = of.permit();
        assert_eq!(read_member(&member), Some((permit, &value[..])), "{of:?}");
    }
    assert_eq!(
        member_of(&lock(7)),
        TOKEN,
        "a lock that is not shared has its value"
    );
}

#[test]
fn scripts_about_shares_are_learnt_one_by_one() {
    let form = |known: &KnownScripts, verb, of| {
        known
            .clone()
            .form(at(0), &about_share(verb, of).into(), false)
    };
    let mut known = KnownScripts::default();
    for verb in [Verb::Extend, Verb::Turn] {
        known.learn(&request(verb, 7, at(0)).into(), Form::Source, at(0));
    }
    assert_eq!(form(&known, Verb::Acquire, READER), Form::Source);
    known.learn(
        &about_share(Verb::Acquire, READER).into(),
        Form::Source,
        at(0),
    );
    for verb in [Verb::Acquire, Verb::Turn] {
        assert_eq!(
            form(&known, verb, ANY),
            Form::Digest,
            "one script takes all shares: {verb:?}"
        );
    }
    for verb in [Verb::Extend, Verb::Restore, Verb::Release, Verb::Undo] {
        assert_eq!(form(&known, verb, ANY), Form::Source, "{verb:?}");
    }
}
