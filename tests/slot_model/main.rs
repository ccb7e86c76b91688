//! Model-checks where the result of a started call is left: `pending/slot.rs`, compiled against
//! loom's locks, and run through every order of result, polls, callback and drop.
//!
//! Loom reports a deadlock if a task that polled last is not woken.

#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only where the model has failed already"
)]

#[path = "../../src/callback.rs"]
mod callback;
#[path = "../../src/pending/slot.rs"]
mod slot;

mod sync;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use slot::Slot;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

/// A result, which counts where it ends.
struct Result(Arc<AtomicUsize>);

impl Drop for Result {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What a task sleeps on.
#[derive(Default)]
struct Task {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Task {
    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = self.woken.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.woken.notify_one();
    }
}

/// A slot that another thread fills, and how many results have ended.
fn filling() -> (Arc<Slot<Result>>, Arc<AtomicUsize>, thread::JoinHandle<()>) {
    let slot = Arc::new(Slot::new());
    let ended = Arc::new(AtomicUsize::new(0));
    let filled = Arc::clone(&slot);
    let result = Result(Arc::clone(&ended));
    let filler = thread::spawn(move || filled.fill(result));
    (slot, ended, filler)
}

#[test]
fn a_task_gets_the_result_once() {
    loom::model(|| {
        let (slot, ended, filler) = filling();
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let result = loop {
            match slot.poll(&waker) {
                Poll::Ready(result) => break result,
                Poll::Pending => task.sleep(),
            }
        };
        assert_eq!(ended.load(Ordering::SeqCst), 0);
        drop(result);
        filler.join().unwrap();
        drop(slot);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn the_task_that_polled_last_is_woken() {
    loom::model(|| {
        let (slot, _, filler) = filling();
        let before = Waker::from(Arc::new(Task::default()));
        let task = Arc::new(Task::default());
        if slot.poll(&before).is_pending()
            && slot.poll(&Waker::from(Arc::clone(&task))).is_pending()
        {
            task.sleep();
            assert!(slot.poll(Waker::noop()).is_ready());
        }
        filler.join().unwrap();
    });
}

#[test]
fn a_result_that_nobody_waits_for_is_dropped_once() {
    loom::model(|| {
        let (slot, ended, filler) = filling();
        let is_fetched = slot.poll(Waker::noop()).is_ready();
        slot.abandon();
        filler.join().unwrap();
        assert_eq!(ended.load(Ordering::SeqCst), 1, "fetched: {is_fetched}");
    });
}

#[test]
fn a_callback_gets_the_result_once_whenever_it_is_given() {
    loom::model(|| {
        let (slot, ended, filler) = filling();
        let calls = Arc::new(AtomicUsize::new(0));
        let called = Arc::clone(&calls);
        slot.call(Box::new(move |result| {
            called.fetch_add(1, Ordering::SeqCst);
            drop(result);
        }));
        filler.join().unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    });
}

/// Polls the slot when it is woken.
struct Polls {
    slot: Arc<Slot<Result>>,
    got: Mutex<Option<Result>>,
}

impl Wake for Polls {
    fn wake(self: Arc<Self>) {
        if let Poll::Ready(result) = self.slot.poll(Waker::noop()) {
            *self.got.lock().unwrap() = Some(result);
        }
    }
}

#[test]
fn a_waker_may_poll_as_it_is_woken() {
    loom::model(|| {
        let (slot, ended, filler) = filling();
        let task = Arc::new(Polls {
            slot: Arc::clone(&slot),
            got: Mutex::new(None),
        });
        let polled = slot.poll(&Waker::from(Arc::clone(&task)));
        filler.join().unwrap();
        let got = task.got.lock().unwrap().take();
        assert!(polled.is_ready() || got.is_some());
        drop(got);
        drop(polled);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    });
}
