//! A call that was started: the twin of one whose thread waits, which it is but for its three
//! places to wait. What a thread does between these is not written twice.

use super::{Acquisition, LockRequest, emit_result};
use crate::backend::{EventRecorder, Start};
use crate::driver::Driven;
use crate::engine::Wait;
use crate::error::Error;
use crate::guard::LockGuard;
use crate::wait_queue::{Caller, Joined, StartedCaller, WaitQueues};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};

impl LockRequest<'_> {
    /// As [`acquire`](Self::acquire), in whichever thread polls it.
    pub(in crate::client) async fn acquire_started(
        mut self,
        driven: &Driven,
        wait: Wait,
    ) -> Result<Option<LockGuard>, Error> {
        let attributes = self.attributes().map_err(Error::Resource)?;
        let mut spec = self.spec(attributes, wait)?;
        spec.call.set_started(driven.is_dropped());
        let core = &self.client.core;
        let acquisition = Acquisition { core, spec };
        let mut recorder = acquisition.recorder();
        let result = acquisition.run_started(driven, recorder.as_mut()).await;
        if let Some(recorder) = recorder {
            emit_result(recorder, &result);
        }
        result
    }
}

impl Acquisition<'_> {
    async fn run_started(
        &self,
        driven: &Driven,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let Self { core, spec } = self;
        self.prepare_keeping()?;
        self.check_own_hold()?;
        let start = match self.queue() {
            Some((queues, name)) => {
                let joined = self.stand(driven, queues, &name).await;
                self.start(joined)?
            }
            None => Some(Start::default()),
        };
        let Some(mut start) = start else {
            return Ok(None);
        };
        if let Some(kind) = spec.share().and_then(|_| self.kind_of_share()) {
            return self.start_joint(driven, &kind, recorder).await;
        }
        let asked = core.backend.start(driven, spec, &mut start, recorder);
        let result = asked.await;
        self.conclude(start.head, result)
    }

    async fn start_joint(
        &self,
        driven: &Driven,
        kind: &Arc<[u8]>,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let reader = match self.enter_share(kind)? {
            ControlFlow::Continue(reader) => reader,
            ControlFlow::Break(guard) => return Ok(Some(guard)),
        };
        let queues = &self.core.joint_shares.queues;
        let name = reader.member.queue_name();
        let joined = self.stand(driven, queues, name).await;
        let mut reader = match self.start_reader(reader, joined)? {
            ControlFlow::Continue(reader) => reader,
            ControlFlow::Break(guard) => return Ok(guard),
        };
        let backend = &self.core.backend;
        let asked = backend.start(driven, &self.spec, &mut reader.start, recorder);
        let result = asked.await;
        self.conclude_reader(reader, result)
    }

    /// Stands in a queue until the call is its head, or has left it.
    async fn stand(&self, driven: &Driven, queues: &Arc<WaitQueues>, name: &Arc<[u8]>) -> Joined {
        let mut place = None;
        poll_fn(|context: &mut Context<'_>| {
            let mut locked = queues.lock();
            let place = match &mut place {
                Some(place) => place,
                None => {
                    let caller = Caller {
                        token: self.spec.call.own(),
                        thread: self.spec.thread,
                        started: Some(StartedCaller {
                            waker: context.waker(),
                            is_dropped: driven.is_dropped(),
                        }),
                    };
                    let wait = self.spec.wait;
                    match queues.enter(&mut locked, name, wait, self.round(), caller) {
                        ControlFlow::Continue(entered) => place.insert(entered),
                        ControlFlow::Break(joined) => return Poll::Ready(joined),
                    }
                }
            };
            match queues.look(&mut locked, place) {
                ControlFlow::Continue(until) => {
                    driven.sleep(until);
                    Poll::Pending
                }
                ControlFlow::Break(joined) => Poll::Ready(joined),
            }
        })
        .await
    }
}
