//! A call that was started asks the nodes by way of the driver.

use super::call::NodesCaller;
use crate::backend::{Caller, CancellableCall};
use crate::clock::{self, Time};
use crate::driver::Driven;
use crate::engine::{QueueWait, Request};
use redlatch_protocol::node::RoundOutcome;
use std::future::{Future, poll_fn};
use std::task::Poll;

pub(super) struct Started<'a> {
    pub(super) driven: &'a Driven,
    pub(super) call: &'a CancellableCall<'a>,
}

impl Caller for Started<'_> {
    fn pause_until(&self, time: Time) -> impl Future<Output = bool> {
        poll_fn(move |_| {
            if self.call.is_cancelled() {
                return Poll::Ready(true);
            }
            if clock::now() >= time {
                return Poll::Ready(false);
            }
            self.driven.sleep(Some(time), true);
            Poll::Pending
        })
    }
}

impl NodesCaller for Started<'_> {
    fn round(&self, request: Request) -> Poll<RoundOutcome> {
        self.driven.round(request);
        Poll::Pending
    }

    fn decision(&self) -> impl Future<Output = RoundOutcome> {
        self.driven.decision()
    }

    fn wait(&self, wait: QueueWait) -> impl Future<Output = bool> {
        self.driven.wait(wait)
    }

    fn post(&self, request: Request) {
        self.driven.post(request);
    }
}
