//! Several requests of one thread at a time. They go through the inbox, so that they are written to
//! each node together, and they are collected as they are decided, so that the thread can begin
//! others meanwhile.
//!
//! A leader that steps down promotes one follower, and a thread with several requests can wait at
//! one follower only. So each request has a follower of its own, and each of these passes a
//! promotion or an outcome on to the one where the thread waits.

use super::follower::Follower;
use super::leader_followers::{EventLoop, LeaderFollowers, Wake};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The followers of a thread that has several requests at a time. They are used again.
pub(super) struct Batch<O> {
    /// Where the thread waits.
    waits_at: Arc<Follower<O>>,
    /// One for each request. Their index is the number of the request.
    followers: Vec<Arc<Follower<O>>>,
    /// The numbers of the requests that are not decided.
    open: Vec<usize>,
    /// The numbers that can be used again.
    free: Vec<usize>,
}

impl<O> Batch<O> {
    /// No requests yet.
    pub(super) fn new<E: EventLoop<Outcome = O>, W: Wake>(shared: &LeaderFollowers<E, W>) -> Self {
        let waits_at = shared.lock_followers().join();
        Self { waits_at, followers: Vec::new(), open: Vec::new(), free: Vec::new() }
    }

    /// Puts a request into the inbox and returns its number, which no other open request has. It is
    /// sent before later requests of this thread, but perhaps only when the thread calls
    /// [`collect`](Self::collect), which must follow without delay.
    ///
    /// # Panics
    ///
    /// The event loop panicked.
    pub(super) fn begin<E, W>(&mut self, shared: &LeaderFollowers<E, W>, order: E::Order) -> usize
    where
        E: EventLoop<Outcome = O>,
        W: Wake,
    {
        shared.expect_not_poisoned();
        let number = self.free.pop().unwrap_or_else(|| {
            self.followers.push(Arc::new(Follower::that_waits_at(&self.waits_at)));
            self.followers.len() - 1
        });
        shared.open(order, Arc::clone(&self.followers[number]));
        self.open.push(number);
        number
    }

    /// Is there a request that is not decided? Then the thread must call
    /// [`collect`](Self::collect) again without delay, because it may have been promoted.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Waits until a request is decided, if any is open, and calls `each` with the number and the
    /// outcome of each that is. Returns whether there was any. With an I/O thread, it gives up when
    /// nothing has been delivered for `limit`.
    ///
    /// # Panics
    ///
    /// The event loop panicked, in this thread or in another.
    pub(super) fn collect<E, W>(
        &mut self,
        shared: &LeaderFollowers<E, W>,
        limit: Duration,
        mut each: impl FnMut(usize, O),
    ) -> bool
    where
        E: EventLoop<Outcome = O>,
        W: Wake,
    {
        if !self.is_open() {
            return false;
        }
        let Self { waits_at, followers, open, free } = self;
        let collected = shared.lead_or_follow(waits_at, limit, &mut || {
            let before = open.len();
            open.retain(|&number| match followers[number].take_outcome() {
                Some(outcome) => {
                    free.push(number);
                    each(number, outcome);
                    false
                }
                None => true,
            });
            (open.len() < before).then_some(())
        });
        collected.is_some()
    }

    /// Stops waiting for this request. An outcome that is delivered later is ignored.
    pub(super) fn abandon(&mut self, number: usize) {
        self.open.retain(|other| *other != number);
        self.followers[number] = Arc::new(Follower::that_waits_at(&self.waits_at));
        self.free.push(number);
    }
}

impl<O> fmt::Debug for Batch<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("open", &self.open.len()).finish_non_exhaustive()
    }
}
