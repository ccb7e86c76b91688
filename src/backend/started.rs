//! A call that was started: it waits as the driver's thread polls it.

use super::{Backend, EventRecorder, LockSpec, Start, Waiting};
use crate::driver::Driven;
use crate::engine::HeldLock;
use crate::error::Error;
use crate::wait_queue::{Caller, Joined, StartedCaller, WaitQueues};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::Duration;

/// A call that was started: it waits as the driver's thread polls it.
pub(crate) struct Started(pub(crate) Driven);

impl Waiting for Started {
    fn is_dropped(&self) -> Option<&Arc<AtomicBool>> {
        Some(self.0.is_dropped())
    }

    async fn stand(
        &self,
        queues: &Arc<WaitQueues>,
        key: &Arc<[u8]>,
        round: Duration,
        spec: &LockSpec<'_>,
    ) -> Joined {
        let mut place = None;
        poll_fn(|context| {
            let mut locked = queues.lock();
            let place = match &mut place {
                Some(place) => place,
                None => {
                    let caller = Caller {
                        token: spec.call.own(),
                        thread: spec.thread,
                        started: Some(StartedCaller {
                            waker: context.waker(),
                            is_dropped: self.0.is_dropped(),
                        }),
                    };
                    match queues.enter(&mut locked, key, spec.wait, round, caller) {
                        ControlFlow::Continue(entered) => place.insert(entered),
                        ControlFlow::Break(joined) => return Poll::Ready(joined),
                    }
                }
            };
            match queues.look(&mut locked, place) {
                ControlFlow::Continue(until) => {
                    self.0.sleep(until, false);
                    Poll::Pending
                }
                ControlFlow::Break(joined) => Poll::Ready(joined),
            }
        })
        .await
    }

    async fn acquire(
        &self,
        backend: &dyn Backend,
        spec: &LockSpec<'_>,
        start: &mut Start,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<HeldLock>, Error> {
        backend.start(&self.0, spec, start, recorder).await
    }
}
