//! How the commands are called, and which replies they accept.

use super::*;
use crate::engine::{CustomCommand, Token, Vote};
use crate::inspect::KeySnapshot;
use crate::node::command::SHARED;
use crate::node::script::{REMOVE, SCAN};
use crate::resp::decode;
use std::sync::Arc;

/// The number of every command here.
const NUMBER: i64 = 57;

/// The keys and the arguments.
fn call(command: &dyn CustomCommand) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let owned = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect();
    let mut called = None;
    command.call(&mut |keys, arguments| called = Some((owned(keys), owned(arguments))));
    called.expect("it calls its script")
}

fn words<const N: usize>(words: [&str; N]) -> Vec<Vec<u8>> {
    words.map(|word| word.as_bytes().to_vec()).into()
}

fn read<T: Clone + 'static>(command: &dyn CustomCommand, bytes: &str) -> Option<(Vote, T)> {
    let (reply, _) = decode(bytes.as_bytes())
        .expect("RESP")
        .expect("a whole reply");
    let (vote, said) = command.read(NUMBER, &reply)?.expect("it is about no vote");
    Some((vote, said.get::<T>().expect("what it says").clone()))
}

fn listing(cursor: u64, registers: bool) -> Listing {
    let pattern = Arc::from(&b"job:*"[..]);
    let tag = Arc::default();
    Listing {
        pattern,
        cursor,
        count: 500,
        registers,
        tag,
    }
}

fn page(bytes: &str) -> Option<KeyPage> {
    read(&listing(0, false), bytes).map(|(_, page)| page)
}

fn snapshot(bytes: &str) -> Option<KeySnapshot> {
    read(&Look::new(Arc::from(&b"key"[..])), bytes).map(|(_, seen)| seen)
}

#[test]
fn each_command_has_its_script() {
    let key = Arc::from(&b"key"[..]);
    let seen = Arc::from([]);
    let look = Look::new(Arc::clone(&key));
    let commands: [&dyn CustomCommand; 3] =
        [&ForcedRemoval { key, seen }, &look, &listing(0, true)];
    assert_eq!(commands.map(CustomCommand::script), [REMOVE, INSPECT, SCAN]);
}

#[test]
fn a_forced_removal_sends_the_values_that_were_read() {
    let seen = Arc::from([b"one".to_vec(), b"two".to_vec()]);
    let removal = ForcedRemoval {
        key: Arc::from(&b"key"[..]),
        seen,
    };
    let keys = [
        "key",
        "key:redlatch:queue",
        "key:redlatch:holders",
        "key:redlatch:called",
        "key:redlatch:permits",
    ];
    assert_eq!(call(&removal), (words(keys), words(["one", "two"])));
    assert_eq!(read(&removal, ":57\r\n"), Some((Vote::Granted, true)));
    assert_eq!(read(&removal, ":-57\r\n"), Some((Vote::Refused, false)));
    for bytes in [":56\r\n", "+OK\r\n", "*1\r\n:57\r\n", "_\r\n"] {
        assert_eq!(read::<bool>(&removal, bytes), None, "{bytes}");
    }
}

#[test]
fn a_scan_sends_the_cursor_the_pattern_the_count_and_the_kind() {
    for (registers, kind) in [(false, "locks"), (true, "registers")] {
        let arguments = words(["18446744073709551615", "job:*", "500", kind]);
        assert_eq!(call(&listing(u64::MAX, registers)), (Vec::new(), arguments));
    }
}

#[test]
fn a_page_has_keys_in_parts_or_none_if_they_do_not_fit() {
    let of = |next, keys: Option<&[&str]>| {
        let keys = keys.map(|keys| keys.iter().map(|key| key.as_bytes().to_vec()).collect());
        Some(KeyPage { next, keys })
    };
    let parts = "*3\r\n:57\r\n$2\r\n48\r\n*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$1\r\nc\r\n";
    assert_eq!(page(parts), of(48, Some(&["a", "b", "c"])));
    assert_eq!(page("*3\r\n:57\r\n$1\r\n0\r\n*0\r\n"), of(0, Some(&[])));
    let last = format!("*3\r\n:57\r\n$20\r\n{}\r\n_\r\n", u64::MAX);
    assert_eq!(page(&last), of(u64::MAX, None));
}

#[test]
fn no_other_reply_is_a_page() {
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
        assert_eq!(page(bytes), None, "{bytes:?}");
    }
}

#[test]
fn debug_output_of_a_snapshot_does_not_show_the_token() {
    let bytes = "*7\r\n:57\r\n$20\r\nGGGGGGGGGGGGGGGGGGGG\r\n:1\r\n*0\r\n*0\r\n:0\r\n:0\r\n";
    let seen = snapshot(bytes).expect("a snapshot");
    assert_eq!(seen.left, 1);
    let text = format!("{seen:?}");
    assert!(!text.contains("71, 71") && !text.contains("GG"), "{text}");
}

#[test]
fn no_other_reply_is_a_snapshot() {
    for bytes in [
        "*7\r\n:57\r\n:1\r\n:1\r\n*0\r\n*0\r\n:0\r\n:0\r\n",
        "*7\r\n:57\r\n$1\r\nx\r\n$1\r\n5\r\n*0\r\n*0\r\n:0\r\n:0\r\n",
        "*7\r\n:57\r\n$1\r\nx\r\n:5\r\n*0\r\n*0\r\n:-1\r\n:0\r\n",
        "*7\r\n:57\r\n$1\r\nx\r\n:5\r\n*0\r\n*0\r\n:0\r\n$1\r\n0\r\n",
        "*5\r\n:57\r\n$1\r\nx\r\n:5\r\n*0\r\n*0\r\n",
        "*3\r\n:57\r\n$1\r\nx\r\n:5\r\n",
        "*7\r\n:57\r\n$1\r\nx\r\n:5\r\n:0\r\n*0\r\n:0\r\n:0\r\n",
        "*7\r\n:57\r\n$1\r\nx\r\n:5\r\n*1\r\n$1\r\nx\r\n*0\r\n:0\r\n:0\r\n",
        ":57\r\n",
        ":-57\r\n",
        "*7\r\n:56\r\n$1\r\nx\r\n:5\r\n*0\r\n*0\r\n:0\r\n:0\r\n",
    ] {
        assert_eq!(snapshot(bytes), None, "{bytes:?}");
    }
}

#[test]
fn a_snapshot_says_for_how_long_the_grants_of_the_node_do_not_count() {
    let look = Look::new(Arc::from(&b"key"[..]));
    let left = Duration::from_secs(9);
    let seen = KeySnapshot::default();
    let said = look.in_quarantine(Said::new(seen), left);
    assert_eq!(
        said.get::<KeySnapshot>().expect("a snapshot").quarantine,
        Some(left)
    );
}

#[test]
fn a_snapshot_has_the_holders_and_what_waiters_want() {
    let list = |waiters: &str, holders: &str| {
        format!("*7\r\n:57\r\n$15\r\nredlatch:shared\r\n:90\r\n{waiters}{holders}:0\r\n:300\r\n")
    };
    let name = "W".repeat(Token::LEN);
    let waiter = |lease: &str| format!("$20\r\n{name}\r\n${}\r\n{lease}\r\n", lease.len());
    let wishes = ["12", "13s0", "14s1024", "15s", "16sx", "s4", "17s-1"];
    let owners = ["me", "me", "s5", "", "me", "me", "me"];
    let leases = wishes
        .iter()
        .zip(owners)
        .map(|(wish, owner)| format!("{wish} 9 9 c {owner}"));
    let more = ["18s4 9 9 c", "19s4 9 9  ", "", "22s4s4 9 9 c me"].map(str::to_owned);
    let leases: Vec<String> = leases.chain(more).collect();
    // Each list comes in parts.
    let part = |leases: &[String]| -> String {
        let waiters: String = leases.iter().map(|lease| waiter(lease)).collect();
        format!("*{}\r\n{waiters}", 2 * leases.len())
    };
    let waiters = format!("*3\r\n{}{}*0\r\n", part(&leases[..4]), part(&leases[4..]));
    let holders = "*2\r\n*2\r\n$3\r\n:ab\r\n:80\r\n*2\r\n$7\r\ngarbage\r\n:90\r\n";
    let seen = snapshot(&list(&waiters, holders)).expect("a snapshot");
    assert_eq!((seen.value.as_deref(), seen.left), (Some(SHARED), 90));
    assert_eq!(
        (seen.is_string, seen.waiter_count, seen.holder_count),
        (true, 0, 300)
    );
    let found: Vec<_> = seen
        .waiters
        .iter()
        .map(|it| (it.since, it.permits, it.owner.as_slice()))
        .collect();
    let expected: [(u64, Option<u32>, &[u8]); 4] = [
        (12, None, b"me"),
        (13, Some(0), b"me"),
        (14, Some(1_024), b"s5"),
        (19, Some(4), b""),
    ];
    assert_eq!(found, expected);
    let found: Vec<_> = seen
        .holders
        .iter()
        .map(|it| (&it.member[..], it.left))
        .collect();
    assert_eq!(found, [(&b":ab"[..], 80), (b"garbage", 90)]);
    assert!(
        !format!("{:?}", seen.holders).contains("97"),
        "a value could release the share"
    );

    for holders in [
        "*1\r\n*1\r\n$3\r\n:ab\r\n",
        "*1\r\n*3\r\n$3\r\n:ab\r\n:80\r\n$1\r\n:\r\n",
        "*1\r\n*2\r\n:80\r\n$3\r\n:ab\r\n",
        "*1\r\n*2\r\n$3\r\n:ab\r\n$2\r\n80\r\n",
        "*1\r\n*2\r\n_\r\n:80\r\n",
        // No parts.
        "*2\r\n$3\r\n:ab\r\n:80\r\n",
        "_\r\n",
        ":0\r\n",
        "",
    ] {
        let bytes = if holders.is_empty() {
            list("*0\r\n", "").replace("*7", "*6")
        } else {
            list("*0\r\n", holders)
        };
        assert!(snapshot(&bytes).is_none(), "{bytes}");
    }
}

#[test]
fn a_snapshot_has_the_waiters_of_clients() {
    let name = "W".repeat(Token::LEN);
    let list = format!(
        "*7\r\n:57\r\n_\r\n:-2\r\n*2\r\n*4\r\n$20\r\n{name}\r\n$14\r\n12 100 9 c m x\r\n$5\r\n\
         other\r\n$11\r\n13 100 9 me\r\n*2\r\n$20\r\n{name}\r\n\
         $10\r\n13 100 9  \r\n*0\r\n:200\r\n:0\r\n"
    );
    let snapshot = snapshot(&list).expect("a snapshot");
    let waiters = snapshot
        .waiters
        .iter()
        .map(|it| (it.name, it.since, &it.owner[..]));
    assert_eq!(snapshot.waiter_count, 200);
    let token = Token::new([b'W'; Token::LEN]);
    assert_eq!(
        waiters.collect::<Vec<_>>(),
        [(token, 12, &b"m x"[..]), (token, 13, b"")]
    );
}

#[test]
fn every_script_says_why_it_may_arrive_late() {
    for file in [
        include_str!("inspect.lua"),
        include_str!("scan.lua"),
        include_str!("remove.lua"),
    ] {
        assert!(
            file.lines()
                .any(|line| line.starts_with("-- Late, or once more, as ")),
            "{file}"
        );
    }
}
