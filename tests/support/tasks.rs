//! Tasks without an executor: a future that a test polls itself.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use redlatch::{LockClient, LockGuard, Pending};

use super::eventually;
use super::locks::{LIMIT, LONG};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future in this thread.
#[track_caller]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let start = Instant::now();
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        thread::park_timeout(LIMIT);
        assert!(start.elapsed() < LIMIT, "it is never ready");
    }
}

/// Counts how often it is woken.
#[derive(Default)]
pub struct Woken(AtomicUsize);

impl Woken {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls once, with this waker.
pub fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls a future that is not ready, so that it begins.
#[track_caller]
pub fn begin<F: Future + Unpin>(mut future: F) -> F {
    let polled = poll_with(&mut future, Waker::noop());
    assert!(polled.is_pending(), "it is ready at once");
    future
}

/// Begins a future and waits until its result is there to be fetched.
#[track_caller]
pub fn begin_to_end<F: Future + Unpin>(mut future: F) -> F {
    let woken = Arc::new(Woken::default());
    let polled = poll_with(&mut future, &Waker::from(woken.clone()));
    assert!(polled.is_pending(), "it is ready at once");
    assert!(eventually(LIMIT, || woken.count() == 1), "it never ends");
    future
}

/// Keeps the thread that wakes it until it is told to go on.
struct Blocks {
    enter: mpsc::Sender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Wake for Blocks {
    fn wake(self: Arc<Self>) {
        self.enter.send(()).expect("the test waits");
        let go_on = self.go_on.lock().expect("no panic");
        go_on.recv_timeout(LIMIT).expect("the test goes on");
    }
}

/// Keeps the thread that goes on with the calls of this client, until what is returned is used.
#[track_caller]
pub fn keep_driver_busy(client: &LockClient) -> (Pending<LockGuard>, mpsc::Sender<()>) {
    let (go_on, told) = mpsc::channel();
    let (enter, entered) = mpsc::channel();
    let blocks = Blocks {
        enter,
        go_on: Mutex::new(told),
    };
    let waker = Waker::from(Arc::new(blocks));
    let mut busy = client.request("busy").ttl(LONG).lock_async();
    assert!(poll_with(&mut busy, &waker).is_pending());
    entered.recv_timeout(LIMIT).expect("the lock is free");
    (busy, go_on)
}
