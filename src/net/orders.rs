//! Several requests of one thread at a time, as the loop that keeps locks alive has them.

use super::follower::Batch;
use super::{Net, Order, RoundOutcome, RoundsLoop};
use crate::clock::{self, Time};
use crate::engine::Request;
use std::collections::HashMap;
use std::sync::Arc;

/// Several requests of one thread at a time: begun one after another, and collected as they are
/// decided.
#[derive(Debug)]
pub(crate) struct Requests {
    net: Arc<Net>,
    batch: Batch<RoundsLoop>,
    /// The requests that are not decided, by number: when to stop waiting.
    limits: HashMap<usize, Time>,
}

impl Requests {
    pub(crate) fn new(net: Arc<Net>) -> Self {
        Self {
            batch: Batch::new(&net.event_loop),
            net,
            limits: HashMap::new(),
        }
    }

    /// Sends a request to all nodes, before all later requests of this thread, and returns its
    /// number. Does not wait. [`collect`](Self::collect) must follow without delay.
    pub(crate) fn begin(&mut self, request: Request) -> usize {
        let limit = self.net.limit(&request);
        let order = Order::Round(request);
        let number = self.batch.begin(&self.net.event_loop, order);
        self.limits.insert(number, limit);
        number
    }

    /// Waits until a request is decided or its deadline has passed, and calls `each` with the
    /// number and the outcome of each such request. Must be called again without delay while any
    /// request is undecided.
    pub(crate) fn collect(&mut self, mut each: impl FnMut(usize, RoundOutcome)) {
        let Self { net, batch, limits } = self;
        let Some(first) = limits.values().copied().min() else {
            return;
        };
        let limit = first.since(clock::now());
        let is_any = batch.collect(&net.event_loop, limit, |number, ended| {
            limits.remove(&number);
            // Only rounds are begun here.
            let outcome = ended.into_round();
            each(number, outcome.unwrap_or_else(|| net.undelivered()));
        });
        if is_any {
            return;
        }
        // The I/O thread has delivered no outcome in time.
        let now = clock::now();
        limits.retain(|&number, limit| {
            let is_over = *limit <= now;
            if is_over {
                batch.abandon(number);
                each(number, net.undelivered());
            }
            !is_over
        });
    }
}
