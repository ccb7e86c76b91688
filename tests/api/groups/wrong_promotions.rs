//! Promotions of a replica that lacks a lock which counted, each with all that might make it look
//! right: nothing is proven, nobody is granted the lock while it is held, and new locks count when
//! the quarantine is over.

use std::thread;

use redlatch::LockGuard;
use redlatch::status::GroupStatus;
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, value};
use support::redis::Server;
use support::sentinel::{NAME, Sentinel, SentinelGroup, field, replicated};

use super::proofs::{TTL, client, has_all, promote, run_for_long, status, url};
use super::{adopt_for, take};

/// A lock at a group with this URL that is not extended: one replica acknowledges it.
#[track_caller]
fn lock_at(url: &str) -> LockGuard {
    let lost = client(url).request("kept").ttl(TTL).try_lock_for(LIMIT);
    lost.unwrap().expect("it is free")
}

/// The lock `kept` is granted when it is not held any more, and others are too.
#[track_caller]
fn expect_held_by_one(url: &str, lost: &LockGuard) -> GroupStatus {
    let other = client(url);
    let mut got = None;
    assert!(eventually(3 * LIMIT, || {
        got = other.try_lock("kept", TTL).ok().flatten();
        got.is_some()
    }));
    assert!(lost.ensure_held().is_err(), "two holders");
    drop(take(&other, TTL));
    status(&other)
}

/// The same where the promoted master has not got the lock.
#[track_caller]
fn expect_unproven(url: &str, lost: &LockGuard) {
    let group = expect_held_by_one(url, lost);
    assert!(!group.is_proven && group.age.is_some(), "{group:?}");
}

/// It is stopped, and cannot connect again: it gets nothing from now on.
#[track_caller]
fn cut_off(replica: &Server, master: &Server) {
    replica.pause();
    master.command(&["CLIENT", "KILL", "TYPE", "replica"]);
}

/// The other replica has the lock, and the promoted one has not.
#[test]
fn a_server_that_lags_is_promoted_without_proof_and_gives_nothing_away() {
    let mut servers = replicated(2);
    adopt_for(&servers[0], "replicas=2");
    run_for_long(&[&servers[0], &servers[1], &servers[2]]);
    cut_off(&servers[1], &servers[0]);
    let lost = lock_at(&url(&servers[0]));
    servers[0].kill();
    servers[1].resume();
    promote(&servers[1], &servers[2]);
    expect_unproven(&url(&servers[1]), &lost);
}

/// Sentinels choose by `replica-priority` first, and by how far a replica has come only then.
#[test]
fn a_server_that_lags_is_chosen_by_sentinels_for_its_priority_and_gives_nothing_away() {
    let mut group = SentinelGroup::start(2);
    adopt_for(&group.servers[0], "replicas=2");
    group.servers[1].command(&["CONFIG", "SET", "replica-priority", "1"]);
    let knows_priority = |sentinel: &Sentinel| {
        let replicas = sentinel.command(&["SENTINEL", "REPLICAS", NAME]);
        let Value::Array(replicas) = replicas else {
            return false;
        };
        let of_one = |it: &Value| field(it, "slave-priority").as_deref() == Some("1");
        replicas.iter().any(of_one)
    };
    assert!(eventually(2 * LIMIT, || group
        .sentinels
        .iter()
        .all(knows_priority)));
    run_for_long(&group.servers.iter().collect::<Vec<_>>());
    cut_off(&group.servers[1], &group.servers[0]);
    let lost = lock_at(&format!("{}?replicas=2", group.url()));
    group.servers[0].kill();
    group.servers[1].resume();
    assert!(eventually(3 * LIMIT, || group.master() != 0));
    assert_eq!(
        group.master(),
        1,
        "the Sentinels have not chosen by priority"
    );
    assert_eq!(value(&group.servers[1], "kept"), None);
    expect_unproven(&format!("{}?replicas=2", group.url()), &lost);
}

/// Its marker names the reign before, and its data is older.
#[test]
fn a_replica_that_restarts_from_an_old_copy_is_promoted_without_proof() {
    let mut servers = replicated(2);
    adopt_for(&servers[0], "replicas=2");
    drop(take(&client(&url(&servers[0])), TTL));
    run_for_long(&[&servers[0], &servers[2]]);
    assert!(eventually(LIMIT, || has_all(&servers[1], &servers[0])));
    servers[1].command(&["SAVE"]);
    let lost = lock_at(&url(&servers[0]));
    assert!(eventually(LIMIT, || value(&servers[1], "kept").is_some()));
    servers[1].kill();
    servers[0].kill();
    servers[1].restart();
    assert_eq!(value(&servers[1], "kept"), None);
    promote(&servers[1], &servers[2]);
    expect_unproven(&url(&servers[1]), &lost);
}

fn shows(server: &Server, sign: &str) -> bool {
    let text = server.command(&["INFO"]);
    text.field(sign).is_some_and(|it| it == "1")
}

/// How often a server has logged these words.
fn count(server: &Server, words: &str) -> usize {
    server.log().matches(words).count()
}

/// How a replica loads, in Valkey 9, that removes its own data before it has got the other.
const EMPTIES_FIRST: &str = "flush-before-load";

/// Has a replica acknowledge a lock, and then lose its master while that sends it a whole copy,
/// which it loads in this way, and logs with these words. The other replica is behind, so both are
/// continued. `false` if the servers know no such way.
#[track_caller]
fn promote_in_a_copy(load: &str, sign: &str) -> bool {
    let mut servers = replicated(2);
    let set = |server: &Server, name, value| server.command(&["CONFIG", "SET", name, value]);
    if set(&servers[1], "repl-diskless-load", load) != Value::ok() {
        return false;
    }
    set(&servers[0], "repl-diskless-sync", "yes");
    set(&servers[0], "rdbcompression", "no");
    set(&servers[0], "repl-backlog-size", "16384");
    for number in 0..500 {
        let name = format!("others:{number}");
        servers[0].command(&["SET", &name, &"x".repeat(1000)]);
    }
    adopt_for(&servers[0], "replicas=2");
    run_for_long(&servers.iter().collect::<Vec<_>>());
    cut_off(&servers[2], &servers[0]);
    let lost = lock_at(&url(&servers[0]));
    assert!(
        value(&servers[1], "kept").is_some(),
        "{load}: it has acknowledged that"
    );
    // A link that leads nowhere, and more than the master keeps for who comes back.
    servers[1].command(&["REPLICAOF", "127.0.0.1", "1"]);
    servers[0].command(&["SET", "others", &"x".repeat(100_000)]);
    // Microseconds for each key: the copy takes seconds.
    set(&servers[0], "rdb-key-save-delay", "10000");
    let before = count(&servers[1], sign);
    let port = servers[0].client_port().to_string();
    servers[1].command(&["REPLICAOF", "127.0.0.1", &port]);
    let has_begun = || count(&servers[1], sign) > before;
    assert!(eventually(LIMIT, has_begun), "{load}: no copy begins");
    servers[0].kill();
    let signs = ["loading", "async_loading", "master_sync_in_progress"];
    let is_over = || !signs.iter().any(|sign| shows(&servers[1], sign));
    assert!(eventually(LIMIT, is_over), "{load}: the copy goes on");
    let has_lock = value(&servers[1], "kept").is_some();
    servers[2].resume();
    promote(&servers[1], &servers[2]);
    let group = expect_held_by_one(&url(&servers[1]), &lost);
    assert_eq!(has_lock, load != EMPTIES_FIRST);
    assert!(has_lock || !group.is_proven, "{load}: {group:?}");
    true
}

/// A server of Valkey 9 may be empty then, and name the reign before even so, until another one
/// follows it.
#[test]
fn a_replica_whose_copy_was_broken_off_is_promoted_without_proof_if_it_lacks_anything() {
    let known: Vec<bool> = thread::scope(|scope| {
        let ways = [
            ("disabled", "with EOF to disk"),
            ("swapdb", "Loading DB in memory"),
            (EMPTIES_FIRST, "Loading DB in memory"),
        ];
        let tries = ways.map(|(load, sign)| scope.spawn(move || promote_in_a_copy(load, sign)));
        tries.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(known[0]);
}
