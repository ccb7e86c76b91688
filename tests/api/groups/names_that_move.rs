//! `redis://…?failover=true`: a name that leads to the present master, here by a relay.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{Error, LockClient, NodeError};
use support::cli::Value;
use support::eventually;
use support::locks::{BRIEF, LIMIT, can_be_acquired, value};
use support::redis::Server;
use support::sentinel::{info, replicated};

use super::{BOUND, MAX_TTL, builder, take};

const TTL: Duration = Duration::from_secs(5);

/// Between two attempts on a lock that nobody may get: other tests run beside this one.
const PAUSE: Duration = Duration::from_millis(5);

fn client(server: &Server) -> LockClient {
    builder(&format!(
        "redis://127.0.0.1:{}?failover=true",
        server.port()
    ))
    .build()
    .unwrap()
}

/// The error of the only node.
fn problem(client: &LockClient) -> Option<NodeError> {
    match client.try_lock("other", TTL) {
        Err(Error::NoQuorum(error)) => match &error.reports()[0].answer {
            NodeAnswer::Failed(error) => Some(error.clone()),
            other => panic!("{other:?}"),
        },
        Ok(_) => None,
        Err(other) => panic!("{other:?}"),
    }
}

fn promote(server: &Server) {
    assert_eq!(server.command(&["REPLICAOF", "NO", "ONE"]), Value::ok());
}

/// The server becomes a replica, and has all that its master has.
fn follow(server: &Server, master: &Server) {
    let port = master.port().to_string();
    assert_eq!(
        server.command(&["REPLICAOF", "127.0.0.1", &port]),
        Value::ok()
    );
    let is_up = || info(server, "master_link_status") == "up";
    assert!(eventually(LIMIT, is_up));
}

/// The server loses its keys and its reign, as a replica does that is promoted too early.
fn lose_and_promote(servers: &[Server]) {
    promote(&servers[1]);
    assert_eq!(servers[1].command(&["FLUSHALL"]), Value::ok());
    follow(&servers[0], &servers[1]);
    promote(&servers[0]);
    assert_eq!(value(&servers[0], "orders"), None);
}

#[test]
fn the_first_client_of_a_group_waits_as_after_a_failover_and_the_next_one_need_not() {
    let servers = replicated(1);
    let first = client(&servers[0]);
    let Some(NodeError::Quarantined { left }) = problem(&first) else {
        panic!("it counts")
    };
    assert!(left <= MAX_TTL + BOUND && left > MAX_TTL, "{left:?}");
    let guard = take(&first, TTL);
    drop(guard);
    // It reads in the marker since when the reign is known.
    let guard = client(&servers[0])
        .try_lock("orders", TTL)
        .unwrap()
        .unwrap();
    guard.release().unwrap();
}

#[test]
fn a_failback_on_an_open_connection_is_seen_behind_the_vote() {
    let servers = replicated(1);
    let client = client(&servers[0]);
    drop(take(&client, TTL));
    assert!(eventually(LIMIT, || value(&servers[0], "orders").is_none()));
    // A to B, and back: the connection of the client stays open.
    let before = info(&servers[0], "master_replid");
    promote(&servers[1]);
    follow(&servers[0], &servers[1]);
    promote(&servers[0]);
    assert_ne!(info(&servers[0], "master_replid"), before);
    let problem = problem(&client);
    assert!(
        matches!(
            problem,
            Some(NodeError::ReignChanged | NodeError::Quarantined { .. })
        ),
        "{problem:?}"
    );
}

#[test]
fn a_kept_lock_is_reclaimed_after_a_promotion_that_lost_it_and_nobody_else_gets_it() {
    let servers = replicated(1);
    let holder = client(&servers[0]);
    let other = client(&servers[0]);
    let guard = holder
        .request("orders")
        .ttl(TTL)
        .keep_alive()
        .try_lock_for(LIMIT)
        .unwrap()
        .unwrap();
    lose_and_promote(&servers);
    let start = Instant::now();
    while start.elapsed() < 2 * MAX_TTL {
        guard.ensure_held().unwrap();
        assert!(!can_be_acquired(&other, "orders"));
        thread::sleep(PAUSE);
    }
    assert!(value(&servers[0], "orders").is_some(), "it is there again");
    guard.release().unwrap();
    drop(take(&other, TTL));
}

/// The other client may have had the lock after the first: only who holds a lock by its own clock
/// reclaims it.
#[test]
fn a_token_of_a_lock_that_has_ended_takes_nothing_in_the_quarantine_of_a_promotion() {
    let servers = replicated(1);
    let worker = client(&servers[0]);
    let token = take(&client(&servers[0]), BRIEF).into_token().unwrap();
    let guard = take(&client(&servers[0]), MAX_TTL);
    lose_and_promote(&servers);
    let start = Instant::now();
    while start.elapsed() < 2 * MAX_TTL {
        let resumed = worker.request("orders").ttl(TTL).resume(&token);
        assert!(
            resumed.is_err(),
            "the other client's lock is valid for another {:?}",
            guard.remaining()
        );
        thread::sleep(PAUSE);
    }
}

#[test]
fn a_replica_is_no_master() {
    let servers = replicated(1);
    let client = client(&servers[1]);
    assert!(eventually(LIMIT, || {
        problem(&client) == Some(NodeError::NoMaster("the server is a replica".to_owned()))
    }));
}

#[test]
fn the_documented_rights_suffice_and_each_is_needed() {
    let servers = replicated(2);
    let set_user = |rights: &[&str]| {
        let user = [&["ACL", "SETUSER", "locks"], rights].concat();
        assert_eq!(servers[0].command(&user), Value::ok());
    };
    let url = format!("redis://locks:secret@127.0.0.1:{}", servers[0].port());
    let client = || {
        builder(&format!("{url}?failover=true&replicas=2"))
            .build()
            .unwrap()
    };
    set_user(&["on", ">secret", "~redlatch:reign", "~o*"]);
    set_user(&[
        "+get", "+set", "+del", "+pexpire", "+pttl", "+evalsha", "+eval",
    ]);
    set_user(&["+info", "+time", "+wait", "+type", "+hmget", "+hset"]);
    take(&client(), TTL).release().unwrap();
    let is_refused = |problem: Option<NodeError>| match problem {
        Some(NodeError::Server(error)) => error.kind == ServerErrorKind::NoPermission,
        _ => false,
    };
    for right in ["info", "time", "wait", "type", "hmget"] {
        set_user(&[&format!("-{right}")]);
        assert!(is_refused(problem(&client())), "{right}");
        set_user(&[&format!("+{right}")]);
    }
    set_user(&["resetkeys", "~o*"]);
    assert!(is_refused(problem(&client())));
}
