//! What callers are told on nodes in quarantine: that nobody can have the lock yet, and not that
//! another client holds it, unless one does.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use redlatch::embedded::Nodes;
use redlatch::{Error, LockClient, LockGuard, LockState, NoQuorum};
use support::locks::{LONG, idle, take, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::await_queued;

const MAX_TTL: Duration = Duration::from_secs(60);

fn guarded(urls: Vec<String>) -> LockClient {
    let builder = with_long_timeout(urls).restart_guard(true).max_ttl(MAX_TTL);
    builder
        .wait_for_all(true)
        .build()
        .expect("the settings are good")
}

/// A client that waits for the lock until it is cancelled.
struct Waiter {
    client: LockClient,
    thread: JoinHandle<Result<LockGuard, Error>>,
}

impl Waiter {
    #[track_caller]
    fn start(servers: &Servers, name: &'static str) -> Self {
        let client = guarded(servers.urls());
        let waiting = client.clone();
        let thread = spawn_waiter(move || waiting.lock(name, LONG));
        await_queued(servers, name, 1);
        Self { client, thread }
    }

    #[track_caller]
    fn end(self) {
        self.client.cancel_token().cancel();
        assert!(matches!(finish(self.thread), Err(Error::Cancelled)));
    }
}

#[track_caller]
fn no_quorum(result: Result<Option<LockGuard>, Error>) -> NoQuorum {
    match result {
        Err(Error::NoQuorum(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_waiter_in_a_quarantine_holds_nothing() {
    let servers = Servers::start(3);
    let waiter = Waiter::start(&servers, "job");
    let client = guarded(servers.urls());
    let request = || client.request("job").ttl(LONG);
    let wait = Duration::from_millis(400);
    for (case, result) in [
        ("try_lock", request().try_lock()),
        ("try_lock_for", request().try_lock_for(wait)),
        ("reader", request().shared().try_lock()),
        ("permit", request().one_of(2).try_lock()),
        ("waiting reader", request().shared().try_lock_for(wait)),
        ("fenced", request().fenced().try_lock()),
        (
            "set",
            client.request_all(["job", "more"]).ttl(LONG).try_lock(),
        ),
    ] {
        let error = no_quorum(result);
        let left = error
            .quarantine()
            .unwrap_or_else(|| panic!("{case}: {error}"));
        assert!(!left.is_zero() && left <= MAX_TTL, "{case}: {left:?}");
        assert_eq!(error.answered(), 0, "{case}: {error}");
        let text = error.to_string();
        assert_eq!(
            text.matches("quarantined for another").count(),
            3,
            "{case}: {text}"
        );
    }
    waiter.end();
}

#[test]
fn a_lock_that_is_held_on_nodes_in_quarantine_is_reported_as_held() {
    let nodes = Nodes::start(3).expect("there are ports enough");
    let client = guarded(nodes.urls());
    let mut guard = take(&client, "rolling", LONG);
    for index in 0..3 {
        nodes.restart(index).expect("it restarts");
        idle();
        // Restores the lock there.
        guard.extend(LONG).expect("the other nodes have it");
    }
    let other = guarded(nodes.urls());
    assert!(other.try_lock("rolling", LONG).unwrap().is_none());
    let wait = Duration::from_millis(400);
    let start = Instant::now();
    assert!(
        other
            .request("rolling")
            .ttl(LONG)
            .try_lock_for(wait)
            .unwrap()
            .is_none()
    );
    assert!(
        start.elapsed() >= wait,
        "who is told so has waited, in any case"
    );
    let seen = other.inspect("rolling").unwrap();
    assert!(matches!(seen.state, LockState::Held(_)), "{seen:?}");
    assert!(
        seen.quarantine.is_some_and(|left| left <= MAX_TTL),
        "{seen:?}"
    );
    drop(guard);
}

#[test]
fn an_inspection_says_for_how_long_no_majority_grants_a_lock() {
    let servers = Servers::start(3);
    let client = guarded(servers.urls());
    let seen = client.inspect("job").unwrap();
    assert_eq!(seen.state, LockState::Free);
    assert!(
        seen.quarantine.is_some_and(|left| left <= MAX_TTL),
        "{seen:?}"
    );
    assert!(
        seen.nodes.iter().all(|node| node.quarantine.is_some()),
        "{seen:?}"
    );
    let trusting = with_long_timeout(servers.urls()).build().unwrap();
    let seen = trusting.inspect("job").unwrap();
    assert!(seen.quarantine.is_none(), "{seen:?}");
    assert!(
        seen.nodes.iter().all(|node| node.quarantine.is_none()),
        "{seen:?}"
    );
}

#[test]
fn one_node_in_quarantine_keeps_nobody_from_the_lock() {
    let nodes = Nodes::start(3).expect("there are ports enough");
    nodes.restart(0).expect("it restarts");
    idle();
    let client = guarded(nodes.urls());
    let guard = take(&client, "job", LONG);
    let other = guarded(nodes.urls());
    assert!(other.try_lock("job", LONG).unwrap().is_none());
    let seen = other.inspect("job").unwrap();
    assert_eq!(seen.quarantine, None);
    assert!(seen.nodes[0].quarantine.is_some() && seen.nodes[1].quarantine.is_none());
    drop(guard);
}

#[test]
fn a_lock_that_only_a_node_out_of_quarantine_has_is_neither_held_nor_free() {
    let nodes = Nodes::start(3).expect("there are ports enough");
    let guard = take(&guarded(nodes.urls()), "job", LONG);
    nodes.restart(0).expect("it restarts");
    nodes.restart(1).expect("it restarts");
    idle();
    let other = guarded(nodes.urls());
    let error = no_quorum(other.try_lock("job", LONG));
    assert!(error.quarantine().is_some(), "{error}");
    assert_eq!(error.answered(), 1, "{error}");
    // The others may have forgotten it, so it is not free either.
    let seen = other.inspect("job").unwrap();
    assert_eq!(seen.state, LockState::Undecided);
    assert!(matches!(&seen.nodes[2].holder, Ok(Some(_))), "{seen:?}");
    drop(guard);
}
