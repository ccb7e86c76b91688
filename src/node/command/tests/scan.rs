//! Scans: how they are encoded, and which replies they accept.

use super::{NUMBER, encoded, words};
use crate::engine::{Action, Verb};
use crate::node::command::{Form, Meaning, meaning};
use crate::node::fixture::{at, request};
use crate::node::report::KeyPage;
use crate::node::script;
use crate::resp::decode;
use std::sync::Arc;

fn read(bytes: &str) -> Meaning {
    let (reply, _) = decode(bytes.as_bytes()).expect("RESP").expect("a whole reply");
    meaning(&request(Verb::Scan, 7, at(0)), NUMBER, &reply, None)
}

fn page(next: u64, keys: Option<&[&str]>) -> Meaning {
    let keys = keys.map(|keys| keys.iter().map(|key| key.as_bytes().to_vec()).collect());
    Meaning::Listed(KeyPage { next, keys })
}

#[test]
fn a_scan_sends_the_cursor_the_pattern_the_count_and_the_kind() {
    let mut scan = request(Verb::Scan, 7, at(0));
    let pattern = Arc::from(&b"job:*"[..]);
    let (sha1, source) = (script::SCAN.sha1.as_bytes(), script::SCAN.source.as_bytes());
    for (form, verb, name, registers, kind) in [
        (Form::Digest, &b"EVALSHA"[..], sha1, false, &b"locks"[..]),
        (Form::Source, b"EVAL", source, true, b"registers"),
    ] {
        let pattern = Arc::clone(&pattern);
        scan.action = Action::Scan { pattern, cursor: u64::MAX, count: 500, registers };
        let expected: &[&[u8]] =
            &[verb, name, b"0", b"18446744073709551615", b"job:*", b"500", kind, b"57"];
        assert_eq!(encoded(&scan, form), words(expected));
    }
}

#[test]
fn a_page_has_keys_in_parts_or_none_if_they_do_not_fit() {
    let parts = "*3\r\n:57\r\n$2\r\n48\r\n*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$1\r\nc\r\n";
    assert_eq!(read(parts), page(48, Some(&["a", "b", "c"])));
    assert_eq!(read("*3\r\n:57\r\n$1\r\n0\r\n*0\r\n"), page(0, Some(&[])));
    let last = format!("*3\r\n:57\r\n$20\r\n{}\r\n_\r\n", u64::MAX);
    assert_eq!(read(&last), page(u64::MAX, None));
}

#[test]
fn anything_else_is_nonsense() {
    for bytes in [
        ":57\r\n",
        ":-57\r\n",
        "+OK\r\n",
        "*0\r\n",
        "*2\r\n:57\r\n$1\r\n0\r\n",
        "*3\r\n:56\r\n$1\r\n0\r\n*0\r\n", // another command's number
        "*4\r\n:57\r\n$1\r\n0\r\n*0\r\n*0\r\n", // too long
        "*3\r\n:57\r\n:0\r\n*0\r\n",      // no text
        "*3\r\n:57\r\n$0\r\n\r\n*0\r\n",  // no number
        "*3\r\n:57\r\n$2\r\n-1\r\n*0\r\n", // no cursor
        "*3\r\n:57\r\n$2\r\n+1\r\n*0\r\n", // a cursor that no server writes so
        "*3\r\n:57\r\n$20\r\n18446744073709551616\r\n*0\r\n", // too large
        "*3\r\n:57\r\n$1\r\n0\r\n$1\r\na\r\n", // no list
        "*3\r\n:57\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n", // not in parts
        "*3\r\n:57\r\n$1\r\n0\r\n*1\r\n*1\r\n:1\r\n", // no key
    ] {
        assert!(matches!(read(bytes), Meaning::Nonsense(_)), "{bytes:?}: {:?}", read(bytes));
    }
}
