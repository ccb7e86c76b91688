//! `with_lock`: the body runs with the lock held, and never without.

use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard, LockRequest};
use support::eventually;
use support::locks::{
    BRIEF, LIMIT, LONG, all_nodes_client, gone, holders, take, without_restart_guard,
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
    assert_eq!(value, Ok(42));
    assert!(gone(&servers, "work"));
}

#[test]
fn the_body_waits_for_the_lock() {
    let servers = Servers::start(3);
    let (client, other) = (client(&servers), all_nodes_client(servers.urls()));
    let held = take(&other, "waits", Duration::from_secs(50));
    thread::scope(|scope| {
        let body = |_: &LockGuard| Ok::<_, Error>(held_by(&servers, "waits"));
        let work = scope.spawn(move || client.with_lock("waits", TTL, body));
        thread::sleep(Duration::from_millis(100));
        assert!(!work.is_finished());
        let before = held_by(&servers, "waits");
        drop(held);
        assert_ne!(work.join().unwrap().unwrap(), before);
    });
}

/// The owner of the lock on the first server.
fn held_by(servers: &Servers, key: &str) -> Option<Vec<u8>> {
    support::locks::value(&servers[0], key)
}

#[test]
fn a_panic_of_the_body_continues_and_the_lock_is_released() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let body = || client.with_lock("panic", TTL, |_| -> Result<(), Error> { panic!("as planned") });
    let Err(panic) = catch_unwind(body) else { panic!("it has not panicked") };
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
    assert!(gone(&servers, "panic"));
    let next = client.with_lock("panic", TTL, |_| Ok(1));
    assert_eq!(next, Ok(1), "the client still works");
}

#[test]
fn a_client_its_requests_and_its_guards_may_be_used_after_a_panic() {
    fn check<T: UnwindSafe + RefUnwindSafe>() {}
    check::<LockClient>();
    check::<LockRequest<'_>>();
    check::<LockGuard>();
}

#[test]
fn without_the_lock_the_body_does_not_run() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let body = |_: &LockGuard| -> Result<(), Error> { panic!("it ran") };
    let never = |resource: &str, ttl| client.with_lock(resource, ttl, body).unwrap_err();
    assert!(matches!(never("", TTL), Error::Resource(_)));
    assert!(matches!(never("r", Duration::from_secs(1)), Error::Ttl(_)));
    assert!(matches!(never("r", Duration::MAX), Error::Ttl(_)));
    assert!(eventually(LIMIT, || holders(&servers, "r") == 0));
}

#[test]
fn the_settings_of_a_request_apply_to_with_lock() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let request = client.request("fenced").ttl(TTL).fenced();
    let token = |held: &LockGuard| Ok::<_, Error>(held.fencing_token());
    let first = request.clone().try_with_lock_for(LIMIT, token).unwrap().flatten();
    let second = request.clone().with_lock(token).unwrap();
    assert!(first.is_some() && first < second, "{first:?} {second:?}");

    let held = take(&all_nodes_client(servers.urls()), "fenced", TTL * 10);
    let body = |_: &LockGuard| -> Result<(), Error> { panic!("it does not run without it") };
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
    let own = |result: Result<_, Error>| matches!(result, Err(Error::HeldByThisThread));
    let both = ["one", "two"];
    client
        .with_lock("own", TTL, |_| {
            assert!(own(client.lock("own", TTL).map(Some)));
            let again = client.clone().with_lock("own", TTL, |_| Ok(()));
            assert!(own(again.map(|()| None)));
            assert!(own(client.request("own").ttl(TTL).try_lock_for(LIMIT)));
            assert!(own(client.request("own").fenced().keep_alive().lock().map(Some)));
            // A request that does not wait is refused as usual, and other locks are free.
            assert!(client.try_lock("own", TTL).unwrap().is_none());
            assert!(client.request("own").ttl(TTL).try_lock_for(Duration::ZERO).unwrap().is_none());
            assert!(client.lock("other", TTL).is_ok());
            let several = client.request_all(both).ttl(TTL).with_lock(|_| {
                assert!(own(client.request_all(both).lock().map(Some)));
                Ok(())
            });
            assert_eq!(several, Ok::<_, Error>(()));
            // Another client and another thread wait as usual.
            let wait = Duration::from_millis(50);
            assert!(
                self::client(&servers)
                    .request("own")
                    .ttl(TTL)
                    .try_lock_for(wait)
                    .unwrap()
                    .is_none()
            );
            thread::scope(|scope| {
                let other = scope
                    .spawn(|| client.request("own").ttl(TTL).try_lock_for(wait).unwrap().is_none());
                assert!(other.join().unwrap());
            });
            Ok::<_, Error>(())
        })
        .unwrap();
    // The lock is free again, and the thread holds none.
    client.lock("own", TTL).unwrap().release().unwrap();
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
    let expired = take(&client, "late", BRIEF);
    drop(client.lock("late", LONG).expect("it waits until the first lock has expired"));
    let own = client.with_lock("late", LONG, |_| {
        drop(expired);
        Ok::<_, Error>(
            client.request("late").ttl(LONG).try_lock_for(Duration::from_secs(1)).map(drop),
        )
    });
    assert!(matches!(own, Ok(Err(Error::HeldByThisThread))), "{own:?}");
}
