//! The verbs, for all kinds of lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard, LockRequest, OwnHolder};
use support::eventually;
use support::locks::{BRIEF, LIMIT, LONG, connections, take, with_long_timeout};
use support::servers::Servers;
use support::tasks::{begin, block_on, poll_with};
use support::waiters::await_keys;

fn client(servers: &Servers) -> LockClient {
    let settings = with_long_timeout(servers.urls());
    settings.build().expect("the settings are good")
}

#[test]
fn each_verb_takes_a_free_lock_and_returns_none_for_one_that_is_held() {
    let servers = Servers::start(3);
    let holder = client(&servers);
    let other = client(&servers);
    let soon = Duration::from_secs(1);
    let request = |client| LockClient::request(client, "name").ttl(LONG);
    let held = block_on(request(&holder).lock_async()).expect("it is free");
    assert!(held.remaining() > Duration::ZERO);
    for client in [&holder, &other] {
        let now = block_on(request(client).try_lock_async());
        assert!(matches!(now, Ok(None)), "{now:?}");
        let waited = block_on(request(client).try_lock_for_async(soon));
        assert!(matches!(waited, Ok(None)), "{waited:?}");
        let deadline = Instant::now() + soon;
        let waited = block_on(request(client).try_lock_until_async(deadline));
        assert!(matches!(waited, Ok(None)), "{waited:?}");
    }
    held.release().expect("it is held");
    for client in [&holder, &other] {
        let now = block_on(request(client).try_lock_async());
        drop(now.expect("no error").expect("it is free"));
        let waited = block_on(request(client).try_lock_for_async(LONG));
        drop(waited.expect("no error").expect("it is free"));
        let deadline = Instant::now() + LONG;
        let waited = block_on(request(client).try_lock_until_async(deadline));
        let guard = waited.expect("no error").expect("it is free");
        // The next client does not wait for it.
        guard.release().expect("it is held");
    }
    await_keys(&servers, &[]);
}

type Kind = for<'a> fn(LockRequest<'a>) -> LockRequest<'a>;

#[test]
fn all_kinds_of_locks_are_waited_for() {
    let kinds: [(&str, Kind); 4] = [
        ("exclusive", |request| request.fenced()),
        ("kept", |request| request.keep_alive()),
        ("reader", |request| request.shared()),
        ("permit", |request| request.one_of(2)),
    ];
    let servers = Servers::start(3);
    let holder = client(&servers);
    let waiter = client(&servers);
    for (name, kind) in kinds {
        let held = take(&holder, name, LONG);
        let waiting = begin(kind(waiter.request(name).ttl(LONG)).lock_async());
        let together = begin(kind(waiter.request(name).ttl(LONG)).lock_async());
        held.release().expect("it is held");
        let first = block_on(waiting).expect("it is free");
        drop(first);
        drop(block_on(together).expect("it is free"));
    }
    let held = take(&holder, "b", LONG);
    let waiting = begin(waiter.request_all(["a", "b", "c"]).ttl(LONG).lock_async());
    held.release().expect("it is held");
    let set = block_on(waiting).expect("they are free");
    assert_eq!(set.resources().count(), 3);
    drop(set);
    await_keys(&servers, &[]);
}

#[test]
fn nothing_happens_before_the_first_poll() {
    let servers = Servers::start(1);
    let settings = with_long_timeout(servers.urls()).client_name("unpolled");
    let client = settings.build().expect("the settings are good");
    let pending = client.request("name").ttl(LONG).lock_async();
    drop(client.request("name").ttl(LONG).try_lock_async());
    thread::sleep(Duration::from_millis(20));
    assert_eq!(connections(&servers[0], "unpolled"), 0);
    let guard = block_on(pending).expect("it is free");
    assert_eq!(connections(&servers[0], "unpolled"), 1);
    drop(guard);
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let servers = Servers::start(1);
    let client = client(&servers);
    let unusable = block_on(client.request("").lock_async()).map(LockGuard::release);
    assert_eq!(unusable, client.request("").lock().map(LockGuard::release));
    let cancelled = redlatch::CancelToken::new();
    cancelled.cancel();
    let refused = block_on(client.request("a").cancelled_by(&cancelled).lock_async());
    assert_eq!(refused.err(), Some(Error::Cancelled));
}

#[test]
fn a_result_is_fetched_once() {
    let servers = Servers::start(1);
    let client = client(&servers);
    let mut pending = begin(client.request("name").ttl(LONG).try_lock_async());
    assert!(eventually(LIMIT, || {
        poll_with(&mut pending, Waker::noop()).is_ready()
    }));
    let again = || poll_with(&mut pending, Waker::noop()).is_ready();
    assert!(catch_unwind(AssertUnwindSafe(again)).is_err());
}

#[test]
fn a_lock_that_has_ended_before_it_is_fetched_is_no_lock() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let pending = begin(client.request("name").ttl(BRIEF).lock_async());
    thread::sleep(BRIEF + Duration::from_millis(100));
    let late = block_on(pending);
    assert!(matches!(late, Err(Error::TooSlow { .. })), "{late:?}");
    await_keys(&servers, &[]);
}

#[test]
fn a_call_belongs_to_no_thread_but_the_one_that_its_request_names() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let request = || client.request("name").ttl(LONG);
    let this = Some(thread::current().id());
    let lock = block_on(request().lock_async()).expect("it is free");
    assert_eq!(request().own_holder(), Some(OwnHolder::OtherThread));
    drop(lock);
    let lock = block_on(request().for_thread(this).lock_async()).expect("it is free");
    assert_eq!(request().own_holder(), Some(OwnHolder::ThisThread));
    drop(lock);
    await_keys(&servers, &[]);
}

#[test]
fn a_client_lives_as_long_as_its_calls() {
    let servers = Servers::start(3);
    let holder = client(&servers);
    let held = take(&holder, "name", LONG);
    let other = client(&servers);
    let waiting = begin(other.request("name").ttl(LONG).lock_async());
    let own = other.request("own").ttl(LONG).lock_async();
    drop(other);
    drop(held);
    let guard = block_on(waiting).expect("it is free");
    let own = block_on(own).expect("it is free");
    drop((guard, own));
    await_keys(&servers, &[]);
}
