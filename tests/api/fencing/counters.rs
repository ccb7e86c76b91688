//! The counters of fencing tokens: how long they live, their maximum, and values under their keys
//! that are not counters.

use std::time::{Duration, Instant};

use redlatch::error::{ConfigError, NodeAnswer, NodeError, ServerErrorKind};
use redlatch::{Error, LockClient, LockRequest};
use support::fencing::{AHEAD, counter, counter_key, fenced, scripts, set_counter, token};
use support::locks::{LIMIT, LONG, all_nodes_client, gone, pttl, take, value, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;

/// The largest token.
const MOST: u64 = (1 << 52) + (1 << 40);

/// A counter ahead of all others and below the maximum.
const FURTHER: u64 = 4_400_000_000_000_000;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Requests a lock without a time limit, or once, and is refused: on which nodes because of the
/// counter?
#[track_caller]
fn refused(request: LockRequest<'_>, waits: bool) -> Vec<bool> {
    let start = Instant::now();
    let error = match if waits {
        request.lock().map(Some)
    } else {
        request.try_lock()
    } {
        Err(Error::NoQuorum(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(start.elapsed() < LIMIT);
    let is_counter = |answer: &NodeAnswer| match answer {
        NodeAnswer::Failed(node_error @ NodeError::Server(error)) => {
            assert!(
                node_error.is_permanent() && error.text.starts_with("FENCE "),
                "{node_error}"
            );
            error.kind == ServerErrorKind::Counter
        }
        _ => false,
    };
    error
        .reports()
        .iter()
        .map(|report| is_counter(&report.answer))
        .collect()
}

#[test]
fn counters_live_for_the_configured_time_after_the_latest_grant() {
    let servers = Servers::start(3);
    let lives = |expected: Duration| {
        let most = i64::try_from(expected.as_millis()).unwrap();
        let left = servers
            .iter()
            .map(|server| pttl(server, counter_key("name")));
        left.for_each(|left| assert!(left <= most && left > most - 60_000, "{left} of {most}"));
    };
    let client = all_nodes_client(servers.urls());
    drop(fenced(&client, "name"));
    lives(168 * HOUR);
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .fencing_expiry(2 * HOUR);
    let client = client.build().unwrap();
    let mut guard = fenced(&client, "name");
    // Their time to live is never shortened, also not by a grant that reaches a server late.
    lives(168 * HOUR);
    // An extension and a release do not change it; a second round does.
    servers.iter().for_each(|server| {
        server.command(&["PEXPIRE", &counter_key("name"), "3600000"]);
    });
    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(()));
    lives(HOUR);
    set_counter(&servers[0], "name", &AHEAD);
    servers[0].command(&["PEXPIRE", &counter_key("name"), "3600000"]);
    assert_eq!(token(&fenced(&client, "name")), AHEAD + 1);
    lives(2 * HOUR);
}

#[test]
fn counters_must_outlive_locks() {
    let build = |max_ttl, expiry| {
        let builder = LockClient::builder()
            .nodes(["redis://127.0.0.1:1"])
            .max_ttl(max_ttl);
        builder.fencing_expiry(expiry).build()
    };
    let day = 24 * HOUR;
    for (expiry, is_good) in [
        (HOUR - Duration::from_millis(1), false),
        (HOUR, true),
        (365 * day, true),
        (366 * day, false),
        (Duration::MAX, false),
        (Duration::ZERO, false),
    ] {
        match build(HOUR, expiry) {
            Ok(_) => assert!(is_good, "{expiry:?}"),
            Err(Error::Config(ConfigError::Setting { name, .. })) => {
                assert!(!is_good && name == "fencing_expiry", "{expiry:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn an_invalid_counter_is_an_error_on_a_majority_and_no_problem_on_a_minority() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let mut last = token(&fenced(&client, "name"));
    let key = counter_key("name");
    for junk in [&["SET", &key, "junk"][..], &["LPUSH", &key, "1"]] {
        servers[..2]
            .iter()
            .for_each(|server| drop(server.command(&["DEL", &key])));
        servers[0].command(junk);
        let guard = fenced(&client, "name");
        assert!(token(&guard) > last, "on a minority it changes nothing");
        last = token(&guard);
        assert_eq!(guard.release(), Ok(()));
        servers[1].command(&["DEL", &key]);
        servers[1].command(junk);
        let request = client.request("name").ttl(LONG);
        for waits in [true, false] {
            assert_eq!(
                refused(request.clone().fenced(), waits),
                [true, true, false]
            );
        }
        assert!(
            gone(&servers, "name"),
            "removed from the node that granted it"
        );
        // A request without a token gets the lock, so the wait queue is free.
        let plain = request.try_lock().unwrap().expect("it is free");
        assert_eq!(plain.release(), Ok(()));
    }
    assert!(
        client.nodes().iter().all(|node| node.is_connected),
        "no connection was lost"
    );
    servers[..2]
        .iter()
        .for_each(|server| drop(server.command(&["DEL", &key])));
    assert!(
        token(&fenced(&client, "name")) > last,
        "removing them solves it"
    );
}

#[test]
fn a_waiter_that_cannot_get_a_token_leaves_no_key_of_the_former_lock() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .handoff_limit(u32::MAX, LONG);
    let client = client.build().unwrap();
    servers
        .iter()
        .for_each(|server| set_counter(server, "name", &"junk"));
    let held = take(&client, "name", LONG);
    let waiting = {
        let client = client.clone();
        spawn_waiter(move || refused(client.request("name").ttl(LONG).fenced(), true))
    };
    assert_eq!(held.release(), Ok(()));
    assert_eq!(finish(waiting), [true; 3]);
    assert!(gone(&servers, "name"));
    assert_eq!(take(&client, "name", LONG).release(), Ok(()));
}

#[test]
fn the_largest_token_is_given_and_none_after_it() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    servers
        .iter()
        .for_each(|server| set_counter(server, "all", &(MOST - 2)));
    for expected in [MOST - 1, MOST] {
        let guard = fenced(&client, "all");
        assert_eq!(token(&guard), expected);
        assert_eq!(guard.release(), Ok(()));
    }
    assert_eq!(refused(client.request("all").fenced(), true), [true; 3]);
    assert!(
        servers
            .iter()
            .all(|server| counter(server, "all") == Some(MOST)),
        "not changed"
    );

    // One node with a large counter raises the others: tokens never decrease.
    set_counter(&servers[1], "one", &(MOST - 1));
    let guard = fenced(&client, "one");
    assert_eq!(token(&guard), MOST);
    assert!(
        servers
            .iter()
            .all(|server| counter(server, "one") == Some(MOST))
    );
    assert_eq!(guard.release(), Ok(()));
    assert_eq!(refused(client.request("one").fenced(), true), [true; 3]);

    // A counter at or near the maximum, which no client can have reached, does not raise the
    // others.
    let ends = [
        MOST,
        MOST + 1,
        7_000_000_000_000_000,
        (1 << 53) - 2,
        (1 << 53) - 1,
        u64::MAX,
    ];
    for (index, end) in ends.into_iter().enumerate() {
        let name = &*format!("end-{index}");
        let end = end.to_string();
        set_counter(&servers[1], name, &end);
        let guard = fenced(&client, name);
        assert!(token(&guard) < AHEAD);
        assert_eq!(guard.release(), Ok(()));
        assert_eq!(
            value(&servers[1], counter_key(name)),
            Some(end.into_bytes())
        );
    }
}

#[test]
fn a_set_has_one_token_above_those_of_each_of_its_resources() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let both = || {
        let guard = client
            .request_all(["a", "b"])
            .ttl(LONG)
            .fenced()
            .lock()
            .unwrap();
        let token = token(&guard);
        guard.release().unwrap();
        token
    };
    let alone = |name| token(&fenced(&client, name));
    let a = alone("a");
    let b = alone("b");
    let first = both();
    assert!(first > a && first > b);
    for server in &servers[..] {
        assert_eq!(
            (counter(server, "a"), counter(server, "b")),
            (Some(first), Some(first))
        );
    }
    assert!(alone("a") > first && alone("b") > first);
    // One counter is far ahead, on all nodes and then on one: the other follows.
    servers
        .iter()
        .for_each(|server| set_counter(server, "b", &AHEAD));
    let before = scripts(&servers[0]);
    assert_eq!(both(), AHEAD + 1);
    assert_eq!(scripts(&servers[0]) - before, 2, "they agree");
    assert_eq!(alone("a"), AHEAD + 2);
    set_counter(&servers[2], "b", &FURTHER);
    let second = both();
    assert_eq!(second, FURTHER + 1);
    for server in &servers[..] {
        assert_eq!(
            (counter(server, "a"), counter(server, "b")),
            (Some(second), Some(second))
        );
    }
    assert_eq!(alone("a"), second + 1);
}
