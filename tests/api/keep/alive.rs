//! Locks with `keep_alive` are extended automatically as long as they are held, by one thread, and
//! no longer.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::TtlError;
use redlatch::{Builder, Error, LockClient, LockGuard};
use support::eventually;
use support::locks::{LIMIT, calls, gone, holders, without_restart_guard};
use support::servers::Servers;

/// Long enough for a busy machine to extend in time, short enough for a test to outlast.
const TTL: Duration = Duration::from_secs(2);

/// The rounds are short enough to be repeated in time.
const NODE_TIMEOUT: Duration = Duration::from_millis(400);

fn settings(servers: &Servers) -> Builder {
    without_restart_guard(servers.urls()).node_timeout(NODE_TIMEOUT)
}

fn client(servers: &Servers) -> LockClient {
    settings(servers).build().expect("the settings are good")
}

#[track_caller]
fn keep(client: &LockClient, resource: &str) -> LockGuard {
    let request = client.request(resource).ttl(TTL).keep_alive();
    request
        .try_lock()
        .expect("a majority answers")
        .expect("no other client holds the lock")
}

/// Checks again and again that the lock is held, for `time`.
#[track_caller]
fn assert_held_for(guard: &LockGuard, time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        assert_eq!(guard.ensure_held(), Ok(()), "after {:?}", start.elapsed());
        thread::sleep(Duration::from_millis(5));
    }
}

/// How many scripts the servers have run in total: extensions and releases.
fn scripts(servers: &Servers) -> u64 {
    let of = |server| calls(server, "evalsha") + calls(server, "eval");
    servers.iter().map(of).sum()
}

#[test]
fn a_stopped_minority_does_not_affect_automatic_extensions() {
    let servers = Servers::start(5);
    let guard = keep(&client(&servers), "minority");
    // The node that was connected last may have missed the lock, and gets it with an extension.
    assert!(eventually(LIMIT, || holders(&servers, "minority") == 5));
    servers[0].pause();
    servers[1].pause();
    assert_held_for(&guard, 2 * TTL);
    servers[0].resume();
    servers[1].resume();
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn a_lock_survives_a_majority_stopped_for_less_than_its_validity() {
    let servers = Servers::start(3);
    let guard = keep(
        &settings(&servers)
            .node_timeout(Duration::from_millis(100))
            .build()
            .unwrap(),
        "gap",
    );
    for _ in 0..3 {
        // An extension was just confirmed.
        assert!(eventually(LIMIT, || guard.remaining() > TTL * 8 / 10));
        servers[..2].iter().for_each(|server| server.pause());
        thread::sleep(TTL / 2);
        servers[..2].iter().for_each(|server| server.resume());
    }
    assert_eq!(guard.ensure_held(), Ok(()));
}

#[test]
fn no_extension_is_sent_after_a_release_or_a_drop() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let ways: [fn(LockGuard); 2] = [drop, |guard| assert_eq!(guard.release(), Ok(()))];
    for give_up in ways {
        let guard = keep(&client, "given up");
        let before = scripts(&servers);
        assert!(
            eventually(LIMIT, || scripts(&servers) >= before + 3),
            "it is extended"
        );
        give_up(guard);
        assert!(gone(&servers, "given up"));
        // All earlier replies have come when this one has.
        assert!(client.nodes().iter().all(|node| node.is_connected));
        let after = scripts(&servers);
        thread::sleep(2 * TTL);
        assert_eq!(scripts(&servers), after, "nothing was sent for two ttls");
    }
}

#[test]
fn after_a_handoff_the_former_holder_does_not_extend_the_lock() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let guard = keep(&client, "passed on");
    let next = client.clone();
    let waiting = thread::spawn(move || next.lock("passed on", TTL * 10).unwrap());
    thread::sleep(TTL);
    drop(guard);
    let guard = waiting.join().unwrap();
    let after = scripts(&servers);
    thread::sleep(TTL * 3 / 2);
    assert_eq!(scripts(&servers), after);
    assert_eq!(guard.ensure_held(), Ok(()));
}

#[test]
fn a_waiter_waits_as_long_as_the_lock_is_extended() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let guard = keep(&client, "line");
    let next = client.clone();
    let start = Instant::now();
    let waiting = thread::spawn(move || {
        drop(next.lock("line", TTL).unwrap());
        start.elapsed()
    });
    assert_held_for(&guard, 2 * TTL);
    let sets = calls(&servers[0], "set");
    assert_eq!(
        sets, 1,
        "a waiter sends nothing as long as the lock is held"
    );
    drop(guard);
    assert!(waiting.join().unwrap() >= 2 * TTL);
}

#[test]
fn invalid_requests_are_refused_before_anything_is_sent() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let request = client.request("odd").keep_alive();
    let refused = request.clone().ttl(3 * NODE_TIMEOUT).lock().unwrap_err();
    let Error::Ttl(TtlError::TooShortToKeep { shortest, .. }) = refused else {
        panic!("{refused}")
    };
    assert!(shortest > 3 * NODE_TIMEOUT && shortest < 4 * NODE_TIMEOUT);
    let refused = request
        .clone()
        .ttl(TTL)
        .max_hold(TTL / 2)
        .lock()
        .unwrap_err();
    assert!(
        matches!(refused, Error::Ttl(TtlError::BeyondHold { .. })),
        "{refused}"
    );
    let strict = settings(&servers).max_hold(TTL / 2).build().unwrap();
    let refused = strict
        .request("odd")
        .keep_alive()
        .ttl(TTL)
        .max_hold(LIMIT)
        .lock();
    assert!(matches!(
        refused,
        Err(Error::Ttl(TtlError::BeyondHold { .. }))
    ));
    assert_eq!(calls(&servers[0], "set"), 0);
    drop(request.ttl(shortest).lock().unwrap());

    // Without `keep_alive`, `max_hold` limits the holder's own extensions.
    let mut plain = strict
        .request("odd")
        .ttl(TTL / 2)
        .max_hold(TTL * 2)
        .lock()
        .unwrap();
    let refused = plain.extend(TTL);
    assert!(matches!(refused, Err(Error::HeldTooLong { .. })));
}
