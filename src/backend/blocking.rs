//! A thread that blocks wherever its call waits: it runs the call to its end in a single poll.

use super::{Caller, CancellableCall};
use crate::clock::Time;
use std::future::{Future, ready};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The caller of a call that blocks.
pub(crate) struct Blocking<'a, N> {
    /// The connections over which it asks whoever keeps the locks.
    pub(crate) net: &'a N,
    pub(crate) call: &'a CancellableCall<'a>,
}

impl<N> Caller for Blocking<'_, N> {
    fn pause_until(&self, time: Time) -> impl Future<Output = bool> {
        ready(self.call.pause_until(time))
    }
}

/// The result of a call whose caller blocks.
pub(crate) fn at_once<T>(call: Pin<&mut impl Future<Output = T>>) -> T {
    match call.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a caller that blocks has waited when it is asked"),
    }
}
