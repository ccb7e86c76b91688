//! `with_lock`: the body runs with the lock held, and never without.

use crate::support;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockError, LockGuard, LockLost};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, gone, holders, pause, resume, take, without_restart_guard,
};
use support::servers::Servers;

const TTL: Duration = Duration::from_secs(2);

fn client(servers: &Servers) -> LockClient {
    let settings = without_restart_guard(servers.urls());
    settings.node_timeout(Duration::from_millis(400)).build().expect("the settings are good")
}

#[test]
fn the_lock_is_held_for_as_long_as_the_body_runs() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let value = client.with_lock("work", TTL, |held| {
        assert_eq!(held.resource(), b"work");
        thread::sleep(2 * TTL);
        assert!(held.remaining() > Duration::ZERO && held.remaining() < TTL);
        assert_eq!(held.ensure_held(), Ok(()));
        assert!(holders(&servers, "work") >= 2);
        Ok(42)
    });
    assert_eq!(value, Ok::<_, LockError>(42));
    assert!(gone(&servers, "work"));
}

#[test]
fn the_body_waits_for_the_lock() {
    let servers = Servers::start(3);
    let (client, other) = (client(&servers), all_nodes_client(servers.urls()));
    let held = take(&other, "waits", Duration::from_secs(50));
    thread::scope(|scope| {
        let body = |_: &LockGuard| Ok::<_, LockError>(held_by(&servers, "waits"));
        let work = scope.spawn(move || client.with_lock("waits", TTL, body));
        thread::sleep(Duration::from_millis(100));
        assert!(!work.is_finished());
        let before = held_by(&servers, "waits");
        drop(held);
        assert_ne!(work.join().unwrap().unwrap(), before);
    });
}

/// An error that the body and the lock can have.
#[derive(Debug)]
enum Failure {
    Body(std::io::Error),
    Lock(LockError),
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl Failure {
    fn is_the_body_s(&self) -> bool {
        match self {
            Self::Body(error) => error.kind() == std::io::ErrorKind::NotFound,
            Self::Lock(error) => panic!("{error}"),
        }
    }
}

/// The owner of the lock on the first server.
fn held_by(servers: &Servers, key: &str) -> Option<Vec<u8>> {
    support::locks::value(&servers[0], key)
}

#[test]
fn the_bodys_own_error_is_returned_also_when_the_lock_was_lost() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let error = || fs::read("/nowhere/to/be/found").map(|_| ()).map_err(Failure::Body);
    let came = client.with_lock("error", TTL, |_| error()).unwrap_err();
    assert!(came.is_the_body_s());
    assert!(gone(&servers, "error"));

    // With a lost lock, and nodes that do not reply to the release.
    let came = client.with_lock("error", TTL, |held| {
        pause(&servers, 3);
        assert_eq!(held.wait_lost(LIMIT), Some(LockLost::Expired));
        error()
    });
    assert!(came.unwrap_err().is_the_body_s());
    resume(&servers, 3);
    assert!(gone(&servers, "error"));
}

#[test]
fn a_panic_of_the_body_continues_and_the_lock_is_released() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let body =
        || client.with_lock("panic", TTL, |_| -> Result<(), LockError> { panic!("as planned") });
    let Err(panic) = catch_unwind(AssertUnwindSafe(body)) else { panic!("it has not panicked") };
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
    assert!(gone(&servers, "panic"));
    let next = client.with_lock("panic", TTL, |_| Ok(1));
    assert_eq!(next, Ok::<_, LockError>(1), "the client still works");
}

#[test]
fn without_the_lock_the_body_does_not_run() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let body = |_: &LockGuard| -> Result<(), LockError> { panic!("it ran") };
    let never = |resource: &str, ttl| client.with_lock(resource, ttl, body).unwrap_err();
    assert!(matches!(never("", TTL), LockError::Resource(_)));
    assert!(matches!(never("r", Duration::from_secs(1)), LockError::Ttl(_)));
    assert!(matches!(never("r", Duration::MAX), LockError::Ttl(_)));
    assert!(eventually(LIMIT, || holders(&servers, "r") == 0));
}

#[test]
fn the_settings_of_a_request_apply_to_with_lock() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let request = client.request("fenced").ttl(TTL).fenced();
    let token = |held: &LockGuard| Ok::<_, LockError>(held.fencing_token());
    let first = request.clone().try_with_lock_for(LIMIT, token).unwrap().flatten();
    let second = request.clone().with_lock(token).unwrap();
    assert!(first.is_some() && first < second, "{first:?} {second:?}");

    let held = take(&all_nodes_client(servers.urls()), "fenced", TTL * 10);
    let body =
        |_: &LockGuard| -> Result<(), LockError> { panic!("it does not run without the lock") };
    let wait = Duration::from_millis(50);
    assert_eq!(request.clone().try_with_lock(body), Ok(None));
    assert_eq!(request.clone().try_with_lock_for(wait, body), Ok(None));
    assert_eq!(request.try_with_lock_until(Instant::now() + wait, body), Ok(None));
    drop(held);
}

#[test]
fn waiting_for_a_lock_that_the_same_thread_holds_is_an_error_at_once() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let own = |result: Result<_, LockError>| matches!(result, Err(LockError::HeldByThisThread));
    let both = ["one", "two"];
    client
        .with_lock("own", TTL, |_| {
            assert!(own(client.lock("own", TTL).map(Some)));
            assert!(own(client.clone().with_lock("own", TTL, |_| Ok(None))));
            assert!(own(client.try_lock_for("own", TTL, LIMIT)));
            assert!(own(client.request("own").fenced().keep_alive().lock().map(Some)));
            // A request that does not wait is refused as usual, and other locks are free.
            assert!(client.try_lock("own", TTL).unwrap().is_none());
            assert!(client.try_lock_for("own", TTL, Duration::ZERO).unwrap().is_none());
            assert!(client.lock("other", TTL).is_ok());
            let several = client.request_all(both).ttl(TTL).with_lock(|_| {
                assert!(own(client.request_all(both).lock().map(Some)));
                Ok(())
            });
            assert_eq!(several, Ok::<_, LockError>(()));
            // Another client and another thread wait as usual.
            let wait = Duration::from_millis(50);
            assert!(self::client(&servers).try_lock_for("own", TTL, wait).unwrap().is_none());
            thread::scope(|scope| {
                let other =
                    scope.spawn(|| client.try_lock_for("own", TTL, wait).unwrap().is_none());
                assert!(other.join().unwrap());
            });
            Ok::<_, LockError>(())
        })
        .unwrap();
    // The lock is free again, and the thread holds none.
    let _ = client.lock("own", TTL).unwrap().release().unwrap();
}

#[test]
fn a_thread_may_wait_for_a_lock_whose_guard_it_moved_to_another_thread() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let guard = client.request("moved").ttl(TTL).keep_alive().lock().unwrap();
    let elsewhere = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        drop(guard);
    });
    assert!(client.lock("moved", TTL).is_ok(), "this thread acquired it and another released it");
    elsewhere.join().unwrap();
}

#[test]
fn a_guard_that_is_dropped_after_its_lock_expired_leaves_the_next_lock_its_queue() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let expired = take(&client, "late", Duration::from_millis(100));
    drop(client.lock("late", LONG).expect("it waits until the first lock has expired"));
    let own = client.with_lock("late", LONG, |_| {
        drop(expired);
        Ok::<_, LockError>(client.try_lock_for("late", LONG, Duration::from_secs(1)).map(drop))
    });
    assert!(matches!(own, Ok(Err(LockError::HeldByThisThread))), "{own:?}");
}
