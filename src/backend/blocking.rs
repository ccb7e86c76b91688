//! A thread that blocks wherever its call waits: it runs the call to its end in a single poll.

use super::{Caller, CancellableCall};
use crate::clock::{self, Time};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The caller of a call that blocks.
pub(crate) struct Blocking<'a, N> {
    /// The connections over which it asks whoever keeps the locks.
    pub(crate) net: &'a N,
    pub(crate) call: &'a CancellableCall<'a>,
}

impl<N> Caller for Blocking<'_, N> {
    fn pause_until(&self, time: Time) -> impl Future<Output = bool> {
        // The first attempt begins with a pause that is over.
        if clock::now() < time {
            let thread = Arc::new(PausingThread::default());
            self.call.begin_pause(&Waker::from(Arc::clone(&thread)));
            if !self.call.is_cancelled() {
                thread.sleep_until(time);
            }
            self.call.end_wait();
        }
        ready(self.call.is_cancelled())
    }
}

/// A thread whose call pauses.
#[derive(Debug, Default)]
pub(crate) struct PausingThread {
    is_woken: Mutex<bool>,
    wake_up: Condvar,
}

impl PausingThread {
    pub(crate) fn sleep_until(&self, time: Time) {
        let is_woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        let left = time.since(clock::now());
        // It wakes either way, and looks whether its call is cancelled.
        let _ = self
            .wake_up
            .wait_timeout_while(is_woken, left, |is_woken| !*is_woken);
    }
}

impl Wake for PausingThread {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake_up.notify_one();
    }
}

/// The result of a call whose caller blocks.
pub(crate) fn at_once<T>(call: Pin<&mut impl Future<Output = T>>) -> T {
    match call.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a caller that blocks has waited when it is asked"),
    }
}
