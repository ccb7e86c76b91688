//! Of hundreds of threads of one client, some attempts are under way and the others stand in line.
//! Who has got a lock, waits or pauses leaves the line to others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};

use redlatch::{CancelToken, Error, LockClient, LockGuard};
use support::locks::{LONG, all_nodes_client, take, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::await_queued;

/// So many attempts may be under way.
const ATTEMPTS: usize = 160;
const THREADS: usize = 200;

type Waiting = JoinHandle<Result<LockGuard, Error>>;

/// Takes the lock of this number in a thread of its own.
fn lock(client: &LockClient, number: usize) -> Waiting {
    let client = client.clone();
    thread::spawn(move || client.request(format!("{number}")).ttl(LONG).lock())
}

/// Another client holds the locks of all numbers.
fn hold_all(servers: &Servers) -> Vec<LockGuard> {
    let holder = all_nodes_client(servers.urls());
    let names = (0..THREADS).map(|number| format!("{number}"));
    names.map(|name| take(&holder, name, LONG)).collect()
}

fn finish_all(waiting: Vec<Waiting>) {
    for waiting in waiting {
        drop(finish(waiting).expect("the lock was given up"));
    }
}

#[test]
fn threads_that_hold_a_lock_have_left_the_line() {
    let servers = Servers::start(1);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    let waiting: Vec<_> = (0..THREADS).map(|number| lock(&client, number)).collect();
    let held: Vec<_> = waiting.into_iter().map(finish).collect();
    assert!(held.iter().all(Result::is_ok), "{held:?}");
}

#[test]
fn threads_that_wait_for_their_turn_leave_the_line_to_others() {
    let servers = Servers::start(1);
    let held = hold_all(&servers);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    let waiting: Vec<_> = (0..THREADS).map(|number| lock(&client, number)).collect();
    for number in 0..THREADS {
        await_queued(&servers, &format!("{number}"), 1);
    }
    drop(finish(lock(&client, THREADS)).expect("it is free"));
    drop(held);
    finish_all(waiting);
}

#[test]
fn threads_that_pause_leave_the_line_to_others() {
    let servers = Servers::start(1);
    let held = hold_all(&servers);
    let token = CancelToken::new();
    let client = with_long_timeout(servers.urls()).queue(false);
    let client = client.retry(LONG / 2, LONG / 2).build().unwrap();
    let waiting: Vec<_> = (0..THREADS)
        .map(|number| {
            let client = client.clone();
            let token = token.clone();
            spawn_waiter(move || {
                let request = client.request(format!("{number}")).ttl(LONG);
                request.cancelled_by(&token).lock()
            })
        })
        .collect();
    drop(finish(lock(&client, THREADS)).expect("it is free"));
    token.cancel();
    for waiting in waiting {
        assert_eq!(finish(waiting).err(), Some(Error::Cancelled));
    }
    drop(held);
}

/// A client whose callback is called as an attempt for the lock of a number has failed, with how
/// many times it was called before.
fn with_callback(
    servers: &Servers,
    callback: impl Fn(usize) + Send + Sync + 'static,
) -> LockClient {
    let callbacks = AtomicUsize::new(0);
    let builder = with_long_timeout(servers.urls()).on_event(move |event| {
        let is_numbered = event
            .resource()
            .is_some_and(|name| name.as_bytes().len() <= 3);
        if event.name() == "attempt" && is_numbered {
            callback(callbacks.fetch_add(1, Ordering::SeqCst));
        }
    });
    builder.build().expect("the settings are good")
}

#[test]
fn a_callback_takes_a_lock_although_the_attempt_of_its_thread_is_under_way() {
    let servers = Servers::start(1);
    let held = hold_all(&servers);
    let cell: Arc<OnceLock<LockClient>> = Arc::default();
    let inner = Arc::downgrade(&cell);
    // As many as may be under way are in their callbacks before the first of them takes a lock.
    let all = Arc::new(Barrier::new(ATTEMPTS + 1));
    let in_callbacks = Arc::clone(&all);
    let client = with_callback(&servers, move |number| {
        if number >= ATTEMPTS {
            return;
        }
        in_callbacks.wait();
        let client = inner.upgrade().expect("the client is there");
        let client = client.get().expect("it is used");
        drop(client.lock(format!("inner {number}"), LONG).expect("free"));
    });
    let client = cell.get_or_init(|| client).clone();
    let waiting = (0..THREADS).map(|number| lock(&client, number)).collect();
    all.wait();
    drop(held);
    finish_all(waiting);
}

/// A client whose callbacks wait in as many attempts as may be under way: first until all of these
/// and the test are there, and then until they may go on.
fn with_waiting_callbacks(servers: &Servers) -> (LockClient, Arc<Barrier>) {
    let all = Arc::new(Barrier::new(ATTEMPTS + 1));
    let in_callbacks = Arc::clone(&all);
    let client = with_callback(servers, move |number| {
        if number < ATTEMPTS {
            in_callbacks.wait();
            in_callbacks.wait();
        }
    });
    (client, all)
}

#[test]
fn a_lock_that_is_handed_over_does_not_wait_for_calls_that_begin() {
    let servers = Servers::start(1);
    let held = hold_all(&servers);
    let (client, all) = with_waiting_callbacks(&servers);
    let handed_over = take(&client, "handed over", LONG);
    let next = spawn_waiter({
        let client = client.clone();
        move || client.lock("handed over", LONG)
    });
    let waiting = (0..ATTEMPTS).map(|number| lock(&client, number)).collect();
    all.wait();
    drop(handed_over);
    drop(finish(next).expect("its thread waited for it"));
    all.wait();
    drop(held);
    finish_all(waiting);
}

#[test]
fn a_call_that_is_cancelled_as_it_stands_in_line_ends_at_once() {
    let servers = Servers::start(1);
    let held = hold_all(&servers);
    let (client, all) = with_waiting_callbacks(&servers);
    let waiting = (0..ATTEMPTS).map(|number| lock(&client, number)).collect();
    all.wait();
    let token = CancelToken::new();
    let in_line = spawn_waiter({
        let client = client.clone();
        let token = token.clone();
        move || {
            let request = client.request("in line").ttl(LONG);
            request.cancelled_by(&token).lock()
        }
    });
    assert!(!in_line.is_finished(), "there is room for one more");
    token.cancel();
    assert_eq!(finish(in_line).err(), Some(Error::Cancelled));
    all.wait();
    drop(held);
    finish_all(waiting);
}
