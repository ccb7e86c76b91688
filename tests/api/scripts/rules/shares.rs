//! The rules of shares: readers and permits.

use redlatch_protocol::node::script::{QUEUE, RELEASE_SHARED, SHARE};
use support::cli::Value;
use support::redis::Server;
use support::servers::Servers;

use super::{ANN, Answer, BOB, CID, LONG, get, list, no, reserved, ttl, yes};

type Words = (&'static str, &'static str, &'static str);

/// As [`queue`], of a waiter for one of two permits.
#[track_caller]
fn queue_for_permit(server: &Server, waiter: &str, (number, failed, claim): Words) -> Answer {
    let entry = format!("12s2 {claim} 1500  owner");
    let answer = list(
        server,
        QUEUE,
        &["k"],
        &[waiter, number, failed, &entry, LONG],
    );
    (answer[0], answer[1], answer[2])
}

#[test]
fn a_waiter_for_a_permit_is_told_anew_when_the_lock_was_free_in_between() {
    let servers = Servers::start(1);
    let server = &servers[0];
    let share = |token, waiter| {
        list(
            server,
            SHARE,
            &["k"],
            &[token, LONG, "2", "", waiter, "0", "0"],
        );
    };
    let called_for = || ttl(server, "k:redlatch:called");
    share("failed", "");
    assert_eq!(
        queue_for_permit(server, ANN, ("0", "none", "2000")),
        (1, 0, 1)
    );
    assert!(called_for() > 0);
    // Bob withdraws the only permit. He comes first, because Ann has taken another number.
    assert_eq!(
        queue_for_permit(server, BOB, ("0", "failed", "2000")),
        (2, 1, 0)
    );
    assert_eq!(
        queue_for_permit(server, ANN, ("3", "none", "40000")),
        (3, 1, 0)
    );
    assert_eq!(get(server, "k"), reserved(BOB, 1_000));
    share("token", BOB);
    assert!(called_for() > 30_000, "what she was told before is over");
}

#[test]
fn a_share_that_is_given_back_calls_all_that_can_have_one_and_no_others() {
    let servers = Servers::start(1);
    let server = &servers[0];
    let called = || server.command(&["ZCARD", "k:redlatch:called"]);
    for token in ["one", "other", "third"] {
        list(server, SHARE, &["k"], &[token, LONG, "3", "", "", "0", "0"]);
    }
    // They want one of the first two permits.
    for (place, waiter) in (0..).zip([ANN, BOB, CID]) {
        assert_eq!(
            queue_for_permit(server, waiter, ("0", "none", "2000")).1,
            place
        );
    }
    no(server, RELEASE_SHARED, &["k"], &["none", "2", ANN, ""]);
    assert_eq!(
        called(),
        Value::Integer(0),
        "no permit is free for the next"
    );
    // Another share has expired.
    server.command(&["ZADD", "k:redlatch:holders", "1", "1:other"]);
    yes(server, RELEASE_SHARED, &["k"], &["one", "3", "", ""]);
    assert_eq!(called(), Value::Integer(2));
}
