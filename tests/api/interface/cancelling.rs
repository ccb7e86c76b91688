//! Cancelling: each call that waits returns at once, leaves nothing behind, and disturbs no other.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redlatch::{CancelToken, Error, Event, LockClient, LockGuard, LockRequest};
use support::backend::Backend;
use support::journal::{Journal, names};
use support::queue::{finish, spawn_waiter};
use support::waiters::await_in_order;
use support::{eventually, on_each_backend};

use super::{LIMIT, LONG, is_taken, take, take_next};

on_each_backend!(
    all_ways_to_wait_are_cancelled_at_once,
    after_the_cancellation_nothing_is_acquired_by_any_clone,
    a_body_that_runs_under_a_lock_is_not_interrupted,
    one_token_cancels_calls_of_several_clients_and_no_lock_that_is_held,
    readers_permits_and_sets_are_cancelled_one_by_one,
    threads_behind_a_cancelled_one_are_served_in_order,
    a_call_that_is_cancelled_by_its_own_callback_is_reported_as_failed,
);

/// Much less than the waits that are cancelled, which have no end.
const PROMPT: Duration = Duration::from_secs(10);

type Waiting = JoinHandle<Result<Result<(), Error>, Error>>;

/// Waits for the lock in a thread of its own, until it gets it or is cancelled.
fn wait(
    client: &LockClient,
    name: &'static str,
    token: &CancelToken,
    ask: for<'a> fn(LockRequest<'a>) -> LockRequest<'a>,
) -> Waiting {
    let client = client.clone();
    let token = token.clone();
    spawn_waiter(move || {
        let request = client.request(name).ttl(LONG).cancelled_by(&token);
        ask(request).lock().map(LockGuard::release)
    })
}

#[track_caller]
fn assert_cancelled(waiting: impl IntoIterator<Item = Waiting>) {
    let began = Instant::now();
    for waiting in waiting {
        assert_eq!(finish(waiting), Err(Error::Cancelled));
    }
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
}

#[track_caller]
fn await_nobody_waits(client: &LockClient, name: &str) {
    let is_so = || {
        client
            .inspect(name)
            .is_ok_and(|seen| seen.waiter_count == 0)
    };
    assert!(
        eventually(LIMIT, is_so),
        "a place in the queue of {name} is left"
    );
}

fn all_ways_to_wait_are_cancelled_at_once(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let mut held = take(&client, "held");
    let both = client
        .request_all(["a", "b"])
        .ttl(LONG)
        .try_lock()
        .unwrap()
        .unwrap();
    let theirs = take(&other, "theirs");
    type Wait = fn(&LockClient) -> Result<Result<(), Error>, Error>;
    let waits: [Wait; 6] = [
        |client| client.lock("held", LONG).map(LockGuard::release),
        |client| {
            client
                .request("held")
                .ttl(LONG)
                .try_lock_for(LONG)
                .map(|_| Ok(()))
        },
        |client| client.with_lock("held", LONG, |_| Ok(Ok(()))),
        |client| {
            client
                .request("held")
                .ttl(LONG)
                .fenced()
                .keep_alive()
                .lock()
                .map(|_| Ok(()))
        },
        |client| client.request_all(["b", "a"]).lock().map(|_| Ok(())),
        |client| client.lock("theirs", LONG).map(LockGuard::release),
    ];
    let waiting = waits.map(|wait| {
        let client = client.clone();
        spawn_waiter(move || wait(&client))
    });
    await_in_order(&other, "theirs", 1);
    client.cancel_token().cancel();
    assert_cancelled(waiting);
    // Locks that are held are extended and released as ever.
    assert!(is_taken(&other, "held"));
    held.extend(LONG).unwrap();
    assert_eq!(held.release(), Ok(()));
    drop(both);
    ["held", "a", "b"]
        .iter()
        .for_each(|name| drop(take_next(&other, name)));
    await_nobody_waits(&other, "theirs");
    assert_eq!(theirs.release(), Ok(()));
}

fn after_the_cancellation_nothing_is_acquired_by_any_clone(backend: &Backend) {
    let client = backend.client();
    let handle = client.cancel_token();
    assert!(!handle.is_cancelled());
    // From another thread, by a clone, and more than once.
    let clone: CancelToken = handle.clone();
    thread::spawn(move || clone.cancel()).join().unwrap();
    handle.cancel();
    assert!(handle.is_cancelled() && client.cancel_token().is_cancelled());
    for client in [&client, &client.clone()] {
        let request = || client.request("free").ttl(LONG);
        let results = [
            client.lock("free", LONG).map(drop),
            client.try_lock("free", LONG).map(drop),
            request().try_lock_for(LIMIT).map(drop),
            request().try_lock_until(Instant::now()).map(drop),
            request().shared().lock().map(drop),
            request().one_of(2).keep_alive().lock().map(drop),
            request().try_with_lock(|_| Ok(())).map(drop),
            client.with_lock("free", LONG, |_| Ok(())),
            client.request_all(["free", "other"]).lock().map(drop),
        ];
        assert!(
            results.iter().all(|it| *it == Err(Error::Cancelled)),
            "{results:?}"
        );
    }
    // Looking is not an acquisition, and another client is not cancelled.
    assert!(client.inspect("free").is_ok());
    assert_eq!(take(&backend.client(), "free").release(), Ok(()));
}

fn a_body_that_runs_under_a_lock_is_not_interrupted(backend: &Backend) {
    let client = backend.client();
    let value = client.with_lock("work", LONG, |lock| {
        client.cancel_token().cancel();
        assert_eq!(
            client.try_lock("other", LONG).map(drop),
            Err(Error::Cancelled)
        );
        assert_eq!(lock.ensure_held(), Ok(()));
        Ok::<_, Error>(42)
    });
    assert_eq!(value, Ok(42));
    drop(take_next(&backend.client(), "work"));
}

fn one_token_cancels_calls_of_several_clients_and_no_lock_that_is_held(backend: &Backend) {
    let holder = backend.client();
    let clients = [backend.client(), backend.client()];
    let held = take(&holder, "name");
    let token = CancelToken::new();
    let mine = clients[0]
        .request("mine")
        .ttl(LONG)
        .cancelled_by(&token)
        .lock()
        .unwrap();
    let waiting = clients
        .each_ref()
        .map(|client| wait(client, "name", &token, |it| it));
    await_in_order(&holder, "name", 2);
    let canceller = token.clone();
    thread::spawn(move || canceller.cancel()).join().unwrap();
    assert_cancelled(waiting);
    await_nobody_waits(&holder, "name");
    assert!(is_taken(&clients[1], "name"));
    assert_eq!((mine.release(), held.release()), (Ok(()), Ok(())));
    // It is cancelled for calls that come later, too, and for no call without it.
    let request = || clients[0].request("name").ttl(LONG);
    assert_eq!(
        request().cancelled_by(&token).try_lock().map(drop),
        Err(Error::Cancelled)
    );
    assert!(
        request()
            .cancelled_by(&CancelToken::new())
            .try_lock()
            .unwrap()
            .is_some()
    );
    drop(take_next(&clients[0], "name"));
}

fn readers_permits_and_sets_are_cancelled_one_by_one(backend: &Backend) {
    let holder = backend.client();
    let client = backend.client();
    let held = ["books", "gpu", "x"].map(|name| take(&holder, name));
    let [cancelled, kept] = [(); 2].map(|()| CancelToken::new());
    let waits = |token: &CancelToken| {
        let set = (client.clone(), token.clone());
        let set = spawn_waiter(move || {
            let request = set.0.request_all(["x", "y"]).ttl(LONG).cancelled_by(&set.1);
            request.lock().map(LockGuard::release)
        });
        [
            wait(&client, "books", token, |request| {
                request.ttl(LONG).shared()
            }),
            wait(&client, "gpu", token, |request| {
                request.one_of(2).keep_alive()
            }),
            set,
        ]
    };
    let ending = waits(&cancelled);
    let staying = waits(&kept);
    cancelled.cancel();
    assert_cancelled(ending);
    drop(held);
    for waiting in staying {
        assert_eq!(finish(waiting), Ok(Ok(())));
    }
    ["books", "gpu", "x", "y"]
        .iter()
        .for_each(|name| drop(take_next(&holder, name)));
}

fn threads_behind_a_cancelled_one_are_served_in_order(backend: &Backend) {
    for io_thread in [false, true] {
        let holder = backend.client();
        let held = take(&holder, "name");
        let client = backend.builder().io_thread(io_thread).build().unwrap();
        let token = CancelToken::new();
        // The first is the head, and in the queue of all clients; the others wait in this process.
        let first = wait(&client, "name", &token, |request| request);
        await_in_order(&holder, "name", 1);
        let behind = wait(&client, "name", &token, |request| {
            request.fenced().keep_alive()
        });
        let order: Arc<Mutex<Vec<u32>>> = Arc::default();
        let wait_in_line = |number| {
            let client = client.clone();
            let order = Arc::clone(&order);
            spawn_waiter(move || {
                let guard = client.lock("name", LONG).unwrap();
                order.lock().unwrap().push(number);
                guard.release()
            })
        };
        let second = wait_in_line(2);
        let between = wait(&client, "name", &token, |request| request);
        let third = wait_in_line(3);
        token.cancel();
        assert_cancelled([first, behind, between]);
        // The next one is the head now.
        await_in_order(&holder, "name", 1);
        assert!(order.lock().unwrap().is_empty());
        drop(held);
        assert_eq!([second, third].map(finish), [Ok(()), Ok(())]);
        assert_eq!(*order.lock().unwrap(), [2, 3]);
    }
}

fn a_call_that_is_cancelled_by_its_own_callback_is_reported_as_failed(backend: &Backend) {
    let journal = Journal::default();
    let token = CancelToken::new();
    let record = journal.recorder();
    let cancelling = token.clone();
    let settings = backend.builder().on_event(move |event| {
        record(event);
        if matches!(event, Event::Queued { .. }) {
            cancelling.cancel();
        }
    });
    let client = settings.build().unwrap();
    let holder = backend.client();
    let held = take(&holder, "name");
    assert_cancelled([wait(&client, "name", &token, |request| request)]);
    let mut events = journal.take_lock_events();
    // Redlock's attempt comes before its place in the queue, that of a contender is its place.
    events.retain(|event| event.name != "attempt");
    assert_eq!(names(&events), ["queued", "failed"]);
    assert!(events[1].text.contains("cancelled"), "{events:?}");
    await_nobody_waits(&holder, "name");
    assert_eq!(held.release(), Ok(()));
}
