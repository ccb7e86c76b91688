//! Calls whose result a callback gets.

use std::sync::mpsc;
use std::thread;

use redlatch::{CancelToken, Error, LockClient, LockGuard, Pending};
use support::locks::{LIMIT, LONG, take, with_long_timeout};
use support::servers::Servers;
use support::tasks::{begin, begin_to_end};
use support::waiters::{await_keys, await_queued, holder, pushed};

fn client(servers: &Servers) -> LockClient {
    let settings = with_long_timeout(servers.urls());
    settings.build().expect("the settings are good")
}

#[test]
fn a_callback_gets_the_lock_in_the_thread_of_callbacks_and_may_use_the_client() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let (sender, receiver) = mpsc::channel();
    let inner = client.clone();
    client
        .request("name")
        .ttl(LONG)
        .lock_async()
        .then(move |lock| {
            let thread = thread::current().name().map(str::to_owned);
            let other = inner.lock("other", LONG).map(LockGuard::release);
            sender.send((lock, thread, other)).expect("the test waits");
        });
    let (lock, thread, other) = receiver.recv_timeout(LIMIT).expect("it is called");
    assert_eq!(thread.as_deref(), Some("redlatch-notify"));
    assert_eq!(other, Ok(Ok(())));
    lock.expect("it is free").release().expect("it is held");
    await_keys(&servers, &[]);
}

#[test]
fn a_callback_may_be_given_after_the_call_has_begun_or_ended() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let begun_or_ended: [fn(Pending<LockGuard>) -> Pending<LockGuard>; 2] = [begin, begin_to_end];
    for so_far in begun_or_ended {
        let pending = so_far(client.request("name").ttl(LONG).lock_async());
        let (sender, receiver) = mpsc::channel();
        pending.then(move |lock| sender.send(lock).expect("the test waits"));
        let lock = receiver.recv_timeout(LIMIT).expect("it is called");
        drop(lock.expect("it is free"));
    }
    await_keys(&servers, &[]);
}

#[test]
fn a_callback_that_panics_or_drops_the_lock_ends_nothing_else() {
    let servers = Servers::start(3);
    let client = client(&servers);
    for number in 0..3 {
        let lock = client.request("name").ttl(LONG).lock_async();
        lock.then(move |_| assert_eq!(number, 1, "on purpose"));
    }
    let (sender, receiver) = mpsc::channel();
    let lock = client.request("name").ttl(LONG).lock_async();
    lock.then(move |lock| sender.send(lock).expect("the test waits"));
    drop(receiver.recv_timeout(LIMIT).expect("it is called"));
    await_keys(&servers, &[]);
}

#[test]
fn a_token_ends_a_call_with_a_callback_and_the_end_of_the_client_waits_for_it() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let held = take(&holder, "name", LONG);
    let client = pushed(servers.urls());
    let (sender, receiver) = mpsc::channel();
    let token = CancelToken::new();
    let request = client.request("name").ttl(LONG).cancelled_by(&token);
    request.lock_async().then(move |lock| {
        sender.send(lock.err()).expect("the test waits");
    });
    drop(client);
    await_queued(&servers, "name", 1);
    token.cancel();
    let error = receiver.recv_timeout(LIMIT).expect("it is called");
    assert_eq!(error, Some(Error::Cancelled));
    await_queued(&servers, "name", 0);
    drop(held);
    await_keys(&servers, &[]);
}
