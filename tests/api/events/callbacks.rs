//! A callback may use the client that calls it, and may panic.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use redlatch::{Builder, Event, LockClient};
use support::eventually;
use support::journal::{Entry, Journal, names};
use support::locks::{LIMIT, LONG, all_nodes_client, gone, holders, take, with_long_timeout};
use support::queue::finish;
use support::servers::Servers;

fn builder(servers: &Servers) -> Builder {
    with_long_timeout(servers.urls())
        .wait_for_all(true)
        .restart_guard(false)
}

/// A client whose callback panics at events of this kind, a given number of times.
fn panicking(servers: &Servers, kind: &'static str) -> (LockClient, Arc<AtomicUsize>) {
    let panics = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&panics);
    let client = builder(servers).on_event(move |event| {
        if event.name() == kind {
            count.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose");
        }
    });
    (client.build().expect("the settings are good"), panics)
}

#[test]
fn a_callback_may_use_the_client_that_calls_it() {
    let servers = Servers::start(3);
    let cell: Arc<OnceLock<LockClient>> = Arc::default();
    let inner = Arc::downgrade(&cell);
    let journal = Journal::default();
    let write = journal.recorder();
    let gots = Arc::new(Mutex::new(Vec::new()));
    let got = Arc::clone(&gots);
    let client = builder(&servers).on_event(move |event| {
        write(event);
        let Some(client) = inner.upgrade().and_then(|cell| cell.get().cloned()) else {
            return;
        };
        // Another lock, and the same lock: without a time limit if it is free.
        client.lock("other", LONG).unwrap().release().unwrap();
        client.lock("another", LONG).unwrap().extend(LONG).unwrap();
        assert_eq!(client.nodes().len(), 3);
        if event.resource().is_some_and(|resource| resource == "same") {
            let is_free = event.name() == "released";
            let same = if is_free {
                Some(client.lock("same", LONG).unwrap())
            } else {
                client.try_lock("same", LONG).unwrap()
            };
            got.lock().unwrap().push((event.name(), same.is_some()));
        }
    });
    let client = cell.get_or_init(|| client.build().unwrap());
    // A released lock is free when its event is reported.
    for give_back in [drop, |guard: redlatch::LockGuard| drop(guard.release())] {
        let guard = take(client, "same", LONG);
        gots.lock().unwrap().clear();
        give_back(guard);
        assert_eq!(*gots.lock().unwrap(), [("released", true)]);
    }
    take(client, "same", LONG).release().unwrap();
    let events = [("attempt", false), ("acquired", false), ("released", true)];
    assert_eq!(gots.lock().unwrap()[1..], events);
    assert!(
        journal
            .take_lock_events()
            .iter()
            .all(|entry| entry.about == "same"),
        "a callback's own calls cause no events"
    );
    assert!(gone(&servers, "same") && gone(&servers, "other") && gone(&servers, "another"));
}

/// The callback for events of this kind ends the other client's lock, and waits for the lock.
#[track_caller]
fn waits_in_a_callback(kind: &'static str, builder: impl Fn(&Servers) -> Builder) {
    let servers = Servers::start(3);
    let others = all_nodes_client(servers.urls());
    let held = Mutex::new(Some(take(&others, "same", LONG)));
    let cell: Arc<OnceLock<LockClient>> = Arc::default();
    let inner: Weak<OnceLock<LockClient>> = Arc::downgrade(&cell);
    let client = builder(&servers).on_event(move |event| {
        // Called by a thread that waits for this lock, at the head of its wait queue.
        if event.name() == kind && held.lock().unwrap().take().is_some() {
            let Some(client) = inner.upgrade().and_then(|cell| cell.get().cloned()) else {
                return;
            };
            client.lock("same", LONG).unwrap().release().unwrap();
        }
    });
    let client = cell.get_or_init(|| client.build().unwrap()).clone();
    let guard = finish(thread::spawn(move || client.lock("same", LONG).unwrap()));
    assert_eq!(holders(&servers, "same"), 3);
    drop(guard);
}

#[test]
fn a_callback_does_not_wait_behind_the_call_that_reports_to_it() {
    waits_in_a_callback("attempt", builder);
    waits_in_a_callback("attempt", |servers| builder(servers).queue(false));
}

#[test]
fn a_callback_waits_behind_its_call_in_the_nodes_queue_until_that_place_expires() {
    let second = Duration::from_secs(1);
    waits_in_a_callback("queued", |servers| {
        builder(servers)
            .node_timeout(second)
            .waiter_lease(second * 2)
    });
}

#[test]
fn handoffs_and_callbacks_that_acquire_the_same_lock_do_not_deadlock() {
    let servers = Servers::start(3);
    let cell: Arc<OnceLock<LockClient>> = Arc::default();
    let inner = Arc::downgrade(&cell);
    let journal = Journal::default();
    let write = journal.recorder();
    let client = builder(&servers).on_event(move |event| {
        write(event);
        if matches!(event, Event::Released { .. }) {
            let Some(client) = inner.upgrade().and_then(|cell| cell.get().cloned()) else {
                return;
            };
            drop(client.lock("round", LONG).unwrap());
        }
    });
    let client = cell.get_or_init(|| client.build().unwrap());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| drop(client.lock("round", LONG).unwrap())));
        }
    });
    let events = journal.take_lock_events();
    let count = |name| {
        events
            .iter()
            .filter(|entry: &&Entry| entry.name == name)
            .count()
    };
    assert_eq!(
        (count("acquired"), count("released"), count("lost")),
        (40, 40, 0)
    );
    assert!(gone(&servers, "round"));
}

#[test]
fn a_panic_while_a_lock_is_acquired_reaches_the_caller_and_leaves_no_lock() {
    let servers = Servers::start(3);
    for kind in ["node_up", "attempt", "acquired"] {
        let (client, panics) = panicking(&servers, kind);
        let taking = catch_unwind(AssertUnwindSafe(|| client.try_lock("panic", LONG)));
        let payload = taking.expect_err("the caller gets the panic");
        assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
        // Also while the guard is dropped, if that causes more events of this kind.
        assert!(panics.load(Ordering::Relaxed) > 0);
        assert!(gone(&servers, "panic"), "{kind}: it was released");
        // The wait queue goes on: this call returns, with or without a panic.
        let other = client.clone();
        let locking = move || catch_unwind(AssertUnwindSafe(|| other.lock("panic", LONG)));
        drop(finish(thread::spawn(locking)));
        assert!(gone(&servers, "panic"));
    }
}

#[test]
fn a_panic_between_two_attempts_leaves_nothing_behind() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "panic", LONG);
    let (client, _) = panicking(&servers, "attempt");
    let taking = catch_unwind(AssertUnwindSafe(|| client.lock("panic", LONG)));
    assert!(taking.is_err());
    held.release().unwrap();
    assert!(gone(&servers, "panic"));
}

#[test]
fn a_panic_while_a_lock_is_held_reaches_the_caller_and_changes_nothing() {
    let servers = Servers::start(3);
    let (client, _) = panicking(&servers, "extended");
    let mut guard = take(&client, "panic", LONG / 2);
    assert!(catch_unwind(AssertUnwindSafe(|| guard.extend(LONG))).is_err());
    assert!(guard.remaining() > LONG / 2, "it was extended anyway");
    assert_eq!(guard.release(), Ok(()));

    let (client, _) = panicking(&servers, "released");
    let guard = take(&client, "panic", LONG);
    assert!(catch_unwind(AssertUnwindSafe(|| guard.release())).is_err());
    assert_eq!(holders(&servers, "panic"), 0, "it was released before");
    take(&all_nodes_client(servers.urls()), "panic", LONG)
        .release()
        .unwrap();
}

#[test]
fn a_panic_of_a_callback_in_a_drop_is_caught() {
    let servers = Servers::start(3);
    let (client, panics) = panicking(&servers, "released");
    drop(take(&client, "panic", LONG));
    assert_eq!(panics.load(Ordering::Relaxed), 1);
    assert!(gone(&servers, "panic"));
    // Also while the thread is panicking already, when a second panic would abort the process.
    let other = client.clone();
    let working = thread::spawn(move || {
        let _guard = take(&other, "panic", LONG);
        panic!("the work went wrong");
    });
    assert!(eventually(LIMIT, || working.is_finished()));
    let payload = working.join().expect_err("that panic is not lost");
    assert_eq!(payload.downcast_ref(), Some(&"the work went wrong"));
    assert_eq!(panics.load(Ordering::Relaxed), 2);
    assert!(gone(&servers, "panic"));
}

#[test]
fn the_last_callback_replaces_earlier_ones() {
    let servers = Servers::start(1);
    let first = Journal::default();
    let last = Journal::default();
    let builder = builder(&servers)
        .on_event(first.recorder())
        .on_event(last.recorder());
    drop(take(
        &builder.build().unwrap(),
        "any",
        Duration::from_secs(1),
    ));
    assert_eq!(
        names(&last.entries()),
        ["node_up", "attempt", "acquired", "released"]
    );
    assert_eq!(first.entries().len(), 0);
}
