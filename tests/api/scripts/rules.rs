//! What the scripts do with a lock on a node, step by step on a real server: the rules of the
//! queue, of fencing counters and of single keys, in the words in which clients call them.

mod shares;

use redlatch_protocol::node::script::{CLAIM, FENCE, GIVE, KEEP, QUEUE, RELEASE, REMOVE, Script};
use support::cli::Value;
use support::eventually;
use support::locks::LIMIT;
use support::redis::Server;
use support::servers::Servers;

/// Names of waiters have 20 bytes.
const ANN: &str = "ann.................";
const BOB: &str = "bob.................";
const CID: &str = "cid.................";
const LONG: &str = "90000";

type Answer = (i64, i64, i64);

/// One server, with a lock of `token` on `k`.
fn held() -> Servers {
    let servers = Servers::start(1);
    set(&servers[0], "k", "token");
    servers
}

fn set(server: &Server, key: &str, value: &str) {
    assert_eq!(
        server.command(&["SET", key, value, "PX", LONG]),
        Value::ok()
    );
}

fn get(server: &Server, key: &str) -> String {
    match server.command(&["EXISTS", key]) {
        Value::Integer(0) => String::new(),
        _ => server.command(&["GET", key]).text().to_owned(),
    }
}

fn ttl(server: &Server, key: &str) -> i64 {
    let Value::Integer(ttl) = server.command(&["PTTL", key]) else {
        panic!("no number")
    };
    ttl
}

/// The answer of a script, which gets the number 7.
fn run(server: &Server, script: Script, keys: &[&str], words: &[&str]) -> Value {
    let count = keys.len().to_string();
    server.command(&[&["EVAL", script.source, &count], keys, words, &["7"]].concat())
}

#[track_caller]
fn yes(server: &Server, script: Script, keys: &[&str], words: &[&str]) {
    assert_eq!(run(server, script, keys, words), Value::Integer(7));
}

#[track_caller]
fn no(server: &Server, script: Script, keys: &[&str], words: &[&str]) {
    assert_eq!(run(server, script, keys, words), Value::Integer(-7));
}

/// The numbers in the answer of a script that says yes with a list.
#[track_caller]
fn list(server: &Server, script: Script, keys: &[&str], words: &[&str]) -> Vec<i64> {
    let Value::Array(list) = run(server, script, keys, words) else {
        panic!("no list")
    };
    let number = |value: &Value| match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    };
    assert_eq!(number(&list[0]), Some(7));
    list[1..].iter().filter_map(number).collect()
}

/// A waiter joins, or renews its entry, and has this many milliseconds for a claim. Its number, its
/// place, and whether the lock is reserved for it (1) and it was out of the queue (2).
#[track_caller]
fn queue(server: &Server, waiter: &str, number: &str, claim: &str) -> Answer {
    let entry = format!("12 {claim} 1500  owner");
    let answer = list(
        server,
        QUEUE,
        &["k"],
        &[waiter, number, "failed", &entry, LONG],
    );
    (answer[0], answer[1], answer[2])
}

/// The words of a claim in the turn of a waiter. A counter begins at 5.
fn turn(waiter: &str, token: &str) -> [String; 7] {
    let reserved = format!("redlatch:reserved:{waiter}");
    ["1", &reserved, token, LONG, "5", "10", waiter].map(str::to_owned)
}

fn reserved(waiter: &str, grace: u32) -> String {
    format!("redlatch:reserved:{waiter}{grace}")
}

#[test]
fn a_key_without_a_ttl_gets_none_by_an_extension() {
    let servers = held();
    let server = &servers[0];
    yes(server, KEEP, &["k"], &["token", "100000", ""]);
    assert!(ttl(server, "k") > 90_000);
    server.command(&["PERSIST", "k"]);
    yes(server, KEEP, &["k"], &["token", LONG, ""]);
    assert_eq!(ttl(server, "k"), -1);
    no(server, KEEP, &["k"], &["other", LONG, ""]);
}

#[test]
fn keys_are_extended_all_or_none_and_none_of_another_client_is_restored() {
    let servers = held();
    let server = &servers[0];
    let keep = |how| ["token", "100000", how];
    no(server, KEEP, &["k", "l"], &keep(""));
    assert_eq!(get(server, "l"), "", "an extension takes no key");
    set(server, "l", "other");
    no(server, KEEP, &["k", "l"], &keep(""));
    no(server, KEEP, &["k", "l"], &keep("restore"));
    assert_eq!(get(server, "l"), "other");
    assert!(ttl(server, "k") <= 90_000, "the other key is as it was");
    server.command(&["DEL", "l"]);
    yes(server, KEEP, &["k", "l"], &keep("restore"));
    assert_eq!(get(server, "l"), "token");
    assert!(ttl(server, "k") > 90_000 && ttl(server, "l") > 90_000);
}

#[test]
fn a_handoff_says_whether_there_was_a_key_and_takes_the_waiter_out_of_the_queue() {
    let servers = held();
    let server = &servers[0];
    assert_eq!(queue(server, ANN, "0", "100"), (1, 0, 0));
    assert_eq!(
        list(
            server,
            CLAIM,
            &["k"],
            &["1", "token", "next", LONG, "0", "0", ANN]
        ),
        [0, 0, 0]
    );
    assert_eq!(get(server, "k"), "next");
    assert_eq!(
        server.command(&["EXISTS", "k:redlatch:queue"]),
        Value::Integer(0)
    );
    no(
        server,
        CLAIM,
        &["k"],
        &["1", "token", "third", LONG, "0", "0", ""],
    );
    server.command(&["DEL", "k"]);
    assert_eq!(
        list(
            server,
            CLAIM,
            &["k"],
            &["1", "next", "third", LONG, "0", "0", ""]
        ),
        [1, 0, 0]
    );
}

#[test]
fn counters_begin_at_the_wall_clock_grow_and_keep_their_ttl() {
    let servers = Servers::start(1);
    let server = &servers[0];
    let keys = ["k", "k:redlatch:fence"];
    let claim = |token: &str, clock: &str, life: &str| {
        list(
            server,
            CLAIM,
            &keys,
            &["1", "", token, LONG, clock, life, ""],
        )
    };
    assert_eq!(claim("a", "500", "80000"), [1, 500, 0]);
    let again = ["1", "", "b", LONG, "900", "80000", ""];
    no(server, CLAIM, &keys, &again);
    yes(server, RELEASE, &["k"], &["a"]);
    assert_eq!(claim("b", "1", "10"), [1, 501, 0]);
    assert!(
        ttl(server, "k:redlatch:fence") > 10_000,
        "it is never shortened"
    );
    // Confirmed for the holder only, and not over a larger one.
    yes(server, FENCE, &keys, &["1", "b", "600", "80000"]);
    assert_eq!(get(server, "k:redlatch:fence"), "600");
    no(server, FENCE, &keys, &["1", "a", "700", "80000"]);
    no(server, FENCE, &keys, &["1", "b", "599", "80000"]);
    assert_eq!(get(server, "k:redlatch:fence"), "600");
    yes(server, RELEASE, &["k"], &["b"]);
    // 2^52 + 2^40: no counting gets there.
    set(server, "k:redlatch:fence", "4504699138998272");
    let refused = run(server, CLAIM, &keys, &["1", "", "c", LONG, "1", "10", ""]);
    assert!(refused.text().starts_with("FENCE"), "{refused:?}");
    assert_eq!(get(server, "k"), "");
    // In a handoff: was there a key?
    set(server, "k:redlatch:fence", "7");
    set(server, "k", "c");
    let handoff = ["1", "c", "d", LONG, "1", "10", ""];
    assert_eq!(list(server, CLAIM, &keys, &handoff), [0, 8, 0]);
    server.command(&["DEL", "k"]);
    let handoff = ["1", "d", "e", LONG, "1", "10", ""];
    assert_eq!(list(server, CLAIM, &keys, &handoff), [1, 9, 0]);
}

#[test]
fn waiters_have_numbers_and_a_release_reserves_the_lock_for_the_first() {
    let servers = held();
    let server = &servers[0];
    assert_eq!(queue(server, ANN, "0", "40000"), (1, 0, 0));
    assert_eq!(queue(server, BOB, "0", "40000"), (2, 1, 0));
    assert_eq!(queue(server, CID, "0", "40000"), (3, 2, 0));
    server.command(&["ZREM", "k:redlatch:queue", BOB]);
    assert_eq!(
        queue(server, BOB, "0", "40000"),
        (4, 2, 0),
        "above all, however many there are"
    );
    yes(server, RELEASE, &["k"], &["token"]);
    assert_eq!(get(server, "k"), reserved(ANN, 1_000));
    assert!((40_000..=41_000).contains(&ttl(server, "k")));
    no(server, RELEASE, &["k"], &["token"]);
    // Its turn, and nobody else's. It stays in the queue until the lock is released.
    no(
        server,
        CLAIM,
        &["k"],
        &turn(CID, "c").each_ref().map(String::as_str),
    );
    let claim = turn(ANN, "a");
    assert_eq!(
        list(server, CLAIM, &["k"], &claim.each_ref().map(String::as_str)),
        [1, 0, 1]
    );
    assert_eq!(
        (
            get(server, "k").as_str(),
            queue(server, BOB, "4", "40000").1
        ),
        ("a", 2)
    );
    no(server, GIVE, &["k"], &["other", BOB, ""]);
    assert_eq!(get(server, "k"), "a");
    yes(server, GIVE, &["k"], &["a", ANN, ""]);
    assert_eq!(get(server, "k"), reserved(CID, 0));
}

#[test]
fn a_free_lock_is_taken_in_turn_by_the_first_only() {
    let servers = Servers::start(1);
    let server = &servers[0];
    assert_eq!(queue(server, ANN, "0", "40000"), (1, 0, 1));
    assert_eq!(queue(server, BOB, "0", "40000"), (2, 1, 0));
    assert_eq!(
        get(server, "k"),
        reserved(ANN, 1_000),
        "kept for longer, since another waits"
    );
    server.command(&["DEL", "k"]);
    no(
        server,
        CLAIM,
        &["k"],
        &turn(BOB, "b").each_ref().map(String::as_str),
    );
    let claim = |waiter| turn(waiter, "b");
    let keys = ["k", "k:redlatch:fence"];
    no(
        server,
        CLAIM,
        &keys,
        &claim(BOB).each_ref().map(String::as_str),
    );
    assert_eq!(
        list(
            server,
            CLAIM,
            &keys,
            &claim(ANN).each_ref().map(String::as_str)
        ),
        [1, 5, 1]
    );
    // An earlier waiter that comes late gets the reservation.
    yes(server, GIVE, &["k"], &["b", ANN, ""]);
    assert_eq!(get(server, "k"), reserved(BOB, 0));
    assert_eq!(queue(server, ANN, "1", "40000"), (1, 0, 3));
    assert_eq!(get(server, "k"), reserved(ANN, 1_000));
    // Who leaves passes it on.
    no(server, GIVE, &["k"], &["failed", ANN, ""]);
    assert_eq!(get(server, "k"), reserved(BOB, 0));
    // A lock that is held takes its place, and no other lock's.
    yes(server, KEEP, &["k"], &["b", LONG, "restore"]);
    no(server, KEEP, &["k"], &["c", LONG, "restore"]);
    assert_eq!(get(server, "k"), "b");
    // A reservation remembers no lock: who claims it takes a new one.
    set(server, "k", &reserved(BOB, 0));
    let claimed = list(
        server,
        CLAIM,
        &["k"],
        &claim(BOB).each_ref().map(String::as_str),
    );
    assert_eq!(claimed[0], 1);
}

#[test]
fn a_set_has_one_number_in_all_queues_and_is_the_first_in_each_when_it_takes_its_turn() {
    let servers = Servers::start(1);
    let server = &servers[0];
    set(server, "l", "token");
    let ask = |keys: &[&str], waiter, number, claim| {
        let entry = format!("12 {claim} 70000  owner");
        let answer = list(
            server,
            QUEUE,
            keys,
            &[waiter, number, "failed", &entry, LONG],
        );
        (answer[0], answer[1], answer[2])
    };
    let number = |key: &str| {
        let queue = format!("{key}:redlatch:queue");
        server.command(&["ZCOUNT", &queue, "2", "2"]) == Value::Integer(1)
    };
    let length = |key: &str| server.command(&["ZCARD", &format!("{key}:redlatch:queue")]);
    assert_eq!(ask(&["l"], BOB, "0", "40000"), (1, 0, 0));
    assert_eq!(
        ask(&["k", "l"], ANN, "0", "40000"),
        (2, 1, 8),
        "all but the second is reserved"
    );
    assert!(number("k") && number("l"));
    assert_eq!(get(server, "k"), reserved(ANN, 0));
    assert!(
        ttl(server, "k") > 60_000,
        "for as long as an entry in front"
    );
    server.command(&["PEXPIRE", "k", "50000"]);
    assert_eq!(ask(&["k", "l"], ANN, "2", "40000"), (2, 1, 8));
    assert!(ttl(server, "k") > 60_000, "renewed");
    assert_eq!(ask(&["k", "l"], CID, "0", "40000"), (3, 2, 0));
    no(server, GIVE, &["k", "l"], &["failed", CID, ""]);
    assert_eq!(
        (length("k"), length("l")),
        (Value::Integer(1), Value::Integer(2)),
        "it has left"
    );
    assert_eq!(ask(&["k"], CID, "0", "40000"), (3, 1, 0));
    let take = || {
        let [_, words @ ..] = turn(ANN, "a");
        let words = words.each_ref().map(String::as_str);
        run(server, CLAIM, &["k", "l"], &[&["2"], &words[..]].concat())
    };
    assert_eq!(take(), Value::Integer(-7), "it is held");
    yes(server, RELEASE, &["l"], &["token"]);
    assert_eq!(get(server, "l"), reserved(BOB, 1_000));
    assert_eq!(take(), Value::Integer(-7), "it is reserved for another");
    server.command(&["DEL", "l"]);
    assert_eq!(take(), Value::Integer(-7), "another is the first");
    no(server, GIVE, &["l"], &["failed", BOB, ""]);
    assert_eq!(ask(&["k", "l"], ANN, "2", "40000"), (2, 0, 1));
    assert!(ttl(server, "k") <= 41_000, "for as long as a claim");
    server.command(&["PEXPIRE", "k", "30000"]);
    assert_eq!(ask(&["k", "l"], ANN, "2", "40000"), (2, 0, 1));
    assert!(ttl(server, "k") <= 30_000, "not renewed");
    assert!(matches!(take(), Value::Array(_)));
    yes(server, GIVE, &["k", "l"], &["a", ANN, ""]);
    assert_eq!(
        (get(server, "k"), get(server, "l")),
        (reserved(CID, 0), String::new())
    );
    assert_eq!(
        (length("k"), length("l")),
        (Value::Integer(1), Value::Integer(0))
    );
}

#[test]
fn a_failed_try_is_withdrawn_and_a_waiter_whose_entry_has_expired_is_not_the_first() {
    let servers = held();
    let server = &servers[0];
    set(server, "k", "failed");
    assert_eq!(queue(server, ANN, "0", "40000"), (1, 0, 1));
    set(server, "k", "token");
    server.command(&["DEL", &format!("k:redlatch:lease:{ANN}")]);
    assert_eq!(queue(server, BOB, "0", "40000"), (2, 0, 0));
    yes(server, REMOVE, &["k"], &["other", "token"]);
    assert_eq!(get(server, "k"), reserved(BOB, 0));
}

/// It does not go round and round with a waiter that it can neither notify nor remove.
#[test]
fn a_release_on_a_server_that_refuses_writes_ends_with_the_error() {
    let servers = held();
    let server = &servers[0];
    assert_eq!(queue(server, ANN, "0", "40000"), (1, 0, 0));
    server.command(&["SET", &format!("k:redlatch:lease:{ANN}"), "", "PX", LONG]);
    assert_eq!(server.command(&["SLAVEOF", "127.0.0.1", "1"]), Value::ok());
    for (script, words) in [(RELEASE, &["token"][..]), (GIVE, &["token", ANN, ""])] {
        let answer = run(server, script, &["k"], words);
        let Value::Error(text) = &answer else {
            panic!("{answer:?}")
        };
        assert!(text.contains("READONLY"), "{text}");
    }
    assert_eq!(get(server, "k"), "token");
}

#[test]
fn waiters_whom_nobody_hears_are_skipped() {
    let servers = held();
    let server = &servers[0];
    for waiter in [ANN, BOB] {
        let entry = "12 40000 1500 redlatch:nobody owner";
        list(server, QUEUE, &["k"], &[waiter, "0", "failed", entry, LONG]);
    }
    assert_eq!(queue(server, CID, "0", "40000"), (3, 2, 0));
    yes(server, GIVE, &["k"], &["token", "", ""]);
    assert_eq!(get(server, "k"), reserved(CID, 0));
    assert_eq!(
        server.command(&["ZCARD", "k:redlatch:queue"]),
        Value::Integer(1)
    );
}

#[test]
fn a_waiter_that_does_not_claim_in_time_is_passed_over_and_put_back_when_it_asks() {
    let servers = held();
    let server = &servers[0];
    queue(server, ANN, "0", "50");
    queue(server, BOB, "0", "40000");
    yes(server, RELEASE, &["k"], &["token"]);
    assert_eq!(get(server, "k"), reserved(ANN, 1_000));
    assert!(
        eventually(LIMIT, || ttl(server, "k") <= 1_000),
        "its time is over"
    );
    assert_eq!(queue(server, BOB, "2", "40000"), (2, 0, 1));
    assert_eq!(get(server, "k"), reserved(BOB, 0));
    // It is put back, and is the first. When it misses that too, its own renewal passes it on.
    assert_eq!(queue(server, ANN, "1", "50"), (1, 0, 3));
    assert!(eventually(LIMIT, || ttl(server, "k") <= 1_000));
    assert_eq!(
        queue(server, ANN, "1", "50").2,
        2,
        "out, until it asks again"
    );
    assert_eq!(get(server, "k"), reserved(BOB, 0));
}

#[test]
fn a_lock_that_is_left_is_kept_for_the_first_waiter() {
    let servers = held();
    let server = &servers[0];
    queue(server, ANN, "0", "40000");
    no(server, GIVE, &["k"], &["other", "", "300"]);
    yes(server, GIVE, &["k"], &["token", "", "300"]);
    no(server, GIVE, &["k"], &["token", "", "90000"]);
    assert_eq!(get(server, "k"), "redlatch:left:1000:token");
    assert_eq!(
        queue(server, ANN, "1", "40000"),
        (1, 0, 0),
        "it is still taken"
    );
    assert!(eventually(LIMIT, || ttl(server, "k") <= 1_000));
    let try_lock = ["SET", "k", "poller", "NX", "PX", LONG];
    assert_ne!(server.command(&try_lock), Value::ok());
    assert_eq!(queue(server, ANN, "1", "40000"), (1, 0, 1));
}
