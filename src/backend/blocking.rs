//! A thread that blocks wherever its call waits: it runs the call to its end in a single poll.

use super::{Backend, Caller, CancellableCall, EventRecorder, LockSpec, Start, Waiting};
use crate::clock::Time;
use crate::engine::HeldLock;
use crate::error::Error;
use crate::wait_queue::{self, Joined, WaitQueues};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

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

/// The thread that calls.
pub(crate) struct ThisThread;

impl Waiting for ThisThread {
    fn is_dropped(&self) -> Option<&Arc<AtomicBool>> {
        None
    }

    fn stand(
        &self,
        queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
        round: Duration,
        spec: &LockSpec<'_>,
    ) -> impl Future<Output = Joined> + Send {
        let caller = wait_queue::Caller {
            token: spec.call.own(),
            thread: spec.thread,
            started: None,
        };
        ready(queues.join(key, spec.wait, round, caller))
    }

    fn acquire(
        &self,
        backend: &dyn Backend,
        spec: &LockSpec<'_>,
        start: &mut Start,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> impl Future<Output = Result<Option<HeldLock>, Error>> + Send {
        ready(backend.acquire(spec, start, recorder))
    }
}

/// The result of a call whose caller blocks.
pub(crate) fn at_once<T>(call: Pin<&mut impl Future<Output = T>>) -> T {
    match call.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a caller that blocks has waited when it is asked"),
    }
}
