//! Cancelling single calls: each returns at once from wherever it waits, leaves nothing on the
//! nodes, and disturbs no other.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redlatch::{CancelToken, Error, LockClient, LockGuard, LockRequest};
use support::eventually;
use support::journal::{Journal, names};
use support::locks::{LIMIT, LONG, connections, holders, pause, resume, take, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{BY_PUSH, LONG_LEASE, await_keys, await_queued, holder, pushed, with_lease};

/// A way to request a lock.
type Ask = for<'a> fn(LockRequest<'a>) -> LockRequest<'a>;

/// Waits for the lock in a thread of its own, until it gets it or is cancelled.
fn wait(client: &LockClient, name: &'static str, token: &CancelToken, ask: Ask) -> Waiting {
    let (client, token) = (client.clone(), token.clone());
    spawn_waiter(move || {
        let request = client.request(name).ttl(LONG).cancelled_by(&token);
        ask(request).lock().map(LockGuard::release)
    })
}

type Waiting = JoinHandle<Result<Result<(), Error>, Error>>;

#[track_caller]
fn assert_cancelled(waiting: Waiting) {
    assert_eq!(finish(waiting), Err(Error::Cancelled));
}

#[test]
fn a_call_that_is_cancelled_before_it_begins_sends_nothing() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).client_name("silent").build().unwrap();
    let token = CancelToken::new();
    token.cancel();
    let request = || client.request("free").ttl(LONG).cancelled_by(&token);
    let results = [
        request().lock().map(|_| ()),
        request().try_lock().map(|_| ()),
        request().try_lock_for(LONG).map(|_| ()),
        request().try_lock_until(Instant::now() + LONG).map(|_| ()),
        request().shared().lock().map(|_| ()),
        request().one_of(2).keep_alive().lock().map(|_| ()),
        client.request_all(["a", "b"]).cancelled_by(&token).lock().map(|_| ()),
    ];
    assert!(results.iter().all(|result| *result == Err(Error::Cancelled)), "{results:?}");
    let ran = request().with_lock(|_| Ok::<_, Error>(()));
    assert_eq!(ran, Err(Error::Cancelled));
    assert!(servers.iter().all(|server| connections(server, "silent") == 0));
    // Only calls with this token are cancelled.
    assert_eq!(take(&client, "free", LONG).release(), Ok(()));
    let other = CancelToken::new();
    assert!(client.request("free").cancelled_by(&other).try_lock().unwrap().is_some());
}

#[test]
fn threads_behind_a_cancelled_one_are_served_in_order() {
    for io_thread in [false, true] {
        let servers = Servers::start(3);
        let held = take(&holder(servers.urls()), "name", LONG);
        let settings = with_lease(servers.urls(), LONG_LEASE).io_thread(io_thread);
        let client = settings.build().unwrap();
        let token = CancelToken::new();
        // The first is the head, and in the nodes' queue; the others wait in this process.
        let first = wait(&client, "name", &token, |request| request);
        await_queued(&servers, "name", 1);
        let behind = wait(&client, "name", &token, |request| request.fenced().keep_alive());
        let order: Arc<Mutex<Vec<u32>>> = Arc::default();
        let wait_in_line = |number| {
            let (client, order) = (client.clone(), Arc::clone(&order));
            spawn_waiter(move || {
                let guard = client.lock("name", LONG).unwrap();
                order.lock().unwrap().push(number);
                guard.release()
            })
        };
        let second = wait_in_line(2);
        let between = wait(&client, "name", &token, |request| request);
        let third = wait_in_line(3);
        let start = Instant::now();
        token.cancel();
        [first, behind, between].into_iter().for_each(assert_cancelled);
        assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
        // The next one is the head now.
        await_queued(&servers, "name", 1);
        assert!(order.lock().unwrap().is_empty());
        let start = Instant::now();
        drop(held);
        let released = [second, third].map(finish);
        assert_eq!(released, [(); 2].map(|()| Ok(())));
        assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
        assert_eq!(*order.lock().unwrap(), [2, 3]);
        await_keys(&servers, &[]);
    }
}

/// Cancels one of two calls of a client, which both wait. How long it takes to return.
fn cancel_a_leader(io_thread: bool) -> Duration {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let [a, b] = ["a", "b"].map(|name| take(&holder, name, LONG));
    let settings = with_lease(servers.urls(), LONG_LEASE).io_thread(io_thread);
    let client = settings.build().expect("the settings are good");
    let [leading, other] = [(); 2].map(|()| CancelToken::new());
    // Without an I/O thread, the first of them drives the connections for both.
    let first = wait(&client, "a", &leading, |request| request);
    await_queued(&servers, "a", 1);
    let second = wait(&client, "b", &other, |request| request);
    await_queued(&servers, "b", 1);
    let start = Instant::now();
    leading.cancel();
    assert_cancelled(first);
    let took = start.elapsed();
    await_queued(&servers, "a", 0);
    assert_eq!(b.release(), Ok(()));
    assert_eq!(finish(second), Ok(Ok(())));
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    drop(a);
    await_keys(&servers, &[]);
    took
}

#[test]
fn a_leader_that_is_cancelled_leaves_the_others_to_their_waits() {
    for io_thread in [false, true] {
        // Its next renewal, after which it would see it, is a second away.
        let is_prompt = |_| cancel_a_leader(io_thread) < Duration::from_millis(400);
        assert!((0..5).any(is_prompt), "with an I/O thread: {io_thread}");
    }
}

#[test]
fn readers_permits_and_sets_are_cancelled_one_by_one() {
    let servers = Servers::start(3);
    let (holder, client) = (holder(servers.urls()), pushed(servers.urls()));
    let held = ["books", "gpu", "x"].map(|name| take(&holder, name, LONG));
    let [cancelled, kept] = [(); 2].map(|()| CancelToken::new());
    let waits = |token: &CancelToken| {
        let set = (client.clone(), token.clone());
        let set = spawn_waiter(move || {
            let request = set.0.request_all(["x", "y"]).ttl(LONG).cancelled_by(&set.1);
            request.lock().map(LockGuard::release)
        });
        [
            wait(&client, "books", token, |request| request.ttl(LONG).shared()),
            wait(&client, "gpu", token, |request| request.one_of(2).keep_alive()),
            set,
        ]
    };
    let (ending, staying) = (waits(&cancelled), waits(&kept));
    ["books", "gpu"].iter().for_each(|name| await_queued(&servers, name, 2));
    let start = Instant::now();
    cancelled.cancel();
    ending.into_iter().for_each(assert_cancelled);
    ["books", "gpu"].iter().for_each(|name| await_queued(&servers, name, 1));
    drop(held);
    for waiting in staying {
        assert_eq!(finish(waiting), Ok(Ok(())));
    }
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    await_keys(&servers, &[]);
}

#[test]
fn a_pause_between_attempts_ends_at_once_and_only_for_that_call() {
    let servers = Servers::start(3);
    // Pauses that would outlast the test.
    let settings = with_long_timeout(servers.urls()).retry(LONG * 20, LONG * 20);
    let client = settings.queue(false).build().unwrap();
    let held = take(&holder(servers.urls()), "held", LONG);
    let [cancelled, kept] = [(); 2].map(|()| CancelToken::new());
    let waiting = wait(&client, "held", &cancelled, |request| request.ttl(LONG).shared());
    let pausing = wait(&client, "held", &kept, |request| request.ttl(LONG).shared());
    let start = Instant::now();
    cancelled.cancel();
    assert_cancelled(waiting);
    assert!(!pausing.is_finished());
    client.cancel_token().cancel();
    assert_cancelled(pausing);
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    assert_eq!(held.release(), Ok(()));
    await_keys(&servers, &[]);
}

#[test]
fn a_lock_that_is_granted_after_the_cancellation_goes_to_the_next_thread() {
    let servers = Servers::start(3);
    let client = support::locks::connected(with_long_timeout(servers.urls()).build().unwrap());
    let token = CancelToken::new();
    pause(&servers, 3);
    let granted = wait(&client, "name", &token, |request| request);
    let next = wait(&client, "name", &CancelToken::new(), |request| request.ttl(LONG).fenced());
    token.cancel();
    assert!(!granted.is_finished(), "the round is under way, and ends first");
    resume(&servers, 3);
    assert_cancelled(granted);
    assert_eq!(finish(next), Ok(Ok(())));
    await_keys(&servers, &[]);
}

#[test]
fn one_token_cancels_calls_of_several_clients_and_no_lock_that_is_held() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    let clients = [pushed(servers.urls()), pushed(servers.urls())];
    let token = CancelToken::new();
    let mine = clients[0].request("mine").ttl(LONG).cancelled_by(&token).lock().unwrap();
    let waiting = clients.each_ref().map(|client| wait(client, "name", &token, |it| it));
    await_queued(&servers, "name", 2);
    thread::spawn(move || token.cancel()).join().unwrap();
    waiting.into_iter().for_each(assert_cancelled);
    assert_eq!(holders(&servers, "name"), 3);
    assert_eq!(mine.release(), Ok(()));
    drop(held);
    await_keys(&servers, &[]);
}

#[test]
fn a_cancelled_call_is_reported_as_failed_and_leaves_its_place() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let settings = with_lease(servers.urls(), LONG_LEASE).on_event(journal.recorder());
    let client = settings.build().unwrap();
    let held = take(&holder(servers.urls()), "name", LONG);
    let token = CancelToken::new();
    let waiting = wait(&client, "name", &token, |request| request);
    await_queued(&servers, "name", 1);
    token.cancel();
    assert_cancelled(waiting);
    await_queued(&servers, "name", 0);
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "queued", "failed"]);
    assert!(events[2].text.contains("cancelled"), "{events:?}");
    drop(held);
}

#[test]
fn a_callback_may_cancel_the_call_that_it_belongs_to() {
    let servers = Servers::start(3);
    let token = CancelToken::new();
    let cancelling = token.clone();
    let settings = with_lease(servers.urls(), LONG_LEASE);
    let settings = settings.on_event(move |event| {
        if matches!(event, redlatch::Event::Queued { .. }) {
            cancelling.cancel();
        }
    });
    let client = settings.build().unwrap();
    let held = take(&holder(servers.urls()), "name", LONG);
    assert_cancelled(wait(&client, "name", &token, |request| request));
    await_queued(&servers, "name", 0);
    assert!(eventually(LIMIT, || holders(&servers, "name") == 3));
    drop(held);
}
