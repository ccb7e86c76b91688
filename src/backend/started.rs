//! A call that was started: it waits as the driver's thread polls it.

use super::{Caller, CancellableCall};
use crate::clock::{self, Time};
use crate::driver::Driven;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

/// The caller of a call that was started.
pub(crate) struct Started<'a, N> {
    /// The connections over which it asks whoever keeps the locks.
    pub(crate) net: &'a N,
    pub(crate) driven: &'a Driven,
    pub(crate) call: &'a CancellableCall<'a>,
}

impl<N> Started<'_, N> {
    /// Polls a wait that is over or not. It ends early if the call is cancelled, which wakes it;
    /// returns whether it is.
    pub(crate) fn poll_wait(&self, context: &Context<'_>, is_over: bool) -> Poll<bool> {
        if !is_over {
            self.call.begin_pause(context.waker());
        }
        let is_cancelled = self.call.is_cancelled();
        if is_over || is_cancelled {
            self.call.end_wait();
            return Poll::Ready(is_cancelled);
        }
        Poll::Pending
    }
}

impl<N> Caller for Started<'_, N> {
    fn pause_until(&self, time: Time) -> impl Future<Output = bool> {
        poll_fn(move |context| {
            let polled = self.poll_wait(context, clock::now() >= time);
            if polled.is_pending() {
                self.driven.sleep(Some(time));
            }
            polled
        })
    }
}
