//! Several orders of one thread at a time, as the loop that keeps locks alive has them.

use super::follower::{Batch, Follower};
use super::leader_followers::LeaderFollowers;
use super::{MARGIN, Net, RoundsLoop};
use crate::clock::{self, Time};
use crate::node::{Ended, Order};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Several orders of one thread at a time: begun one after another, and collected as they are
/// fulfilled.
#[derive(Debug)]
pub(crate) struct Orders {
    net: Arc<Net>,
    batch: Batch<RoundsLoop>,
    /// The orders that are not fulfilled, by number.
    limits: HashMap<usize, Limit>,
    /// Their limits in order.
    in_order: BTreeSet<(Time, usize)>,
}

/// With an I/O thread, an order is waited for until then.
#[derive(Debug)]
struct Limit {
    at: Time,
    /// How it ends if nothing has been delivered by then.
    undelivered: fn(&Net) -> Ended,
}

impl Orders {
    pub(crate) fn new(net: Arc<Net>) -> Self {
        Self {
            batch: Batch::new(&net.event_loop),
            net,
            limits: HashMap::new(),
            in_order: BTreeSet::new(),
        }
    }

    /// What makes [`collect`](Self::collect) return although nothing is fulfilled.
    pub(crate) fn nudge(&self) -> Nudge {
        Nudge {
            event_loop: Arc::clone(&self.net.event_loop),
            waits_at: Arc::clone(self.batch.waits_at()),
        }
    }

    /// Begins an order before all later orders of this thread, and returns its number. Does not
    /// wait. [`collect`](Self::collect) must follow without delay.
    pub(crate) fn begin(&mut self, order: Order) -> usize {
        let limit = Limit::of(&self.net, &order);
        let at = limit.at;
        let number = self.batch.begin(&self.net.event_loop, order);
        self.limits.insert(number, limit);
        self.in_order.insert((at, number));
        number
    }

    /// Writes what was posted [for later](Net::post_later), if no order is waited for.
    pub(crate) fn flush(&self) {
        self.net.flush();
    }

    /// Waits until an order is fulfilled or its limit has passed, and calls `each` with the number
    /// and the outcome of each such order. Must be called again without delay while any order is
    /// not fulfilled.
    pub(crate) fn collect(&mut self, mut each: impl FnMut(usize, Ended)) {
        let Self {
            net,
            batch,
            limits,
            in_order,
        } = self;
        let Some((first, _)) = in_order.first() else {
            return;
        };
        let limit = first.since(clock::now());
        let has_come = batch.collect(&net.event_loop, limit, |number, ended| {
            if let Some(limit) = limits.remove(&number) {
                in_order.remove(&(limit.at, number));
            }
            each(number, ended);
        });
        if has_come {
            return;
        }
        // The I/O thread has delivered nothing in time.
        let now = clock::now();
        while let Some((_, number)) = in_order.first().copied().filter(|(at, _)| *at <= now) {
            in_order.pop_first();
            batch.abandon(number);
            if let Some(limit) = limits.remove(&number) {
                each(number, (limit.undelivered)(net));
            }
        }
    }
}

/// Has the thread of a batch look at what it was told elsewhere before this.
#[derive(Clone, Debug)]
pub(crate) struct Nudge {
    event_loop: Arc<LeaderFollowers<RoundsLoop>>,
    waits_at: Arc<Follower<Ended>>,
}

impl Nudge {
    pub(crate) fn nudge(&self) {
        self.event_loop.nudge(&self.waits_at);
    }
}

impl Limit {
    fn of(net: &Net, order: &Order) -> Self {
        match order {
            Order::Round(request) => Self {
                at: net.limit(request),
                undelivered: |net| Ended::Round(net.undelivered()),
            },
            Order::Wait(wait) => Self {
                at: wait.until.after(MARGIN),
                undelivered: |_| Ended::Wait { is_called: false },
            },
            Order::Until(time) => Self {
                at: time.after(MARGIN),
                undelivered: |_| Ended::Until,
            },
        }
    }
}
