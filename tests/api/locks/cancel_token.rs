//! Cancelling single calls: each returns at once from wherever it waits, leaves nothing on the
//! nodes, and disturbs no other.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use redlatch::{CancelToken, Error, LockClient, LockGuard, LockRequest};
use support::eventually;
use support::locks::{LIMIT, LONG, connections, pause, resume, take, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{BY_PUSH, LONG_LEASE, await_keys, await_queued, holder, with_lease};

/// A way to request a lock.
type Ask = for<'a> fn(LockRequest<'a>) -> LockRequest<'a>;

/// Waits for the lock in a thread of its own, until it gets it or is cancelled.
fn wait(client: &LockClient, name: &'static str, token: &CancelToken, ask: Ask) -> Waiting {
    let client = client.clone();
    let token = token.clone();
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
    let client = with_long_timeout(servers.urls())
        .client_name("silent")
        .build()
        .unwrap();
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
        client
            .request_all(["a", "b"])
            .cancelled_by(&token)
            .lock()
            .map(|_| ()),
    ];
    assert!(
        results
            .iter()
            .all(|result| *result == Err(Error::Cancelled)),
        "{results:?}"
    );
    let ran = request().with_lock(|_| Ok::<_, Error>(()));
    assert_eq!(ran, Err(Error::Cancelled));
    assert!(
        servers
            .iter()
            .all(|server| connections(server, "silent") == 0)
    );
    // Only calls with this token are cancelled.
    assert_eq!(take(&client, "free", LONG).release(), Ok(()));
    let other = CancelToken::new();
    assert!(
        client
            .request("free")
            .cancelled_by(&other)
            .try_lock()
            .unwrap()
            .is_some()
    );
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
fn a_pause_between_attempts_ends_at_once_and_only_for_that_call() {
    let servers = Servers::start(3);
    // Pauses that would outlast the test.
    let settings = with_long_timeout(servers.urls()).retry(LONG * 20, LONG * 20);
    let client = settings.queue(false).build().unwrap();
    let held = take(&holder(servers.urls()), "held", LONG);
    let [cancelled, kept] = [(); 2].map(|()| CancelToken::new());
    let waiting = wait(&client, "held", &cancelled, |request| {
        request.ttl(LONG).shared()
    });
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
    let next = wait(&client, "name", &CancelToken::new(), |request| {
        request.ttl(LONG).fenced()
    });
    token.cancel();
    assert!(
        !granted.is_finished(),
        "the round is under way, and ends first"
    );
    resume(&servers, 3);
    assert_cancelled(granted);
    assert_eq!(finish(next), Ok(Ok(())));
    await_keys(&servers, &[]);
}

#[test]
fn a_handle_may_outlive_its_client_and_keeps_no_connection() {
    let servers = Servers::start(1);
    let settings = with_long_timeout(servers.urls()).client_name("cancelled");
    let client = support::locks::connected(settings.build().unwrap());
    let handle = client.cancel_token();
    assert_eq!(connections(&servers[0], "cancelled"), 1);
    drop(client);
    assert!(eventually(LIMIT, || connections(&servers[0], "cancelled") == 0));
    handle.cancel();
    assert!(handle.is_cancelled());
}
