//! A call that was started asks the nodes by way of the driver.

use super::call::NodesCaller;
use crate::backend::Started;
use crate::driver::Driven;
use crate::engine::{QueueWait, Request};
use crate::net::{Net, Order, RoundOutcome};
use crate::node::{Ended, Message};
use std::future::{Future, poll_fn};
use std::task::Poll;

/// Waits until the round is decided that was ordered last.
pub(super) async fn decision(driven: &Driven) -> RoundOutcome {
    let ended = poll_fn(|_| driven.poll_ended()).await;
    ended.into_round().expect("a round was asked for")
}

impl NodesCaller for Started<'_, Net> {
    fn round(&self, request: Request) -> Poll<RoundOutcome> {
        self.driven.order(Order::Round(request));
        Poll::Pending
    }

    fn decision(&self) -> impl Future<Output = RoundOutcome> {
        decision(self.driven)
    }

    fn wait(&self, wait: QueueWait) -> impl Future<Output = bool> {
        let waiter = wait.waiter;
        self.driven.order(Order::Wait(wait));
        let mut is_ended = false;
        poll_fn(move |_| {
            if let Poll::Ready(ended) = self.driven.poll_ended() {
                return Poll::Ready(matches!(ended, Ended::Wait { is_called: true }));
            }
            // A token ends the wait itself. Nobody else does where the call was dropped.
            if !is_ended && self.call.is_cancelled() {
                is_ended = true;
                self.driven.note_message();
                self.net.post_later(Message::EndWaits(Some(waiter)));
            }
            Poll::Pending
        })
    }

    fn post(&self, request: Request) {
        self.driven.note_message();
        self.net.post_later(Message::Post(request));
    }
}
