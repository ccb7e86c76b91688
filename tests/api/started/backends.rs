//! What is promised of calls that take no thread, whoever keeps the locks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::kinds::request;
use redlatch::{CancelToken, Error, Event, LockClient, LockGuard, LockRequest, Pending};
use support::backend::Backend;
use support::locks::{LIMIT, LONG};
use support::queue::{finish, spawn_waiter};
use support::tasks::{begin, block_on};
use support::{eventually, on_each_backend};

on_each_backend!(
    each_verb_takes_a_free_lock_and_waits_for_one_that_is_held,
    each_kind_of_lock_is_waited_for,
    a_call_that_is_dropped_leaves_the_queue,
    a_call_whose_token_is_cancelled_leaves_the_queue,
    calls_are_served_in_order_with_threads,
    a_hundred_wait_for_one_lock_and_for_many,
    a_listener_that_panics_ends_the_call_and_leaves_nothing,
);

#[track_caller]
fn take(client: &LockClient, name: &str) -> LockGuard {
    request(client, name).lock().expect("it is free")
}

/// Waits until so many wait for the lock in the queue of whoever keeps it.
#[track_caller]
fn await_waiters(client: &LockClient, name: &str, count: usize) {
    let are_there = || {
        let seen = client.inspect(name);
        seen.is_ok_and(|seen| seen.waiter_count == count)
    };
    assert!(eventually(LIMIT, are_there), "{count} wait for {name}");
}

/// Expects that nobody holds the lock or waits for it.
#[track_caller]
fn expect_nothing_left(client: &LockClient, name: &str) {
    await_waiters(client, name, 0);
    assert_eq!(take(client, name).release(), Ok(()));
}

fn each_verb_takes_a_free_lock_and_waits_for_one_that_is_held(backend: &Backend) {
    let holder = backend.client();
    let client = backend.client();
    let soon = Duration::from_secs(1);
    let held = block_on(request(&holder, "name").lock_async()).expect("it is free");
    let now = block_on(request(&client, "name").try_lock_async());
    assert!(matches!(now, Ok(None)), "{now:?}");
    let late = block_on(request(&client, "name").try_lock_for_async(soon));
    assert!(matches!(late, Ok(None)), "{late:?}");
    let waiting = begin(request(&client, "name").lock_async());
    await_waiters(&holder, "name", 1);
    assert_eq!(held.release(), Ok(()));
    let guard = block_on(waiting).expect("it is free");
    assert_eq!(guard.release(), Ok(()));
    let now = block_on(request(&client, "name").try_lock_async());
    drop(now.expect("no error").expect("it is free"));
    expect_nothing_left(&client, "name");
}

type Kind = for<'a> fn(LockRequest<'a>) -> LockRequest<'a>;

fn each_kind_of_lock_is_waited_for(backend: &Backend) {
    let kinds: [(&str, Kind); 4] = [
        ("fenced", |request| request.fenced()),
        ("kept", |request| request.keep_alive()),
        ("reader", |request| request.shared()),
        ("permit", |request| request.one_of(2)),
    ];
    let holder = backend.client();
    let client = backend.client();
    for (name, kind) in kinds {
        let held = take(&holder, name);
        let calls = [(); 2].map(|()| begin(kind(request(&client, name)).lock_async()));
        assert_eq!(held.release(), Ok(()));
        for call in calls {
            let guard = block_on(call).expect("it is free");
            assert_eq!(guard.release(), Ok(()));
        }
        expect_nothing_left(&client, name);
    }
    let held = take(&holder, "b");
    let set = client.request_all(["a", "b", "c"]).ttl(LONG).lock_async();
    let set = begin(set);
    assert_eq!(held.release(), Ok(()));
    let set = block_on(set).expect("they are free");
    assert_eq!(set.release(), Ok(()));
}

fn a_call_that_is_dropped_leaves_the_queue(backend: &Backend) {
    let holder = backend.client();
    let client = backend.client();
    let held = take(&holder, "name");
    // Whatever it does then: its entry is seen before the answer that tells it to wait.
    for millis in [0, 5, 20, 80] {
        // One asks, and one stands behind it in this process.
        let calls = [(); 2].map(|()| begin(request(&client, "name").lock_async()));
        await_waiters(&holder, "name", 1);
        thread::sleep(Duration::from_millis(millis));
        drop(calls);
        await_waiters(&holder, "name", 0);
    }
    assert_eq!(held.release(), Ok(()));
    expect_nothing_left(&client, "name");
}

fn a_call_whose_token_is_cancelled_leaves_the_queue(backend: &Backend) {
    let holder = backend.client();
    let client = backend.client();
    let held = take(&holder, "name");
    let token = CancelToken::new();
    let cancelled = begin(request(&client, "name").cancelled_by(&token).lock_async());
    let other = begin(request(&client, "name").lock_async());
    await_waiters(&holder, "name", 1);
    token.cancel();
    assert_eq!(block_on(cancelled).err(), Some(Error::Cancelled));
    // The next one asks now.
    await_waiters(&holder, "name", 1);
    client.cancel_token().cancel();
    assert_eq!(block_on(other).err(), Some(Error::Cancelled));
    assert_eq!(held.release(), Ok(()));
    expect_nothing_left(&holder, "name");
}

fn calls_are_served_in_order_with_threads(backend: &Backend) {
    let client = backend.client();
    let held = take(&client, "name");
    let (sender, served) = mpsc::channel();
    let mut threads = Vec::new();
    for number in 0..6 {
        let sender = sender.clone();
        if number % 2 == 0 {
            request(&client, "name").lock_async().then(move |lock| {
                sender.send(number).expect("the test waits");
                drop(lock);
            });
            continue;
        }
        let client = client.clone();
        threads.push(spawn_waiter(move || {
            let lock = request(&client, "name").lock();
            sender.send(number).expect("the test waits");
            drop(lock);
        }));
    }
    drop(held);
    let order = [(); 6].map(|()| served.recv_timeout(LIMIT).expect("all are served"));
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    threads.into_iter().for_each(finish);
    expect_nothing_left(&client, "name");
}

fn a_hundred_wait_for_one_lock_and_for_many(backend: &Backend) {
    let holder = backend.client();
    let client = backend.client();
    let names: Vec<String> = (0..100).map(|number| format!("n{}", number % 50)).collect();
    let held: Vec<_> = names[..50].iter().map(|name| take(&holder, name)).collect();
    let start = |name: &String| begin(request(&client, name).lock_async());
    let calls: Vec<Pending<LockGuard>> = names.iter().map(start).collect();
    await_waiters(&holder, &names[49], 1);
    drop(held);
    for call in calls {
        let guard = block_on(call).expect("it is free");
        assert_eq!(guard.release(), Ok(()));
    }
}

fn a_listener_that_panics_ends_the_call_and_leaves_nothing(backend: &Backend) {
    let holder = backend.client();
    let held = take(&holder, "name");
    let builder = backend.builder().on_event(|event| {
        assert!(!matches!(event, Event::Queued { .. }), "on purpose");
    });
    let client = builder.build().expect("the settings are good");
    let waiting = begin(request(&client, "name").lock_async());
    let result = catch_unwind(AssertUnwindSafe(|| block_on(waiting)));
    let panic = result.expect_err("the listener panics");
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    drop(block_on(request(&client, "free").lock_async()).expect("it is free"));
    assert_eq!(held.release(), Ok(()));
    expect_nothing_left(&holder, "name");
}
