//! Locks that stay taken after they are given up, and the end of a client.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::Error;
use redlatch::error::NotResumable;
use support::backend::Backend;
use support::journal::Journal;
use support::on_each_backend;

use crate::{LIMIT, LONG};

const LEAST: Duration = Duration::from_millis(1500);

on_each_backend!(
    a_lock_stays_taken_for_as_long_as_its_request_says,
    a_lock_that_is_left_ends_with_its_ttl,
    a_lock_that_is_left_is_kept_alive_no_longer,
    dropping_the_client_frees_what_it_held,
    a_lock_that_lingers_outlives_its_client,
    clones_share_what_they_hold,
    another_client_resumes_a_lock_or_is_told_that_it_cannot,
);

fn a_lock_stays_taken_for_as_long_as_its_request_says(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    for is_dropped in [true, false] {
        let began = Instant::now();
        let lock = client.request("least").ttl(LONG).hold_at_least(LEAST).lock().unwrap();
        if is_dropped {
            drop(lock);
        } else {
            assert_eq!(lock.release(), Ok(()));
        }
        assert!(other.try_lock("least", LONG).unwrap().is_none());
        let next = other.request("least").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap();
        assert!(began.elapsed() >= LEAST);
        next.release().unwrap();
    }
}

fn a_lock_that_is_left_ends_with_its_ttl(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let began = Instant::now();
    client.lock("left", LEAST).unwrap().let_expire();
    assert!(other.try_lock("left", LONG).unwrap().is_none());
    assert!(other.request("left").ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
    assert!(began.elapsed() >= LEAST);
}

fn a_lock_that_is_left_is_kept_alive_no_longer(backend: &Backend) {
    let (journal, other) = (Journal::default(), backend.client());
    let client = backend.builder().on_event(journal.recorder()).build().unwrap();
    let lock = client.request("kept").ttl(LEAST).keep_alive().lock().unwrap();
    thread::sleep(LEAST);
    assert_eq!(lock.ensure_held(), Ok(()), "it is extended until it is left");
    lock.let_expire();
    let left = journal.take_lock_events().last().unwrap().validity;
    assert!(left > Duration::ZERO && left <= LEAST, "{left:?}");
    assert!(other.try_lock("kept", LONG).unwrap().is_none());
    drop(other.request("kept").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap());
    // Also if another reader has the same share for longer.
    let read = || client.request("read").ttl(LEAST).shared().keep_alive().lock().unwrap();
    let (first, second) = (read(), read());
    first.let_expire();
    assert_eq!(second.release(), Ok(()));
    assert!(other.try_lock("read", LONG).unwrap().is_none());
    drop(other.request("read").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap());
}

fn another_client_resumes_a_lock_or_is_told_that_it_cannot(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let given = client.lock("given", LONG).unwrap().into_token();
    if backend.is_zookeeper() {
        assert!(matches!(given, Err(Error::NotResumable(NotResumable::Session))), "{given:?}");
        assert!(other.request("given").ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
        let of_redis =
            "redlatch1.abababababababababababababababababababab.60000.x00000000".parse().unwrap();
        let refused = other.request("given").resume(&of_redis).map(drop);
        assert_eq!(refused, Err(Error::NotResumable(NotResumable::Session)));
        return;
    }
    drop(client);
    let lock = other.request("given").ttl(LONG).resume(&given.unwrap()).unwrap();
    assert_eq!(lock.release(), Ok(()));
}

fn dropping_the_client_frees_what_it_held(backend: &Backend) {
    let client = backend.client();
    let locks: Vec<_> =
        (0..50).map(|number| client.lock(format!("drop-{number}"), LONG).unwrap()).collect();
    drop(locks);
    drop(client);
    let other = backend.client();
    for number in 0..50 {
        assert!(other.try_lock(format!("drop-{number}"), LONG).unwrap().is_some(), "{number}");
    }
}

fn a_lock_that_lingers_outlives_its_client(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let began = Instant::now();
    drop(client.request("lingers").ttl(LONG).hold_at_least(LEAST).lock().unwrap());
    drop(client);
    assert!(other.try_lock("lingers", LONG).unwrap().is_none());
    assert!(other.request("lingers").ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
    assert!(began.elapsed() >= LEAST);
}

fn clones_share_what_they_hold(backend: &Backend) {
    let client = backend.client();
    let lock = client.clone().lock("clone", LONG).unwrap();
    drop(client);
    assert_eq!(lock.ensure_held(), Ok(()));
    let moved = thread::spawn(move || lock.release());
    assert_eq!(moved.join().unwrap(), Ok(()));
}
