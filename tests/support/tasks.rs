//! Tasks without an executor: a future that a test polls itself.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use super::locks::LIMIT;

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
