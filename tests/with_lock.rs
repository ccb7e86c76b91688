//! Work that runs under a lock: with it, and never without.

use crate::support;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use redlatch::{LockClient, LockError, LockGuard, LockLost};
use support::eventually;
use support::locks::{LIMIT, fresh, gone, holders, pause, resume, take, thorough};
use support::servers::Servers;

const TTL: Duration = Duration::from_secs(2);

fn client(servers: &Servers) -> LockClient {
    let settings = fresh(servers.urls());
    settings.node_timeout(Duration::from_millis(400)).build().expect("the settings are good")
}

#[test]
fn the_body_runs_under_the_lock_for_as_long_as_it_takes() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let value = client.with_lock("work", TTL, |held| {
        assert_eq!(held.resource(), b"work");
        thread::sleep(2 * TTL);
        assert!(held.remaining() > Duration::ZERO && held.remaining() < TTL);
        assert_eq!(held.ensure_held(), Ok(()));
        assert!(holders(&servers, "work") >= 2);
        42
    });
    assert_eq!(value, Ok(42));
    assert!(gone(&servers, "work"));
}

#[test]
fn the_body_waits_for_the_lock() {
    let servers = Servers::start(3);
    let (client, other) = (client(&servers), thorough(servers.urls()));
    let held = take(&other, "waits", Duration::from_secs(50));
    thread::scope(|scope| {
        let work = scope.spawn(|| client.with_lock("waits", TTL, |_| held_by(&servers, "waits")));
        thread::sleep(Duration::from_millis(100));
        assert!(!work.is_finished());
        let before = held_by(&servers, "waits");
        drop(held);
        assert_ne!(work.join().unwrap().unwrap(), before);
    });
}

/// Whose lock it is at the first server.
fn held_by(servers: &Servers, key: &str) -> Option<Vec<u8>> {
    support::locks::value(&servers[0], key)
}

#[test]
fn the_body_s_own_error_is_what_comes_of_it_whatever_becomes_of_the_lock() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let error = || fs::read("/nowhere/to/be/found").map(|_| ());
    let came = client.with_lock("error", TTL, |_| error()).unwrap().unwrap_err();
    assert_eq!(came.kind(), std::io::ErrorKind::NotFound);
    assert!(gone(&servers, "error"));

    // With the lock lost, and nodes that answer to no release.
    let came = client.with_lock("error", TTL, |held| {
        pause(&servers, 3);
        assert_eq!(held.wait_lost(LIMIT), Some(LockLost::Expired));
        error()
    });
    assert_eq!(came.unwrap().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    resume(&servers, 3);
    assert!(gone(&servers, "error"));
}

#[test]
fn the_body_s_panic_goes_on_and_the_lock_is_given_back() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let body = || client.with_lock("panic", TTL, |_| panic!("as planned"));
    let Err(panic) = catch_unwind(AssertUnwindSafe(body)) else { panic!("it has not panicked") };
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
    assert!(gone(&servers, "panic"));
    assert_eq!(client.with_lock("panic", TTL, |_| 1), Ok(1), "the client goes on");
}

#[test]
fn without_the_lock_the_body_does_not_run() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let never =
        |resource: &str, ttl| client.with_lock(resource, ttl, |_| panic!("it ran")).unwrap_err();
    assert!(matches!(never("", TTL), LockError::Resource(_)));
    assert!(matches!(never("r", Duration::from_secs(1)), LockError::Ttl(_)));
    assert!(matches!(never("r", Duration::MAX), LockError::Ttl(_)));
    assert!(eventually(LIMIT, || holders(&servers, "r") == 0));
}

#[test]
fn a_request_is_run_with_all_that_was_asked_for() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let request = client.request("fenced").ttl(TTL).fenced();
    let first = request.clone().run(LockGuard::fencing_token).unwrap().flatten();
    let second = request.clone().run(LockGuard::fencing_token).unwrap().flatten();
    assert!(first.is_some() && first < second, "{first:?} {second:?}");

    let held = take(&thorough(servers.urls()), "fenced", TTL * 10);
    let refused = request.no_wait().run(|_| panic!("it does not run without the lock"));
    assert_eq!(refused, Ok(None::<()>));
    drop(held);
}

#[test]
fn who_waits_for_its_own_lock_is_told_at_once() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let own = |result: Result<_, LockError>| matches!(result, Err(LockError::HeldByThisThread));
    let both = ["one", "two"];
    client
        .with_lock("own", TTL, |_| {
            assert!(own(client.lock("own", TTL).map(Some)));
            assert!(own(client.clone().with_lock("own", TTL, |_| ()).map(|()| None)));
            assert!(own(client.try_lock_for("own", TTL, LIMIT)));
            assert!(own(client.request("own").fenced().keep_alive().acquire()));
            // Who does not wait is refused like anybody, and other locks are free.
            assert!(client.try_lock("own", TTL).unwrap().is_none());
            assert!(client.try_lock_for("own", TTL, Duration::ZERO).unwrap().is_none());
            assert!(client.lock("other", TTL).is_ok());
            let several = client.request_all(both).ttl(TTL).run(|_| {
                assert!(own(client.request_all(both).acquire()));
            });
            assert_eq!(several, Ok(Some(())));
            // Another client knows nothing of it, nor does another thread: these wait.
            let wait = Duration::from_millis(50);
            assert!(self::client(&servers).try_lock_for("own", TTL, wait).unwrap().is_none());
            thread::scope(|scope| {
                let other =
                    scope.spawn(|| client.try_lock_for("own", TTL, wait).unwrap().is_none());
                assert!(other.join().unwrap());
            });
        })
        .unwrap();
    // The lock is free again, and so is the thread.
    let _ = client.lock("own", TTL).unwrap().release().unwrap();
}

#[test]
fn who_has_a_guard_may_wait_for_the_thread_that_gives_it_up() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let guard = client.request("moved").ttl(TTL).keep_alive().acquire().unwrap().unwrap();
    let elsewhere = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        drop(guard);
    });
    assert!(client.lock("moved", TTL).is_ok(), "this thread took it and another gave it up");
    elsewhere.join().unwrap();
}
