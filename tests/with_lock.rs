//! Work that runs under a lock: with it, and never without.

mod support;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use redlatch::{LockClient, LockError, LockGuard, Lost};
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
        assert_eq!(held.wait_lost(LIMIT), Some(Lost::Expired));
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
    let refused = request.one_attempt().run(|_| panic!("it does not run without the lock"));
    assert_eq!(refused, Ok(None::<()>));
    drop(held);
}
