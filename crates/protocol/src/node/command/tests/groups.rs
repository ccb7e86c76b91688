//! What is written to a replicated group, whose keys live longer than their locks.

use super::*;
use crate::engine::{Channel, Command, Listen, ListenStep, Share};
use crate::node::fixture::{fenced, fenced_handoff, share};
use crate::node::shared_request::LastRequests;

/// A group whose keys stand behind this tag, and whose clocks differ by so many milliseconds.
fn group(tag: &str, skew: u64) -> GroupOptions {
    let bound = Duration::from_secs(5);
    GroupOptions {
        tag: tag.as_bytes().into(),
        bound,
        named_within: bound,
        max_ttl: bound,
        skew: Duration::from_millis(skew),
        replicas: None,
    }
}

fn to_group(request: &Request, form: Form) -> String {
    let mut out = Vec::new();
    encode(request, form, NUMBER, Some(&group("", 1_500)), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The same for a single server, with what lasts for these times in place of those.
fn longer(request: &Request, form: Form, times: &[(&str, &str)]) -> String {
    let single = String::from_utf8_lossy(&encoded(request, form)).into_owned();
    times.iter().fold(single, |text, (short, long)| {
        let word = |number: &str| format!("${}\r\n{number}\r\n", number.len());
        assert_eq!(text.matches(&word(short)).count(), 1, "{text}");
        text.replace(&word(short), &word(long))
    })
}

const TTL: (&str, &str) = ("1000", "2500");
const COUNTERS: (&str, &str) = ("3600000", "3601500");

#[test]
fn a_key_lives_longer_than_its_lock_by_what_the_clocks_differ() {
    const PERMIT: Share = Share::Permit {
        of: 4,
        number: Some(2),
    };
    let lasting = [Verb::Acquire, Verb::Handoff, Verb::Extend, Verb::Restore];
    for form in [Form::Digest, Form::Source] {
        for request in lasting.map(|verb| request(verb, 7, at(0))) {
            assert_eq!(to_group(&request, form), longer(&request, form, &[TTL]));
        }
        for of in [Share::Reader, PERMIT] {
            for verb in [Verb::Acquire, Verb::Turn, Verb::Extend, Verb::Restore] {
                let request = about(verb, share(7, of), at(0));
                let expected = longer(&request, form, &[TTL]);
                assert_eq!(to_group(&request, form), expected, "{verb:?} {of:?}");
            }
        }
        for request in [fenced(Verb::Acquire, 7, at(0)), fenced_handoff(8, 7, at(0))] {
            let expected = longer(&request, form, &[TTL, COUNTERS]);
            assert_eq!(to_group(&request, form), expected);
        }
        let confirmed = fenced(Verb::Fence, 7, at(0));
        let expected = longer(&confirmed, form, &[COUNTERS]);
        assert_eq!(to_group(&confirmed, form), expected);
    }
}

#[test]
fn a_lock_that_stays_taken_does_so_for_longer_and_what_is_no_lock_does_not() {
    for lock in [lock(7), share(7, Share::Reader)] {
        let mut request = about(Verb::Release, lock, at(0));
        assert_eq!(
            to_group(&request, Form::Digest),
            longer(&request, Form::Digest, &[])
        );
        let Command::Remove(removal) = &mut request.command else {
            panic!("{request:?}")
        };
        removal.keep_for = Some(ttl(700));
        assert_eq!(
            to_group(&request, Form::Digest),
            longer(&request, Form::Digest, &[("700", "2200")])
        );
    }
    for verb in [Verb::Queue, Verb::Undo, Verb::Ping] {
        let request = request(verb, 7, at(0));
        let expected = longer(&request, Form::Digest, &[]);
        assert_eq!(to_group(&request, Form::Digest), expected, "{verb:?}");
    }
}

#[test]
fn what_is_written_once_for_single_servers_is_not_written_to_a_group() {
    let request = request(Verb::Extend, 7, at(0));
    let shared = LastRequests::default().share(request.clone());
    let written = |group: Option<&GroupOptions>| {
        let mut out = Vec::new();
        shared.encode(Form::Digest, NUMBER, group, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    assert_eq!(written(None), longer(&request, Form::Digest, &[]));
    let group = group("", 1_500);
    assert_eq!(written(Some(&group)), to_group(&request, Form::Digest));
}

#[test]
fn the_channel_of_a_slot_is_one_of_its_shard() {
    let channel = Channel {
        number: 0xab,
        is_sharded: true,
    };
    let mut subscribe = request(Verb::Listen, 7, at(0));
    subscribe.command = Command::Listen(Listen {
        key: Arc::from(&b"key"[..]),
        step: ListenStep::Subscribe(channel),
    });
    let mut out = Vec::new();
    let group = group("{fjl}", 0);
    encode(&subscribe, Form::Source, 0, Some(&group), &mut out);
    assert_eq!(
        out,
        words(&[b"SSUBSCRIBE", b"redlatch:{fjl}00000000000000ab"])
    );
    let subscribed = ">3\r\n$10\r\nssubscribe\r\n$30\r\nredlatch:{fjl}00000000000000ab\r\n:1\r\n";
    assert_eq!(meaning(&subscribe, subscribed), Ok(yes()));
}
