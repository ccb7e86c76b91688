//! Wakers are users' code, and may do anything.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use redlatch::{CancelToken, Error, Event, LockClient, Pending};
use support::eventually;
use support::locks::{LIMIT, LONG, pause, resume, take, with_long_timeout, without_restart_guard};
use support::queue::spawn_waiter;
use support::servers::Servers;
use support::tasks::{Woken, begin, block_on, poll_with};
use support::waiters::{await_keys, holder};

fn client(servers: &Servers) -> LockClient {
    let settings = with_long_timeout(servers.urls());
    settings.build().expect("the settings are good")
}

/// Does this when it is woken first, in a thread of the library.
struct Does(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Does {
    fn wake(self: Arc<Self>) {
        let action = self.0.lock().expect("no panic within").take();
        if let Some(action) = action {
            action();
        }
    }
}

fn waker(action: impl FnOnce() + Send + 'static) -> Waker {
    Waker::from(Arc::new(Does(Mutex::new(Some(Box::new(action))))))
}

#[test]
fn the_last_that_polled_is_woken_and_no_other() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let held = take(&client, "name", LONG);
    let mut pending = client.request("name").ttl(LONG).lock_async();
    let [first, last] = [(); 2].map(|()| Arc::new(Woken::default()));
    let polled = poll_with(&mut pending, &Waker::from(Arc::clone(&first)));
    assert!(polled.is_pending());
    let polled = poll_with(&mut pending, &Waker::from(Arc::clone(&last)));
    assert!(polled.is_pending());
    drop(held);
    assert!(eventually(LIMIT, || last.count() == 1));
    assert_eq!(first.count(), 0);
    let polled = poll_with(&mut pending, Waker::noop());
    assert!(matches!(polled, Poll::Ready(Ok(_))), "{polled:?}");
}

#[test]
fn a_waker_that_panics_ends_no_other_call() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let mut pending = client.request("name").ttl(LONG).lock_async();
    let polled = poll_with(&mut pending, &waker(|| panic!("on purpose")));
    assert!(polled.is_pending());
    drop(block_on(pending).expect("it is free"));
    drop(block_on(client.request("name").ttl(LONG).lock_async()).expect("it is free"));
    await_keys(&servers, &[]);
}

#[test]
fn a_waker_may_acquire_locks_and_start_calls() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let (sender, receiver) = mpsc::channel();
    let inner = client.clone();
    let action = waker(move || {
        let own = inner.lock("own", LONG);
        let started = begin(inner.request("started").ttl(LONG).lock_async());
        sender.send((own, started)).expect("the test waits");
    });
    let mut pending = client.request("name").ttl(LONG).lock_async();
    assert!(poll_with(&mut pending, &action).is_pending());
    let (own, started) = receiver.recv_timeout(LIMIT).expect("it is called");
    drop(own.expect("it is free"));
    drop(block_on(started).expect("it is free"));
    drop(block_on(pending).expect("it is free"));
    await_keys(&servers, &[]);
}

#[test]
fn a_waker_may_drop_the_last_of_its_client() {
    let servers = Servers::start(3);
    let (sender, receiver) = mpsc::channel();
    let shared: Arc<Mutex<Option<Pending<_>>>> = Arc::default();
    let last = Arc::clone(&shared);
    let action = waker(move || {
        drop(last.lock().expect("no panic").take());
        sender.send(()).expect("the test waits");
    });
    let client = client(&servers);
    let mut pending = client.request("name").ttl(LONG).lock_async();
    {
        let mut place = shared.lock().expect("no panic");
        assert!(poll_with(&mut pending, &action).is_pending());
        *place = Some(pending);
    }
    drop(client);
    receiver.recv_timeout(LIMIT).expect("it is called");
    await_keys(&servers, &[]);
}

#[test]
fn a_waker_that_blocks_delays_started_calls_and_nothing_else() {
    let servers = Servers::start(3);
    let settings = without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(500));
    let client = settings.build().expect("the settings are good");
    let kept = client.request("kept").ttl(Duration::from_secs(2));
    let kept = kept.keep_alive().lock().expect("it is free");
    let (go_on, told) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    let action = waker(move || {
        enter.send(()).expect("the test waits");
        told.recv_timeout(LIMIT).expect("the test goes on");
    });
    let mut pending = client.request("name").ttl(LONG).lock_async();
    assert!(poll_with(&mut pending, &action).is_pending());
    entered.recv_timeout(LIMIT).expect("it is called");
    let delayed = begin(client.request("delayed").ttl(LONG).lock_async());
    for _ in 0..3 {
        drop(take(&client, "other", LONG));
    }
    thread::sleep(Duration::from_millis(2_500));
    kept.release().expect("it was kept alive");
    go_on.send(()).expect("the waker waits");
    drop(block_on(delayed).expect("it is free"));
    drop(block_on(pending).expect("it is free"));
    await_keys(&servers, &[]);
}

/// The thread of started calls has a round of its own under way, and would lead for the others.
#[test]
fn a_waker_that_blocks_keeps_no_thread_from_the_end_of_its_round() {
    let servers = Servers::start(3);
    let settings = without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(500));
    let client = settings.build().expect("the settings are good");
    let held = take(&client, "name", LONG);
    let token = CancelToken::new();
    let cancelled = client.request("name").ttl(LONG).cancelled_by(&token);
    let mut cancelled = cancelled.lock_async();
    let (go_on, told) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    let action = waker(move || {
        enter.send(()).expect("the test waits");
        told.recv_timeout(LIMIT).expect("the test goes on");
    });
    assert!(poll_with(&mut cancelled, &action).is_pending());
    pause(&servers, 3);
    let unanswered = begin(client.request("started").ttl(LONG).try_lock_async());
    // Not needed for the test to pass: so that the one leads, and the other follows.
    thread::sleep(Duration::from_millis(50));
    let inner = client.clone();
    let follower = thread::spawn(move || inner.request("thread").ttl(LONG).try_lock());
    thread::sleep(Duration::from_millis(50));
    token.cancel();
    entered.recv_timeout(LIMIT).expect("it is called");
    assert!(eventually(LIMIT / 2, || follower.is_finished()));
    go_on.send(()).expect("the waker waits");
    let answer = follower.join().expect("no panic");
    assert!(matches!(answer, Err(Error::NoQuorum(_))), "{answer:?}");
    assert_eq!(block_on(cancelled).err(), Some(Error::Cancelled));
    resume(&servers, 3);
    drop(block_on(unanswered));
    held.release().expect("it is held");
    await_keys(&servers, &[]);
}

#[test]
fn the_panic_of_a_listener_goes_on_in_the_task_and_leaves_nothing() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let held = take(&holder, "name", LONG);
    let settings = with_long_timeout(servers.urls()).on_event(|event| {
        assert!(!matches!(event, Event::Queued { .. }), "on purpose");
    });
    let client = settings.build().expect("the settings are good");
    let waiting = begin(client.request("name").ttl(LONG).lock_async());
    let result = catch_unwind(AssertUnwindSafe(|| block_on(waiting)));
    let panic = result.expect_err("the listener panics");
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    let next = client.request("free").ttl(LONG).lock_async();
    drop(block_on(next).expect("it is free"));
    held.release().expect("it is held");
    await_keys(&servers, &[]);
}

#[test]
fn a_task_that_works_under_a_lock_and_waits_for_it_is_not_refused() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let waiting = client.with_lock("name", LONG, |_| {
        Ok(begin(client.request("name").ttl(LONG).lock_async()))
    });
    let waiting = waiting.expect("it is free");
    let thread = spawn_waiter(move || block_on(waiting).map(|_| ()));
    assert_eq!(thread.join().expect("no panic"), Ok::<_, Error>(()));
    await_keys(&servers, &[]);
}
