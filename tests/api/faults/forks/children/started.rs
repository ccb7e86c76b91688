//! Forks around calls that take no thread: whose they are, and that no child goes on with them.

use std::env;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Wake, Waker};

use redlatch::{Error, Event, LockClient, LockGuard, LossReason, Pending};

use super::{URLS, WELL, expect_child_to_end_with, expect_child_to_succeed, fork, with_child};
use support::locks::{LIMIT, LONG, all_nodes_client, connected, take, without_restart_guard};
use support::program::end_with_parent;
use support::tasks::{begin, block_on, poll_with};

#[test]
fn a_call_that_a_child_inherits_stays_its_parents() {
    with_child("faults::forks::children::started::as_a_parent_of_calls", "");
}

#[test]
fn a_child_that_a_waker_forks_goes_on_with_no_call() {
    with_child(
        "faults::forks::children::started::as_a_parent_whose_waker_forks",
        "",
    );
}

#[test]
fn a_child_that_a_callback_for_a_lock_forks_gets_no_other_lock() {
    with_child(
        "faults::forks::children::started::as_a_parent_whose_callback_forks",
        "",
    );
}

#[test]
fn a_child_that_a_listener_forks_leaves_the_call_to_its_parent() {
    with_child(
        "faults::forks::children::started::as_a_parent_whose_listener_forks",
        "",
    );
}

#[test]
fn a_child_releases_none_of_its_parents_locks() {
    with_child(
        "faults::forks::children::started::as_a_parent_that_releases",
        "",
    );
}

/// Uses this client in a child, in which nothing of it works.
fn expect_no_use(client: &LockClient) {
    let refused = client.try_lock("new", LONG).err();
    let started = block_on(client.request("new").lock_async()).err();
    if refused != Some(Error::OtherProcess) || started != refused {
        process::exit(5);
    }
}

/// Calls in each stage are polled, dropped and given a callback in the child.
#[test]
fn as_a_parent_of_calls() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let holder = connected(all_nodes_client(urls.split(' ')));
    let client = connected(all_nodes_client(urls.split(' ')));
    let held = take(&holder, "held", LONG);
    let call = |name| client.request(name).ttl(LONG).lock_async();
    let (sender, granted) = mpsc::channel();
    // One is granted, and not fetched.
    let mut ready = call("free");
    let waker = Waker::from(Arc::new(Tells(Mutex::new(sender))));
    assert!(poll_with(&mut ready, &waker).is_pending());
    granted.recv_timeout(LIMIT).expect("it is free");
    let waiting = [(); 3].map(|()| begin(call("held")));
    let new = call("new");
    if fork() {
        let [polled, dropped, called] = waiting;
        for call in [polled, new, ready] {
            assert_eq!(block_on(call).err(), Some(Error::OtherProcess));
        }
        drop(dropped);
        expect_call_in_this_thread(called);
        expect_no_use(&client);
        drop(client);
        process::exit(WELL);
    }
    expect_child_to_succeed();
    drop(held);
    for call in waiting.into_iter().chain([new, ready]) {
        let guard = block_on(call).expect("it is the parent's");
        assert_eq!(guard.release(), Ok(()));
    }
}

/// There is no thread that could call it.
fn expect_call_in_this_thread(call: Pending<LockGuard>) {
    let (sender, called) = mpsc::channel();
    call.then(move |lock| sender.send(lock.err()).expect("the test waits"));
    assert_eq!(called.try_recv(), Ok(Some(Error::OtherProcess)));
}

/// Tells that it was woken.
struct Tells(Mutex<mpsc::Sender<()>>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        let sender = self.0.lock().expect("no panic");
        sender.send(()).expect("the test waits");
    }
}

/// Forks when it is woken, in the thread that goes on with the calls of this client.
struct Forks {
    client: LockClient,
    enter: mpsc::Sender<()>,
    /// Until the parent has begun another call.
    go_on: Mutex<mpsc::Receiver<()>>,
    woken: mpsc::Sender<()>,
}

impl Wake for Forks {
    fn wake(self: Arc<Self>) {
        self.enter.send(()).expect("the test waits");
        let go_on = self.go_on.lock().expect("no panic");
        go_on.recv_timeout(LIMIT).expect("the test goes on");
        if fork() {
            expect_no_use(&self.client);
            // The only thread of the child ends.
            return;
        }
        self.woken.send(()).expect("the test waits");
    }
}

#[test]
fn as_a_parent_whose_waker_forks() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let client = connected(all_nodes_client(urls.split(' ')));
    let (enter, entered) = mpsc::channel();
    let (tell, go_on) = mpsc::channel();
    let (sender, woken) = mpsc::channel();
    let forks = Forks {
        client: client.clone(),
        enter,
        go_on: Mutex::new(go_on),
        woken: sender,
    };
    let mut first = client.request("first").ttl(LONG).lock_async();
    let waker = Waker::from(Arc::new(forks));
    assert!(poll_with(&mut first, &waker).is_pending());
    entered.recv_timeout(LIMIT).expect("it is free");
    // The child has this one too, and must not begin it.
    let second = begin(client.request("second").ttl(LONG).lock_async());
    tell.send(()).expect("the waker waits");
    woken.recv_timeout(LIMIT).expect("the parent goes on");
    expect_child_to_end_with(0);
    for call in [first, second] {
        let guard = block_on(call).expect("it is the parent's");
        assert_eq!(guard.release(), Ok(()));
    }
}

#[test]
fn as_a_parent_whose_callback_forks() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let itself = process::id();
    let client = connected(all_nodes_client(urls.split(' ')));
    let (sender, granted) = mpsc::channel();
    for number in 0..3 {
        let sender = sender.clone();
        let client = client.clone();
        let call = client.request("name").ttl(LONG).lock_async();
        call.then(move |lock| {
            if process::id() != itself {
                process::exit(4);
            }
            if number == 0 && fork() {
                expect_no_use(&client);
                return;
            }
            let is_granted = lock.is_ok();
            drop(lock);
            sender.send((number, is_granted)).expect("the test waits");
        });
    }
    let seen = [(); 3].map(|()| granted.recv_timeout(LIMIT).expect("they are granted"));
    assert_eq!(seen, [(0, true), (1, true), (2, true)]);
    expect_child_to_end_with(0);
    assert_eq!(take(&client, "name", LONG).release(), Ok(()));
}

/// A client whose listener forks at the first such event, and then tells so in the parent. It ends
/// a child that has another one.
fn client_that_forks(
    urls: &str,
    is_time: fn(&Event<'_>) -> bool,
) -> (LockClient, mpsc::Receiver<()>) {
    let itself = process::id();
    let has_forked = AtomicBool::new(false);
    let (sender, forked) = mpsc::channel();
    let builder = without_restart_guard(urls.split(' '))
        .node_timeout(LIMIT)
        .on_event(move |event| {
            if process::id() != itself {
                process::exit(3);
            }
            if is_time(event) && !has_forked.swap(true, Ordering::SeqCst) && !fork() {
                sender.send(()).expect("the test waits");
            }
        });
    let client = builder.build().expect("the settings are good");
    (client, forked)
}

#[test]
fn as_a_parent_whose_listener_forks() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let other = connected(all_nodes_client(urls.split(' ')));
    let held = take(&other, "name", LONG);
    let (client, forked) = client_that_forks(&urls, |event| event.name() == "attempt");
    let waiting = begin(client.request("name").ttl(LONG).lock_async());
    forked.recv_timeout(LIMIT).expect("an attempt is reported");
    expect_child_to_end_with(0);
    assert_eq!(held.release(), Ok(()));
    let guard = block_on(waiting).expect("it is the parent's");
    assert_eq!(guard.release(), Ok(()));
}

/// Releases that have begun, and that have not, and one whose listener forks.
#[test]
fn as_a_parent_that_releases() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let (client, forked) = client_that_forks(&urls, |event| {
        event.name() == "released" && format!("{event:?}").contains("last")
    });
    let client = connected(client);
    let other = connected(all_nodes_client(urls.split(' ')));
    let names = ["polled", "dropped", "called", "new", "late"];
    let [polled, dropped, called, new, late] = names.map(|name| take(&client, name, LONG));
    let new = new.release_async();
    let mut late = late;
    let mut extending = late.extend_async(LONG);
    let lost = begin(called.lost());
    if fork() {
        assert_eq!(block_on(lost).reason(), LossReason::OtherProcess);
        assert_eq!(block_on(called.lost()).reason(), LossReason::OtherProcess);
        let extended = poll_with(&mut extending, Waker::noop());
        assert_eq!(extended, Poll::Ready(Err(Error::OtherProcess)));
        let [polled, called] = [polled, called].map(LockGuard::release_async);
        for call in [polled, new] {
            assert_eq!(block_on(call), Err(Error::OtherProcess));
        }
        drop(dropped.release_async());
        let (sender, told) = mpsc::channel();
        called.then(move |result| sender.send(result).expect("the test waits"));
        assert_eq!(told.try_recv(), Ok(Err(Error::OtherProcess)));
        drop(late);
        process::exit(WELL);
    }
    expect_child_to_succeed();
    drop(lost);
    assert_eq!(block_on(extending), Ok(()));
    for name in names {
        assert!(other.try_lock(name, LONG).expect("no error").is_none());
    }
    assert_eq!(block_on(new), Ok(()));
    for guard in [polled, dropped, called, late] {
        assert_eq!(block_on(guard.release_async()), Ok(()));
    }
    let last = take(&client, "last", LONG);
    let (sender, released) = mpsc::channel();
    last.release_async().then(move |result| {
        sender.send(result).expect("the test waits");
    });
    forked.recv_timeout(LIMIT).expect("it is reported");
    expect_child_to_end_with(0);
    assert_eq!(released.recv_timeout(LIMIT), Ok(Ok(())));
    for name in names.into_iter().chain(["last"]) {
        drop(take(&other, name, LONG));
    }
}
