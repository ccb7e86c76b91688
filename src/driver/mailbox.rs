//! Between a started call and the thread that polls it.

use crate::clock::Time;
use crate::node::{Ended, Order};
use std::future::{Future, poll_fn};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// What a call waits for.
#[derive(Debug)]
pub(super) enum Wish {
    /// This order is fulfilled.
    Order(Order),
    /// It is woken, or this time has come.
    Sleep { until: Option<Time>, is_pause: bool },
}

#[derive(Debug, Default)]
pub(super) struct Mailbox {
    letters: Mutex<Letters>,
    /// Does nobody wait for the call any more?
    pub(super) is_dropped: std::sync::Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Letters {
    /// From the call.
    wish: Option<Wish>,
    /// To the call: how its order has ended.
    answer: Option<Ended>,
}

impl Mailbox {
    /// What the call waits for from now on.
    pub(super) fn wish(&self, wish: Wish) {
        self.lock().wish = Some(wish);
    }

    pub(super) fn take_wish(&self) -> Option<Wish> {
        self.lock().wish.take()
    }

    pub(super) fn put(&self, ended: Ended) {
        self.lock().answer = Some(ended);
    }

    /// How the order has ended that the call has wished. The thread polls the call when it is
    /// there.
    pub(super) fn answer(&self) -> impl Future<Output = Ended> + Send + '_ {
        poll_fn(|_| {
            let answer = self.lock().answer.take();
            answer.map_or(Poll::Pending, Poll::Ready)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
