//! Extending locks: which keys live longer, which must not, and which are restored.

use std::time::Duration;

use redlatch::{Error, LossReason};
use support::cli::Value;
use support::eventually;
use support::locks::{
    BRIEF, LIMIT, LONG, all_nodes_client, calls, gone, holders, pause, pttl, report_texts, resume,
    take, value, with_long_timeout,
};
use support::loss::{loss, loss_in};
use support::redis::Server;
use support::servers::Servers;

const HALF: Duration = Duration::from_secs(25);

/// The shortest remaining time to live of the key on any of the servers, in milliseconds.
fn shortest(servers: &[Server], key: &str) -> i64 {
    servers
        .iter()
        .map(|server| pttl(server, key))
        .min()
        .expect("there are servers")
}

#[test]
fn an_extension_lengthens_the_ttl_of_the_key_on_all_nodes() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "long", Duration::from_secs(20));
    let token = value(&servers[0], "long");
    guard.extend(LONG).unwrap();
    assert!(guard.remaining() > Duration::from_secs(25) && guard.remaining() < LONG);
    assert!(shortest(&servers, "long") > 25_000);
    assert_eq!(value(&servers[4], "long"), token, "it is the same lock");
    assert_eq!(guard.release(), Ok(()));
    assert!(gone(&servers, "long"));
}

#[test]
fn a_shorter_extension_shortens_no_ttl_on_any_node() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "less", LONG);
    let before = guard.remaining();
    for millis in [3, 100, 5_000] {
        guard.extend(Duration::from_millis(millis)).unwrap();
        assert!(guard.remaining() > Duration::from_secs(25) && guard.remaining() <= before);
        assert!(shortest(&servers, "less") > 25_000);
    }
}

#[test]
fn the_ttl_of_an_unconfirmed_extension_is_not_shortened() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .node_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let mut guard = take(&client, "half", HALF);
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    // The node that was connected last may have missed the lock, and gets it with an extension.
    assert!(eventually(LIMIT, || guard.extend(HALF).is_ok()
        && pttl(&servers[2], "half") > 0));
    pause(&servers, 2);
    assert!(matches!(guard.extend(LONG), Err(Error::NoQuorum(_))));
    resume(&servers, 2);
    assert!(eventually(LIMIT, || guard.extend(HALF).is_ok()));
    // The node that replied all along has the ttl LONG, which nothing has shortened.
    assert!(pttl(&servers[2], "half") > 26_000);
}

#[test]
fn an_expired_lock_is_not_extended_and_nothing_is_sent() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "over", BRIEF);
    assert!(eventually(LIMIT, || guard.remaining().is_zero()));
    assert_eq!(loss(&guard), Some(LossReason::Expired));
    let scripts = |server| {
        ["evalsha", "eval"]
            .map(|name| calls(server, name))
            .iter()
            .sum::<u64>()
    };
    let before: Vec<u64> = servers.iter().map(scripts).collect();
    assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Expired));
    // The replies to anything sent before would come before this one.
    assert!(client.nodes().iter().all(|node| node.is_connected));
    for (server, before) in servers.iter().zip(before) {
        assert_eq!(
            scripts(server),
            before + 1,
            "that of `nodes`, which looks at a mark"
        );
        assert_eq!(calls(server, "set"), 1);
    }
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
}

#[test]
fn without_a_majority_the_old_validity_stands_and_nothing_is_released() {
    let servers = Servers::start(5);
    let client = with_long_timeout(servers.urls())
        .node_timeout(Duration::from_millis(300))
        .wait_for_all(true)
        .build()
        .unwrap();
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    let mut guard = take(&client, "failed", HALF);
    let before = guard.remaining();
    let token = value(&servers[4], "failed");
    pause(&servers, 3);
    let error = match guard.extend(LONG) {
        Err(Error::NoQuorum(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!((error.needed(), error.answered()), (3, 2));
    let expected = ["timed out waiting for an answer"; 3]
        .into_iter()
        .chain(["granted"; 2]);
    assert!(
        report_texts(&error)
            .iter()
            .eq(expected.collect::<Vec<_>>().iter()),
        "{error}"
    );
    assert!(guard.ensure_held().is_ok());
    assert!(guard.remaining() <= before && guard.remaining() > Duration::from_secs(10));
    resume(&servers, 3);
    for server in servers.iter() {
        assert_eq!(value(server, "failed"), token);
    }
    assert!(eventually(LIMIT, || guard.extend(LONG).is_ok()));
    assert!(guard.remaining() > HALF);
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn a_lock_whose_key_a_majority_no_longer_has_is_lost() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "gone", LONG);
    for server in &servers[..3] {
        server.command(&["DEL", "gone"]);
    }
    assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Gone));
    // At once, although there was time left, and for good.
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert_eq!(loss(&guard), Some(LossReason::Gone));
    assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Gone));
    assert_eq!(
        holders(&servers[..3], "gone"),
        0,
        "without a majority no key is restored"
    );
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert!(gone(&servers, "gone"));
}

#[test]
fn a_key_that_a_minority_lost_is_restored() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "again", HALF);
    let token = value(&servers[4], "again");
    for server in &servers[..2] {
        server.command(&["DEL", "again"]);
    }
    guard.extend(LONG).unwrap();
    assert!(eventually(LIMIT, || holders(&servers, "again") == 5));
    for server in servers.iter() {
        assert_eq!(value(server, "again"), token);
    }
    let left = shortest(&servers, "again");
    assert!(left > 26_000 && left <= 50_000, "{left}");
    assert_eq!(guard.release(), Ok(()));
    assert!(gone(&servers, "again"));
}

#[test]
fn a_foreign_key_on_a_minority_is_not_changed() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "foreign", HALF);
    servers[0].command(&["SET", "foreign", "another's", "PX", "60000"]);
    servers[1].command(&["DEL", "foreign"]);
    servers[1].command(&["LPUSH", "foreign", "no lock at all"]);
    guard.extend(LONG).unwrap();
    guard.extend(LONG).unwrap();
    guard.release().unwrap();
    assert!(gone(&servers[2..], "foreign"));
    assert_eq!(
        value(&servers[0], "foreign").as_deref(),
        Some(&b"another's"[..])
    );
    assert_eq!(servers[1].command(&["LLEN", "foreign"]), Value::Integer(1));
}

#[test]
fn a_lock_that_another_client_acquired_meanwhile_is_not_extended() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let other = all_nodes_client(servers.urls());
    let mut guard = take(&client, "between", LONG);
    // As if it had expired: the nodes' clocks may be ahead.
    for server in servers.iter() {
        server.command(&["DEL", "between"]);
    }
    let mut theirs = take(&other, "between", LONG);
    let token = value(&servers[0], "between");
    assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Gone));
    drop(guard);
    theirs.extend(LONG).unwrap();
    for server in servers.iter() {
        assert_eq!(value(server, "between"), token);
    }
    assert_eq!(theirs.release(), Ok(()));
}

#[test]
fn servers_that_forgot_the_scripts_get_them_again() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "flush", HALF);
    let before: Vec<_> = servers.iter().map(|server| calls(server, "eval")).collect();
    for _ in 0..3 {
        for server in servers.iter() {
            assert_eq!(server.command(&["SCRIPT", "FLUSH"]), Value::ok());
        }
        guard.extend(LONG).unwrap();
        assert!(shortest(&servers, "flush") > 26_000);
    }
    for (server, before) in servers.iter().zip(before) {
        assert_eq!(calls(server, "eval") - before, 3, "once a flush");
    }
}
