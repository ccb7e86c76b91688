//! A call that was started asks the nodes by way of the driver.

use super::Redlock;
use super::call::NodesCaller;
use crate::backend::{Started, StartedExtension};
use crate::clock::{self, Time};
use crate::driver::Driven;
use crate::engine::{Extended, Extension, QueueWait, Request, Rules, Ttl};
use crate::error::LossReason;
use crate::net::{Net, Order, RoundOutcome};
use crate::node::{Ended, Message};
use crate::watchdog::GuardedLock;
use crossbeam_channel::bounded;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

/// Waits until the round is decided that was ordered last.
pub(super) async fn decision(driven: &Driven) -> RoundOutcome {
    let ended = poll_fn(|_| driven.poll_ended()).await;
    ended.into_round().expect("a round was asked for")
}

impl Redlock {
    pub(super) async fn extend_started(
        &self,
        driven: &Driven,
        held: &Arc<GuardedLock>,
        ttl: Ttl,
    ) -> StartedExtension {
        let (sender, begun) = bounded(1);
        let held = Arc::clone(held);
        let rules = Arc::clone(&self.rules);
        driven.order_made_when_sent(Box::new(move |send| {
            // It fails only if the call is gone, because the event loop has panicked.
            let _ = sender.send(begin_extension(&held, ttl, &rules, send));
        }));
        let begun = poll_fn(|_| begun.try_recv().map_or(Poll::Pending, Poll::Ready)).await;
        let extension = match begun? {
            Begun::Sent(extension) => extension,
            Begun::Unsent(extended) => return Ok((extended, Vec::new())),
        };
        let outcome = decision(driven).await;
        // After the answer that decided it: a lock must not look longer than it is.
        let extended = extension.conclude(clock::now(), &outcome.votes, &self.rules);
        Ok((extended, outcome.reports))
    }
}

enum Begun {
    Sent(Extension),
    /// The nodes need not be asked.
    Unsent(Extended),
}

/// Begins an extension, and sends it under the lock's mutex.
fn begin_extension(
    held: &GuardedLock,
    ttl: Ttl,
    rules: &Rules,
    send: &mut dyn FnMut(Request),
) -> Result<Begun, LossReason> {
    // Before the first byte is written: the lock must not look longer than it is.
    let now = clock::now();
    let mut begun = None;
    held.begin_extension(now, ttl, |held| {
        let extension = Extension {
            held,
            ttl,
            began: now,
            is_resumed: false,
        };
        begun = Some(match extension.request(rules) {
            Ok(request) => {
                send(request);
                Begun::Sent(extension)
            }
            Err(extended) => Begun::Unsent(extended),
        });
        true
    })?;
    Ok(begun.expect("an extension that began without an error is there"))
}

impl NodesCaller for Started<'_, Net> {
    fn await_room(&self, end: Option<Time>, is_awaited: bool) -> impl Future<Output = bool> {
        let end = end.filter(|end| clock::now() < *end);
        poll_fn(move |context| {
            let is_late = end.is_some_and(|end| clock::now() >= end);
            let is_over = is_late || self.driven.take_room();
            let polled = self.poll_wait(context, is_over);
            if polled.is_pending() {
                self.driven.await_room(end, is_awaited);
            }
            polled.map(|is_cancelled| is_cancelled || is_late)
        })
    }

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
