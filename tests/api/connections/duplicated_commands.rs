//! Commands that are delivered more than once: each one twice at once, or all of them again later.
//! The client does not notice, and no lock is affected.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redlatch::{Error, LockClient, LockGuard};
use support::fencing::{counter, fenced, token};
use support::locks::{LONG, all_nodes_client, gone, holders, pttl, take, value};
use support::queue::{finish, spawn_waiter};
use support::redis::Server;
use support::relay::{Relay, relayed, urls};
use support::servers::Servers;

/// Shorter than [`LONG`].
const SHORT: Duration = Duration::from_secs(12);

/// A time between the two, in milliseconds as in `PTTL`.
const BETWEEN: i64 = 20_000;

/// Servers that get each command twice, and a client.
struct Setup {
    servers: Servers,
    client: LockClient,
    _relays: Vec<Relay>,
}

impl Setup {
    #[track_caller]
    fn start() -> Self {
        let servers = Servers::start(3);
        let relays: Vec<_> = servers.iter().map(Relay::doubling).collect();
        let client = all_nodes_client(urls(&relays));
        Self {
            servers,
            client,
            _relays: relays,
        }
    }
}

#[test]
fn with_repeated_commands_a_lock_is_acquired_extended_and_released_once() {
    let Setup {
        servers,
        client,
        _relays,
    } = Setup::start();
    let other = all_nodes_client(servers.urls());
    for round in 0..20 {
        let mut guard = take(&client, "job", SHORT);
        assert_eq!(holders(&servers, "job"), 3);
        assert!(other.try_lock("job", LONG).unwrap().is_none());
        guard.extend(LONG).unwrap();
        assert!(servers.iter().all(|server| pttl(server, "job") > BETWEEN));
        // Shorter than the remaining ttl: it changes nothing.
        guard.extend(SHORT).unwrap();
        assert!(servers.iter().all(|server| pttl(server, "job") > BETWEEN));
        if round % 2 == 0 {
            assert_eq!(guard.release(), Ok(()));
        } else {
            drop(guard);
        }
        assert!(gone(&servers, "job"));
        let theirs = take(&other, "job", LONG);
        assert!(client.try_lock("job", LONG).unwrap().is_none());
        assert_eq!(
            theirs.release(),
            Ok(()),
            "the failed attempt has removed nothing"
        );
    }
    let held = client.with_lock("job", LONG, |guard| Ok(guard.ensure_held()));
    assert_eq!(held, Ok::<_, Error>(Ok(())));
    assert!(gone(&servers, "job"));
}

#[test]
fn with_repeated_commands_fencing_tokens_grow() {
    let Setup {
        servers,
        client,
        _relays,
    } = Setup::start();
    let other = all_nodes_client(servers.urls());
    let mut last = 0;
    for round in 0..20 {
        let guard = fenced(if round % 3 == 0 { &other } else { &client }, "job");
        assert!(token(&guard) > last, "round {round}");
        last = token(&guard);
        assert!(
            servers
                .iter()
                .all(|server| counter(server, "job") >= Some(last))
        );
        assert_eq!(guard.release(), Ok(()));
    }
    assert!(gone(&servers, "job"));
}

#[test]
fn with_repeated_commands_several_are_locked_together_or_not_at_all() {
    let Setup {
        servers,
        client,
        _relays,
    } = Setup::start();
    let other = all_nodes_client(servers.urls());
    for _ in 0..10 {
        let both = |client: &LockClient| {
            let request = client.request_all(["a", "b"]).ttl(LONG);
            request.try_lock().expect("a majority answers")
        };
        let theirs = take(&other, "b", LONG);
        assert!(both(&client).is_none());
        assert!(gone(&servers, "a"), "none of the others");
        assert_eq!(theirs.release(), Ok(()));
        let mut guard = both(&client).expect("both are free");
        assert!(both(&other).is_none());
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(()));
        assert!(gone(&servers, "a") && gone(&servers, "b"));
    }
}

#[test]
fn with_repeated_commands_threads_hand_off_a_lock() {
    let Setup {
        servers,
        client,
        _relays,
    } = Setup::start();
    let guard = fenced(&client, "job");
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let arrive = |_| {
        let client = client.clone();
        let tokens = Arc::clone(&tokens);
        spawn_waiter(move || {
            let guard = fenced(&client, "job");
            tokens.lock().unwrap().push(token(&guard));
            assert_eq!(guard.release(), Ok(()));
        })
    };
    let threads: Vec<_> = (0..10).map(arrive).collect();
    assert_eq!(guard.release(), Ok(()));
    threads.into_iter().for_each(finish);
    let tokens = tokens.lock().unwrap();
    assert!(
        tokens.len() == 10 && tokens.is_sorted_by(|one, next| one < next),
        "{tokens:?}"
    );
    assert!(gone(&servers, "job"));
}

/// The value of a lock's key on each node.
fn sight(servers: &[Server], name: &str) -> Vec<Option<Vec<u8>>> {
    servers.iter().map(|server| value(server, name)).collect()
}

#[test]
fn commands_repeated_later_do_not_affect_their_own_lock() {
    let servers = Servers::start(3);
    let relays = relayed(&servers);
    let client = all_nodes_client(urls(&relays));
    let mut guard = take(&client, "job", SHORT);
    // As far as the client knows, no longer than before.
    guard.extend(SHORT).unwrap();
    guard.extend(LONG).unwrap();
    let before = sight(&servers, "job");
    relays.iter().for_each(Relay::deliver_again);
    assert_eq!(sight(&servers, "job"), before);
    let left: Vec<_> = servers.iter().map(|server| pttl(server, "job")).collect();
    assert!(
        left.iter().all(|left| *left > BETWEEN),
        "PTTL says {left:?}"
    );
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn commands_repeated_later_do_not_affect_the_next_lock() {
    let servers = Servers::start(3);
    let relays = relayed(&servers);
    let client = all_nodes_client(urls(&relays));
    let other = all_nodes_client(servers.urls());
    let plain = take(&client, "plain", SHORT);
    let waiter = client.clone();
    let waiting = spawn_waiter(move || waiter.lock("plain", SHORT).expect("it is handed on"));
    assert_eq!(plain.release(), Ok(()));
    let mut handed = finish(waiting);
    handed.extend(SHORT).unwrap();
    assert_eq!(handed.release(), Ok(()));
    let first = fenced(&client, "fenced");
    let first_token = token(&first);
    assert_eq!(first.release(), Ok(()));

    let theirs = [take(&other, "plain", LONG), fenced(&other, "fenced")];
    assert_eq!(holders(&servers, "plain") + holders(&servers, "fenced"), 6);
    let before = ["plain", "fenced"].map(|name| sight(&servers, name));
    for _ in 0..2 {
        relays.iter().for_each(Relay::deliver_again);
        assert_eq!(
            ["plain", "fenced"].map(|name| sight(&servers, name)),
            before
        );
        let is_long = |server| pttl(server, "plain") > BETWEEN && pttl(server, "fenced") > BETWEEN;
        assert!(servers.iter().all(is_long));
    }
    let second_token = token(&theirs[1]);
    assert!(second_token > first_token);
    assert_eq!(theirs.map(LockGuard::release), [Ok(()), Ok(())]);
    let third = fenced(&other, "fenced");
    assert!(token(&third) > second_token);
    assert_eq!(third.release(), Ok(()));

    // While the lock is free, a repeated command sets its key again, but only for its ttl.
    relays.iter().for_each(Relay::deliver_again);
    let is_bounded = |server: &Server| {
        // PTTL is -1 without a ttl, -2 without a key.
        let left = pttl(server, "plain");
        left != -1 && left <= i64::try_from(SHORT.as_millis()).expect("seconds")
    };
    assert!(servers.iter().all(is_bounded));
}
