//! Releases without a thread: what they return, that they leave nothing, and that what a guard does
//! when it is dropped is done where they are.

use std::sync::mpsc;
use std::task::Waker;
use std::time::Duration;

use super::kinds::{KINDS, Kind, is_free, request};
use redlatch::{Error, LossReason, Released};
use support::backend::Backend;
use support::locks::{
    BRIEF, LIMIT, LONG, connected, holders, pause, report_texts, resume, take,
    without_restart_guard,
};
use support::servers::Servers;
use support::tasks::{begin, block_on, poll_with};
use support::waiters::await_keys;
use support::{eventually, on_each_backend};

on_each_backend!(
    each_kind_of_lock_is_released_as_by_a_thread,
    the_next_call_of_this_client_gets_the_lock,
    a_release_that_never_begins_drops_the_guard,
    a_release_that_is_dropped_goes_on,
    a_release_after_the_validity_says_so,
    a_lock_that_is_held_at_least_for_a_time_stays_taken,
    a_callback_gets_the_result,
);

fn each_kind_of_lock_is_released_as_by_a_thread(backend: &Backend) {
    let (client, journal) = backend.recorded_client();
    let other = backend.client();
    let take = |name, kind: Kind| kind(request(&client, name)).lock().expect("it is free");
    let take_set = || {
        let set = client.request_all(["a", "b", "c"]).ttl(LONG);
        set.lock().expect("they are free")
    };
    let released = || {
        let entries = journal.take_lock_events();
        let of_releases = entries.into_iter().filter(|it| it.name == "released");
        of_releases.map(|it| (it.about, it.released)).collect()
    };
    for (name, kind) in KINDS {
        take(name, kind).release().expect("it is held");
        let by_thread: Vec<(String, Option<Released>)> = released();
        assert_eq!(by_thread, [(name.to_owned(), Some(Released::InTime))]);
        let guard = take(name, kind);
        assert!(!is_free(&other, name), "{name}");
        assert_eq!(block_on(guard.release_async()), Ok(()));
        assert!(is_free(&other, name), "{name}");
        assert_eq!(released(), by_thread);
    }
    assert_eq!(block_on(take_set().release_async()), Ok(()));
    assert_eq!(released(), [("a".to_owned(), Some(Released::InTime))]);
    for name in ["a", "b", "c"] {
        assert!(is_free(&other, name), "{name}");
    }
}

fn the_next_call_of_this_client_gets_the_lock(backend: &Backend) {
    let (client, journal) = backend.recorded_client();
    let held = request(&client, "name").lock().expect("it is free");
    let next = begin(request(&client, "name").lock_async());
    assert_eq!(block_on(held.release_async()), Ok(()));
    let guard = block_on(next).expect("it is handed on");
    assert_eq!(guard.release(), Ok(()));
    let entries = journal.take_lock_events();
    let queued = entries.iter().filter(|it| it.name == "queued");
    assert_eq!(queued.count(), 0, "it was not handed on: {entries:?}");
    // Of readers, the first to release leaves the lock to the other.
    let [first, second] = [(); 2].map(|()| {
        let reader = request(&client, "read").shared();
        block_on(reader.lock_async()).expect("readers share it")
    });
    assert_eq!(block_on(first.release_async()), Ok(()));
    assert!(!is_free(&backend.client(), "read"));
    assert_eq!(block_on(second.release_async()), Ok(()));
    assert!(is_free(&backend.client(), "read"));
}

fn a_release_that_never_begins_drops_the_guard(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let pending = request(&client, "name").lock().expect("it is free");
    let pending = pending.release_async();
    assert!(!is_free(&other, "name"), "nothing has begun");
    drop(pending);
    assert!(eventually(LIMIT, || is_free(&other, "name")));
}

fn a_release_that_is_dropped_goes_on(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    for _ in 0..3 {
        let guard = request(&client, "name").lock().expect("it is free");
        let mut release = guard.release_async();
        let _ = poll_with(&mut release, Waker::noop());
        drop(release);
        assert!(eventually(LIMIT, || is_free(&other, "name")));
    }
}

fn a_release_after_the_validity_says_so(backend: &Backend) {
    let (client, journal) = backend.recorded_client();
    let guard = client.lock("name", BRIEF).expect("it is free");
    assert!(eventually(LIMIT, || guard.remaining().is_zero()));
    let result = block_on(guard.release_async());
    let Err(Error::Lost(lost)) = result else {
        panic!("{result:?}");
    };
    assert_eq!(lost.reason(), LossReason::Expired);
    assert_eq!(lost.resource().as_bytes(), b"name");
    let entries = journal.take_lock_events();
    let count = |name| entries.iter().filter(|it| it.name == name).count();
    assert_eq!((count("lost"), count("released")), (1, 1), "{entries:?}");
}

fn a_lock_that_is_held_at_least_for_a_time_stays_taken(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let least = Duration::from_secs(2);
    let guard = request(&client, "name").hold_at_least(least).lock();
    let guard = guard.expect("it is free");
    assert_eq!(block_on(guard.release_async()), Ok(()));
    assert!(!is_free(&other, "name"));
    assert!(eventually(LIMIT, || is_free(&other, "name")));
}

fn a_callback_gets_the_result(backend: &Backend) {
    let client = backend.client();
    let guard = request(&client, "name").lock().expect("it is free");
    let (sender, receiver) = mpsc::channel();
    guard.release_async().then(move |result| {
        sender.send(result).expect("the test waits");
    });
    let result = receiver.recv_timeout(LIMIT).expect("it is called");
    assert_eq!(result, Ok(()));
    assert!(is_free(&backend.client(), "name"));
}

#[test]
fn a_release_without_a_majority_says_which_nodes_have_not_answered() {
    let servers = Servers::start(3);
    let settings = without_restart_guard(servers.urls());
    let settings = settings.node_timeout(Duration::from_millis(300));
    let client = connected(settings.build().expect("the settings are good"));
    let guard = take(&client, "name", LONG);
    pause(&servers, 2);
    let result = block_on(guard.release_async());
    resume(&servers, 2);
    let Err(Error::NoQuorum(error)) = result else {
        panic!("{result:?}");
    };
    let texts = report_texts(&error);
    assert_eq!(texts.len(), 3, "{texts:?}");
    // It is carried out nevertheless.
    await_keys(&servers, &[]);
}

/// More than may be under way at a time have begun and are not answered.
#[test]
fn a_release_does_not_stand_in_line_behind_calls_that_take_locks() {
    let servers = Servers::start(3);
    let settings = without_restart_guard(servers.urls()).node_timeout(2 * LIMIT);
    let client = connected(settings.build().expect("the settings are good"));
    let guard = take(&client, "held", LONG);
    assert!(eventually(LIMIT, || holders(&servers, "held") == 3));
    pause(&servers, 2);
    let calls: Vec<_> = (0..400)
        .map(|number| {
            let name = format!("n{number}");
            begin(client.request(name).ttl(LONG).lock_async())
        })
        .collect();
    let release = begin(guard.release_async());
    let is_removed = eventually(LIMIT, || holders(&servers[2..], "held") == 0);
    // First: the end of the client waits for what the nodes answer.
    resume(&servers, 2);
    assert!(is_removed);
    assert_eq!(block_on(release), Ok(()));
    drop(calls);
    await_keys(&servers, &[]);
}
