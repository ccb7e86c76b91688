//! The encoding of every verb, and the meaning of every kind of reply to each.

mod fencing;
#[cfg(feature = "groups")]
mod groups;
mod handoff;
mod queue;
mod shares;

use super::*;
use crate::engine::{Command, Keep, Verb, Vote};
use crate::node::fixture::{about, at, lock, request, ttl};
use crate::node::node_error::NodeError;
use crate::node::script;
use crate::node::server_error::ServerErrorKind;
use crate::resp::decode;
use std::sync::Arc;

/// The number of every command here.
const NUMBER: u64 = 57;

fn encoded(request: &Request, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    encode(request, form, NUMBER, None, &mut out);
    out
}

/// The keys that a call of this script declares for each of the lock's keys, besides its counter.
fn declared(name: &[u8]) -> &'static [&'static str] {
    const OF_SHARES: &[&str] = &["queue", "holders", "called", "permits", "floor"];
    let table = [
        (script::CLAIM, &OF_SHARES[..1]),
        (script::RELEASE, &OF_SHARES[..1]),
        (script::GIVE, &OF_SHARES[..1]),
        (script::RELEASE_READER, &OF_SHARES[..2]),
        (script::RELEASE_SHARED, &OF_SHARES[..4]),
        (script::KEEP_SHARED, &OF_SHARES[1..4]),
        (script::SHARE, OF_SHARES),
        (script::QUEUE, OF_SHARES),
    ];
    let is = |script: &script::Script| {
        name == script.sha1.as_bytes() || name == script.source.as_bytes()
    };
    table
        .iter()
        .find(|(script, _)| is(script))
        .map_or(&[], |(_, suffixes)| suffixes)
}

/// The encoding of a command with these words, and with the keys that it declares.
fn words(words: &[&[u8]]) -> Vec<u8> {
    let mut words: Vec<_> = words.iter().map(|word| word.to_vec()).collect();
    if words[0].starts_with(b"EVAL") {
        let count: usize = std::str::from_utf8(&words[2])
            .expect("digits")
            .parse()
            .expect("digits");
        let is_lock = |key: &&Vec<u8>| !key.ends_with(COUNTER_SUFFIX);
        let locks: Vec<_> = words[3..3 + count]
            .iter()
            .filter(is_lock)
            .cloned()
            .collect();
        let with = |suffix: &&str| {
            let end = format!(":redlatch:{suffix}").into_bytes();
            locks
                .iter()
                .map(move |key| [&key[..], &end].concat())
                .collect::<Vec<_>>()
        };
        let more: Vec<_> = declared(&words[1]).iter().flat_map(with).collect();
        words[2] = (count + more.len()).to_string().into_bytes();
        words.splice(3 + count..3 + count, more);
    }
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(&word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[test]
fn each_verb_is_one_command() {
    let token = &[7; 20][..];
    let set: &[&[u8]] = &[b"SET", b"key", token, b"NX", b"PX", b"1000"];
    let release = script::RELEASE;
    let extend = script::KEEP;
    let sha1 = release.sha1.as_bytes();
    let source = release.source.as_bytes();
    let extend_sha1 = extend.sha1.as_bytes();
    let extend = extend.source.as_bytes();
    let table: [(Verb, Form, &[&[u8]]); 8] = [
        (Verb::Acquire, Form::Digest, set),
        (
            Verb::Restore,
            Form::Source,
            &[
                b"EVAL", extend, b"1", b"key", token, b"1000", b"restore", b"57",
            ],
        ),
        (
            Verb::Release,
            Form::Digest,
            &[b"EVALSHA", sha1, b"1", b"key", token, b"57"],
        ),
        (
            Verb::Release,
            Form::Source,
            &[b"EVAL", source, b"1", b"key", token, b"57"],
        ),
        (
            Verb::Undo,
            Form::Source,
            &[b"EVAL", source, b"1", b"key", token, b"57"],
        ),
        (
            Verb::Extend,
            Form::Digest,
            &[
                b"EVALSHA",
                extend_sha1,
                b"1",
                b"key",
                token,
                b"1000",
                b"",
                b"57",
            ],
        ),
        (
            Verb::Extend,
            Form::Source,
            &[b"EVAL", extend, b"1", b"key", token, b"1000", b"", b"57"],
        ),
        (Verb::Ping, Form::Digest, &[b"PING"]),
    ];
    for (verb, form, expected) in table {
        assert_eq!(
            encoded(&request(verb, 7, at(0)), form),
            words(expected),
            "{verb:?} {form:?}"
        );
    }
}

#[test]
fn a_release_that_keeps_the_lock_sends_the_rest_of_the_time() {
    let leave = script::GIVE;
    let token = &[7; 20][..];
    for verb in [Verb::Release, Verb::Undo] {
        let mut release = request(verb, 7, at(0));
        release.removal_mut().keep_for = Some(ttl(29_000));
        let expected: &[&[u8]] = &[
            b"EVAL",
            leave.source.as_bytes(),
            b"1",
            b"key",
            token,
            b"",
            b"29000",
            b"57",
        ];
        assert_eq!(encoded(&release, Form::Source), words(expected), "{verb:?}");
        for (reply, vote) in [(57, Vote::Granted), (-57, Vote::Refused)] {
            let found = read(&release, NUMBER, &Reply::Integer(reply), None);
            assert_eq!(found, Ok(NodeReply::of(vote)));
        }
    }
}

#[test]
fn a_shorter_extension_is_encoded_like_any_other() {
    let mut extension = request(Verb::Extend, 7, at(0));
    for (millis, end) in [
        (999, "$3\r\n999\r\n$0\r\n\r\n$2\r\n57\r\n"),
        (1_001, "$4\r\n1001\r\n$0\r\n\r\n$2\r\n57\r\n"),
    ] {
        let keep = Keep {
            lock: lock(7),
            ttl: ttl(millis),
            restores: false,
            reclaims: false,
            is_resumed: false,
        };
        extension.command = Command::Keep(keep);
        assert!(
            encoded(&extension, Form::Digest).ends_with(end.as_bytes()),
            "{millis}"
        );
    }
}

#[test]
fn keys_and_tokens_are_any_bytes() {
    let lock = LockId {
        key: b"\r\n*1\r\n\0\xff"[..].into(),
        ..lock(b'\n')
    };
    let acquire = about(Verb::Acquire, lock, at(0));
    let token = &[b'\n'; 20][..];
    let expected = words(&[b"SET", b"\r\n*1\r\n\0\xff", token, b"NX", b"PX", b"1000"]);
    assert_eq!(encoded(&acquire, Form::Digest), expected);
}

#[derive(Debug, PartialEq)]
enum Kind {
    Yes,
    No,
    Again,
    Failed,
    Nonsense,
}

fn kind(verb: Verb, bytes: &[u8]) -> Kind {
    match meaning(&request(verb, 7, at(0)), bytes) {
        Ok(reply)
            if reply
                == NodeReply {
                    is_new: verb == Verb::Acquire,
                    ..yes()
                } =>
        {
            Kind::Yes
        }
        Ok(reply) if reply == no() => Kind::No,
        Err(NoReply::UnknownScript) => Kind::Again,
        Err(NoReply::Failed(NodeError::Server(_))) => Kind::Failed,
        Err(NoReply::Nonsense(NodeError::UnexpectedReply(_))) => Kind::Nonsense,
        other => panic!("{other:?}"),
    }
}

fn meaning(request: &Request, bytes: impl AsRef<[u8]>) -> Result<NodeReply, NoReply> {
    let (reply, _) = decode(bytes.as_ref())
        .expect("RESP")
        .expect("a whole reply");
    read(request, NUMBER, &reply, None)
}

fn is_nonsense(request: &Request, bytes: &str) {
    let found = meaning(request, bytes);
    let is_it = matches!(found, Err(NoReply::Nonsense(_)));
    assert!(is_it, "{:?} {bytes:?}: {found:?}", request.verb());
}

fn yes() -> NodeReply {
    NodeReply::of(Vote::Granted)
}

fn no() -> NodeReply {
    NodeReply::of(Vote::Refused)
}

/// The grant of a lock whose counter is so large.
fn claimed(is_new: bool, counter: u64) -> NodeReply {
    NodeReply {
        is_new,
        counter: Some(counter),
        ..yes()
    }
}

#[test]
fn each_reply_has_the_expected_meaning_for_each_verb() {
    use Kind::{Again, Failed, No, Nonsense, Yes};
    // The reply, and its meaning to Acquire, to the requests that a script answers with yes or no,
    // and to Ping.
    let table: [(&[u8], [Kind; 3]); 27] = [
        (b"+OK\r\n", [Yes, Nonsense, Nonsense]),
        (b"+PONG\r\n", [Nonsense, Nonsense, Yes]),
        (b"+QUEUED\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"$2\r\nOK\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"$4\r\nPONG\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"$-1\r\n", [No, Nonsense, Nonsense]),
        (b"_\r\n", [No, Nonsense, Nonsense]),
        (b"*-1\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"*0\r\n", [Nonsense, Nonsense, Nonsense]),
        (b":57\r\n", [Nonsense, Yes, Nonsense]),
        (b":-57\r\n", [Nonsense, No, Nonsense]),
        (b":1\r\n", [Nonsense, Nonsense, Nonsense]),
        (b":0\r\n", [Nonsense, Nonsense, Nonsense]),
        (b":56\r\n", [Nonsense, Nonsense, Nonsense]),
        (b":-58\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"*2\r\n:57\r\n:1\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"#t\r\n", [Nonsense, Nonsense, Nonsense]),
        (b",1\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"(1\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"%0\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"~0\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"=6\r\ntxt:OK\r\n", [Nonsense, Nonsense, Nonsense]),
        (b"-NOSCRIPT No matching script.\r\n", [Again, Again, Again]),
        (b"-WRONGTYPE Operation against a key\r\n", [No, No, No]),
        (b"-LOADING\r\n", [Failed, Failed, Failed]),
        (b"-\r\n", [Failed, Failed, Failed]),
        (b"!8\r\nERR what\r\n", [Failed, Failed, Failed]),
    ];
    for (bytes, [acquire, script, ping]) in table {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(kind(Verb::Acquire, bytes), acquire, "{text:?}");
        for verb in [Verb::Extend, Verb::Release, Verb::Undo, Verb::Restore] {
            assert_eq!(kind(verb, bytes), script, "{verb:?} {text:?}");
        }
        assert_eq!(kind(Verb::Ping, bytes), ping, "{text:?}");
    }
}

#[test]
fn no_description_of_a_reply_shows_the_secret() {
    for bytes in [
        &b"+pass\r\n"[..],
        b"$4\r\npass\r\n",
        b"=8\r\ntxt:pass\r\n",
        b"-ERR pass\r\n",
    ] {
        let (reply, _) = decode(bytes).expect("RESP").expect("a whole reply");
        let text = describe(&reply, Some(b"pass"));
        assert!(
            text.contains("not shown") && !text.contains("pass"),
            "{text}"
        );
    }
    for bytes in [
        &b"+p4ss\r\n"[..],
        b"$4\r\np4ss\r\n",
        b"=8\r\ntxt:p4ss\r\n",
        b"-ERR p4ss\r\n",
    ] {
        let (reply, _) = decode(bytes).expect("RESP").expect("a whole reply");
        let text = describe(&reply, Some(b"p4ss"));
        assert!(text.contains("***") && !text.contains("p4ss"), "{text}");
    }
}

#[test]
fn a_description_of_a_reply_escapes_once_and_is_quoted() {
    let table: [(&[u8], &str); 4] = [
        (b"+a\x1b\"b\\\r\n", r#"the status "a\u{1b}\"b\\""#),
        (b"$3\r\na\nb\r\n", r#"the string "a\nb""#),
        (
            "=7\r\ntxt:\u{202e}\r\n".as_bytes(),
            r#"the text "\u{202e}""#,
        ),
        (b"-a\tb\r\n", r#"the error "a\tb""#),
    ];
    for (bytes, expected) in table {
        let (reply, _) = decode(bytes).expect("RESP").expect("a whole reply");
        assert_eq!(describe(&reply, None), expected);
    }
}

#[test]
fn only_scripts_that_a_node_has_run_are_sent_by_digest() {
    let mut known = KnownScripts::default();
    let form = |known: &KnownScripts, verb| {
        known
            .clone()
            .form(at(0), &request(verb, 7, at(0)).into(), false)
    };
    for verb in [Verb::Extend, Verb::Undo] {
        assert_eq!(form(&known, verb), Form::Source);
        known.learn(&request(verb, 7, at(0)).into(), Form::Source, at(0));
    }
    for verb in [Verb::Extend, Verb::Release, Verb::Undo, Verb::Ping] {
        assert_eq!(form(&known, verb), Form::Digest);
    }
    assert_eq!(form(&known, Verb::Handoff), Form::Source);
}
