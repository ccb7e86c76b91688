//! Cancelling: every call that waits for a lock returns at once, and nothing is left on the nodes.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::{CancelToken, Error, LockClient};
use support::eventually;
use support::journal::{Journal, names};
use support::locks::{
    LIMIT, LONG, all_nodes_client, gone, holders, pause, resume, take, with_long_timeout,
};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;

/// Much less than the waits that are cancelled, which have no end.
const PROMPT: Duration = Duration::from_secs(10);

#[track_caller]
fn assert_cancelled<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert_eq!(result.expect_err("it is cancelled"), Error::Cancelled);
}

#[test]
fn waiters_in_the_queue_return_at_once_and_the_holder_keeps_the_lock() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let mut held = take(&client, "held", LONG);
    let both = client.request_all(["a", "b"]).ttl(LONG).try_lock().unwrap().unwrap();
    type Wait = fn(&LockClient) -> Result<bool, Error>;
    let waits: [Wait; 5] = [
        |client| client.lock("held", LONG).map(|_| true),
        |client| client.request("held").ttl(LONG).try_lock_for(LONG).map(|lock| lock.is_some()),
        |client| client.with_lock("held", LONG, |_| Ok(true)),
        |client| client.request("held").ttl(LONG).fenced().keep_alive().lock().map(|_| true),
        |client| client.request_all(["b", "a"]).lock().map(|_| true),
    ];
    let waiting = waits.map(|wait| {
        let client = client.clone();
        spawn_waiter(move || wait(&client))
    });
    let start = Instant::now();
    client.cancel_token().cancel();
    for waiter in waiting {
        assert_cancelled(finish(waiter));
    }
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
    // Locks that are held are extended and released as ever.
    assert_eq!(holders(&servers, "held"), 3);
    held.extend(LONG).unwrap();
    assert_eq!(held.release(), Ok(()));
    drop(both);
    assert!(["held", "a", "b"].iter().all(|name| gone(&servers, name)));
}

#[test]
fn a_thread_that_pauses_between_attempts_returns_at_once() {
    let servers = Servers::start(3);
    // Pauses that would outlast the test.
    let builder = with_long_timeout(servers.urls()).retry(LONG * 20, LONG * 20).wait_for_all(true);
    let client = builder.queue(false).build().unwrap();
    let other = all_nodes_client(servers.urls());
    let held = take(&other, "held", LONG);
    let waiting = {
        let client = client.clone();
        thread::spawn(move || client.lock("held", LONG))
    };
    thread::sleep(Duration::from_millis(300));
    assert!(!waiting.is_finished());
    let start = Instant::now();
    client.cancel_token().cancel();
    assert!(eventually(LIMIT, || waiting.is_finished()), "it goes on pausing");
    assert_cancelled(waiting.join().unwrap());
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
    assert_eq!(holders(&servers, "held"), 3, "another client's lock is not touched");
    assert_eq!(held.release(), Ok(()));
    assert!(gone(&servers, "held"));
}

#[test]
fn a_lock_that_is_granted_after_the_cancellation_is_released_again() {
    let servers = Servers::start(3);
    let client = support::locks::connected(all_nodes_client(servers.urls()));
    pause(&servers, 3);
    let waiting = {
        let client = client.clone();
        thread::spawn(move || client.lock("granted", LONG))
    };
    thread::sleep(Duration::from_millis(200));
    client.cancel_token().cancel();
    assert!(!waiting.is_finished(), "the round is under way, and ends first");
    resume(&servers, 3);
    assert_cancelled(waiting.join().unwrap());
    assert!(gone(&servers, "granted"));
}

#[test]
fn after_the_cancellation_nothing_is_acquired_by_any_clone() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let handle = client.cancel_token();
    assert!(!handle.is_cancelled());
    // From another thread, by a clone, and more than once.
    let clone: CancelToken = handle.clone();
    thread::spawn(move || clone.cancel()).join().unwrap();
    handle.cancel();
    assert!(handle.is_cancelled() && client.cancel_token().is_cancelled());
    for client in [&client, &client.clone()] {
        assert_cancelled(client.lock("free", LONG));
        assert_cancelled(client.try_lock("free", LONG));
        assert_cancelled(client.request("free").ttl(LONG).try_lock_for(LIMIT));
        assert_cancelled(client.request("free").ttl(LONG).try_lock_until(Instant::now()));
        let ran = client.with_lock("free", LONG, |_| Ok(()));
        assert_cancelled(ran);
        let ran = client.request("free").try_with_lock(|_| Ok(()));
        assert!(matches!(ran, Err(Error::Cancelled)), "{ran:?}");
        assert_cancelled(client.request_all(["free", "other"]).lock());
    }
    assert_eq!(holders(&servers, "free"), 0);
    // Looking is no acquisition, and another client is not cancelled.
    assert!(client.inspect("free").is_ok());
    assert!(client.nodes().iter().all(|node| node.is_connected));
    assert_eq!(take(&all_nodes_client(servers.urls()), "free", LONG).release(), Ok(()));
}

#[test]
fn a_handle_may_outlive_its_client_and_keeps_no_connection() {
    let servers = Servers::start(1);
    let settings = with_long_timeout(servers.urls()).client_name("cancelled");
    let client = support::locks::connected(settings.build().unwrap());
    let handle = client.cancel_token();
    assert_eq!(support::locks::connections(&servers[0], "cancelled"), 1);
    drop(client);
    assert!(eventually(LIMIT, || support::locks::connections(&servers[0], "cancelled") == 0));
    handle.cancel();
    assert!(handle.is_cancelled());
}

#[test]
fn a_body_that_runs_under_a_lock_is_not_interrupted() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let value = client.with_lock("work", LONG, |lock| {
        client.cancel_token().cancel();
        assert_cancelled(client.try_lock("other", LONG));
        assert_eq!(lock.ensure_held(), Ok(()));
        Ok::<_, Error>(42)
    });
    assert_eq!(value, Ok(42));
    assert!(gone(&servers, "work"));
}

#[test]
fn a_wait_that_is_cancelled_is_reported_as_failed() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let builder = with_long_timeout(servers.urls()).wait_for_all(true).on_event(journal.recorder());
    let (client, other) = (builder.build().unwrap(), all_nodes_client(servers.urls()));
    let held = take(&other, "held", LONG);
    let waiting = {
        let client = client.clone();
        thread::spawn(move || client.lock("held", LONG))
    };
    let has_asked = || journal.entries().iter().any(|entry| entry.name == "attempt");
    assert!(eventually(LIMIT, has_asked));
    client.cancel_token().cancel();
    assert_cancelled(waiting.join().unwrap());
    let events = journal.take_lock_events();
    assert_eq!(names(&events).last(), Some(&"failed"));
    assert!(events[events.len() - 1].text.contains("cancelled"), "{events:?}");
    let is_wait = |name: &&str| ["attempt", "queued"].contains(name);
    assert!(names(&events)[..events.len() - 1].iter().all(is_wait), "{events:?}");
    drop(held);
}
