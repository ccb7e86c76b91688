//! Tasks that wait until a lock is lost: each is told once, in time, and none is left behind.

use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};
use std::thread;

use redlatch::{LockClient, LockGuard, LossReason};
use support::backend::Backend;
use support::locks::{BRIEF, LIMIT, LONG};
use support::tasks::{Woken, begin, block_on, poll_with};
use support::{eventually, on_each_backend};

on_each_backend!(
    a_lock_that_is_not_kept_is_lost_when_its_validity_ends,
    the_loss_of_a_lock_that_is_kept_alive_wakes_its_task,
    a_wait_that_is_dropped_leaves_nothing_however_often,
    each_task_is_woken_once_and_by_its_last_waker,
    a_wait_of_one_reader_ends_with_its_guard,
    a_waker_may_use_the_lock,
    a_waker_that_panics_ends_nothing_else,
);

#[track_caller]
fn keep(client: &LockClient, name: &str) -> LockGuard {
    let request = client.request(name).ttl(BRIEF).keep_alive();
    request.lock().expect("it is free")
}

#[track_caller]
fn end_by_force(client: &LockClient, name: &str) {
    let seen = client.inspect(name).expect("the nodes answer");
    assert_eq!(client.force_release(&seen), Ok(true));
}

fn a_lock_that_is_not_kept_is_lost_when_its_validity_ends(backend: &Backend) {
    let client = backend.client();
    let lock = client.lock("name", BRIEF).expect("it is free");
    let lost = block_on(lock.lost());
    assert_eq!(lost.resource().as_bytes(), b"name");
    assert_eq!(lost.reason(), LossReason::Expired);
    assert!(lock.remaining().is_zero());
    assert_eq!(block_on(lock.lost()), lost, "and it stays lost");
    // By hand, extensions count.
    let mut lock = client.lock("other", BRIEF).expect("it is free");
    lock.extend(LONG).expect("it is held");
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut lost = lock.lost();
    assert!(poll_with(&mut lost, &waker).is_pending());
    assert!(lock.wait_lost(2 * BRIEF).is_none());
    assert_eq!(woken.count(), 0);
    assert!(poll_with(&mut lost, &waker).is_pending());
}

fn the_loss_of_a_lock_that_is_kept_alive_wakes_its_task(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let lock = keep(&client, "name");
    let lost = begin(lock.lost());
    assert!(lock.wait_lost(2 * BRIEF).is_none(), "it is kept alive");
    end_by_force(&other, "name");
    assert_eq!(block_on(lost).reason(), LossReason::Gone);
    let result = block_on(lock.release_async());
    assert!(result.is_err(), "{result:?}");
}

fn a_wait_that_is_dropped_leaves_nothing_however_often(backend: &Backend) {
    let client = backend.client();
    let lock = client.lock("name", LONG).expect("it is free");
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let before = Arc::strong_count(&woken);
    let mut last = lock.lost();
    for _ in 0..1_000 {
        let mut lost = lock.lost();
        for _ in 0..2 {
            assert!(poll_with(&mut lost, &waker).is_pending());
            assert!(poll_with(&mut last, &waker).is_pending());
        }
        assert_eq!(Arc::strong_count(&woken), before + 2);
    }
    drop(last);
    assert_eq!(Arc::strong_count(&woken), before);
    assert_eq!(woken.count(), 0);
    assert_eq!(lock.release(), Ok(()));
}

fn each_task_is_woken_once_and_by_its_last_waker(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let lock = keep(&client, "name");
    let woken: [Arc<Woken>; 3] = Default::default();
    let wakers = woken.each_ref().map(|it| Waker::from(Arc::clone(it)));
    let (tell, told) = mpsc::channel();
    let [mut first, mut second] = [lock.lost(), lock.lost()];
    assert!(poll_with(&mut first, &wakers[0]).is_pending());
    let callback = move |_| tell.send(()).expect("the test waits");
    lock.on_lost(callback).expect("a thread can be started");
    assert!(poll_with(&mut second, &wakers[1]).is_pending());
    assert!(poll_with(&mut first, &wakers[2]).is_pending());
    end_by_force(&other, "name");
    told.recv_timeout(LIMIT).expect("it is called");
    let counts = || woken.each_ref().map(|it| it.count());
    assert!(
        eventually(LIMIT, || counts() == [0, 1, 1]),
        "{:?}",
        counts()
    );
    assert_eq!(block_on(first), block_on(second));
    // One that begins now finds it, and needs no waker.
    assert!(poll_with(&mut lock.lost(), &wakers[0]).is_ready());
    assert_eq!(counts(), [0, 1, 1]);
}

fn a_wait_of_one_reader_ends_with_its_guard(backend: &Backend) {
    let client = backend.client();
    let readers = [(); 2].map(|()| {
        let request = client.request("name").ttl(BRIEF).shared();
        request.lock().expect("readers share it")
    });
    let [first, second] = readers;
    let lost = begin(second.lost());
    drop(begin(first.lost()));
    assert_eq!(first.release(), Ok(()));
    assert_eq!(block_on(lost).reason(), LossReason::Expired);
}

/// Looks at the lock whose loss it is woken for, then and when it is dropped.
struct Looks {
    lock: Arc<LockGuard>,
    tell: mpsc::Sender<(bool, Option<String>)>,
}

impl Looks {
    fn look(&self) {
        let is_lost = self.lock.remaining().is_zero();
        let thread = thread::current().name().map(str::to_owned);
        // The test may be over.
        let _ = self.tell.send((is_lost, thread));
    }
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.look();
    }
}

fn a_waker_may_use_the_lock(backend: &Backend) {
    let client = backend.client();
    let lock = Arc::new(client.lock("name", BRIEF).expect("it is free"));
    let (tell, told) = mpsc::channel();
    let waker = || {
        let lock = Arc::clone(&lock);
        let tell = tell.clone();
        Waker::from(Arc::new(Looks { lock, tell }))
    };
    let mut lost = lock.lost();
    let [replaced, last] = [waker(), waker()];
    assert!(poll_with(&mut lost, &replaced).is_pending());
    drop(replaced);
    assert!(told.try_recv().is_err(), "the lock has it");
    assert!(poll_with(&mut lost, &last).is_pending());
    let here = thread::current().name().map(str::to_owned);
    assert_eq!(told.try_recv().map(|it| it.1), Ok(here), "it is dropped");
    let woken = told.recv_timeout(LIMIT).expect("it is woken");
    assert_eq!(woken, (true, Some("redlatch-notify".to_owned())));
    assert_eq!(block_on(lost).reason(), LossReason::Expired);
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

fn a_waker_that_panics_ends_nothing_else(backend: &Backend) {
    let client = backend.client();
    let lock = client.lock("name", BRIEF).expect("it is free");
    let [mut first, second] = [lock.lost(), lock.lost()];
    let waker = Waker::from(Arc::new(Panics));
    assert!(poll_with(&mut first, &waker).is_pending());
    assert_eq!(block_on(second).reason(), LossReason::Expired);
    let other = client.lock("other", BRIEF).expect("it is free");
    assert_eq!(block_on(other.lost()).reason(), LossReason::Expired);
}
