//! A thread that waits for the outcome of its order, or to be promoted to leader; a call without a
//! thread, which is woken for it; and a batch of orders of one thread, which waits for all of them.

use super::leader_followers::{EventLoop, Job, LeaderFollowers};
use super::sync::{Condvar, Mutex, MutexGuard, PoisonError, wait_while};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// Used by one thread at a time, for one order after another.
pub(super) struct Follower<O> {
    state: Mutex<FollowerState<O>>,
    changed: Condvar,
    /// Of one of several orders of a thread: where that waits.
    batch: Option<BatchPlace<O>>,
}

/// Where a thread with several orders waits, and the number of one of them.
struct BatchPlace<O> {
    waits_at: Arc<Follower<O>>,
    number: usize,
}

struct FollowerState<O> {
    outcome: Option<O>,
    is_promoted: bool,
    /// Does a thread wait? If not, a wake-up would be a needless system call.
    is_waiting: bool,
    /// Of a call without a thread, which is woken once. It runs no user's code.
    waker: Option<Waker>,
    /// Where a thread with several orders waits: the numbers of those that have an outcome.
    fulfilled: Vec<usize>,
    /// Is the thread to look at what it is told elsewhere?
    is_nudged: bool,
}

impl<O> Follower<O> {
    fn new() -> Self {
        let state = FollowerState {
            outcome: None,
            is_promoted: false,
            is_waiting: false,
            waker: None,
            fulfilled: Vec::new(),
            is_nudged: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            batch: None,
        }
    }

    /// The follower for the order of this number of a thread, which waits at `waits_at` for all of
    /// them.
    fn of_batch(waits_at: &Arc<Self>, number: usize) -> Self {
        let place = BatchPlace {
            waits_at: Arc::clone(waits_at),
            number,
        };
        Self {
            batch: Some(place),
            ..Self::new()
        }
    }

    pub(super) fn deliver(&self, outcome: O) {
        let mut state = self.lock();
        state.outcome = Some(outcome);
        self.wake(state);
        if let Some(BatchPlace { waits_at, number }) = &self.batch {
            let mut state = waits_at.lock();
            state.fulfilled.push(*number);
            state.is_promoted = true;
            waits_at.wake(state);
        }
    }

    /// Wakes the thread to become the leader. A thread that is promoted although there is a leader
    /// goes on waiting.
    pub(super) fn promote(&self) {
        let mut state = self.lock();
        state.is_promoted = true;
        self.wake(state);
        if let Some(place) = &self.batch {
            place.waits_at.promote();
        }
    }

    /// Does its thread lead once it is promoted? A thread with several orders that has news, or
    /// does not wait, goes on with its work first, which may take long.
    pub(super) fn is_at_hand(&self) -> bool {
        let Some(BatchPlace { waits_at, .. }) = &self.batch else {
            return true;
        };
        let state = waits_at.lock();
        state.is_waiting && !state.has_news()
    }

    /// Promotes the thread unless it has what it waits for. Returns whether it waits, and so leads
    /// at once. One that does not wait yet tries to lead before it does.
    fn promote_if_waiting(&self) -> bool {
        let mut state = self.lock();
        if state.has_news() {
            return false;
        }
        state.is_promoted = true;
        let is_waiting = state.is_waiting;
        self.wake(state);
        is_waiting
    }

    /// Wakes the thread of a batch to look at what it is told elsewhere.
    pub(super) fn nudge(&self) {
        let mut state = self.lock();
        state.is_nudged = true;
        state.is_promoted = true;
        self.wake(state);
    }

    /// Wakes the thread or the call, whose state has changed.
    fn wake(&self, mut state: MutexGuard<'_, FollowerState<O>>) {
        let is_waiting = state.is_waiting;
        let waker = state.waker.take();
        drop(state);
        if is_waiting {
            self.changed.notify_one();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A call without a thread waits here, and is woken when there is an outcome or a promotion.
    #[allow(
        dead_code,
        reason = "models have threads, and so has all but an ensemble"
    )]
    pub(super) fn set_waker(&self, waker: Option<Waker>) {
        self.lock().waker = waker;
    }

    pub(super) fn take_outcome(&self) -> Option<O> {
        self.lock().outcome.take()
    }

    /// Exchanges this empty list for the numbers of the orders that have an outcome since the last
    /// time. Returns whether the thread was nudged since then.
    fn take_news(&self, fulfilled: &mut Vec<usize>) -> bool {
        let mut state = self.lock();
        std::mem::swap(&mut state.fulfilled, fulfilled);
        std::mem::take(&mut state.is_nudged)
    }

    /// Waits for the outcome or a promotion, for at most `limit` if there is one. Returns whether
    /// either has come.
    pub(super) fn wait(&self, limit: Option<Duration>) -> bool {
        let mut state = self.lock();
        state.is_waiting = true;
        state = wait_while(&self.changed, state, limit, |state| {
            state.outcome.is_none() && !state.is_promoted
        });
        state.is_waiting = false;
        let is_promoted = std::mem::take(&mut state.is_promoted);
        is_promoted || state.outcome.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, FollowerState<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O> FollowerState<O> {
    /// Is there something for which the thread returns to its caller?
    fn has_news(&self) -> bool {
        self.outcome.is_some() || !self.fulfilled.is_empty() || self.is_nudged
    }
}

/// The followers of all threads.
pub(super) struct Followers<O> {
    all: Vec<Arc<Follower<O>>>,
    /// Those that no thread uses. They are used again.
    free: Vec<Arc<Follower<O>>>,
}

impl<O> Followers<O> {
    pub(super) fn new() -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn join(&mut self) -> Arc<Follower<O>> {
        self.free.pop().unwrap_or_else(|| {
            let follower = Arc::new(Follower::new());
            self.all.push(Arc::clone(&follower));
            follower
        })
    }

    /// The thread has its outcome: another may use its follower.
    pub(super) fn reuse(&mut self, follower: Arc<Follower<O>>) {
        self.free.push(follower);
    }

    /// The thread has given up waiting. Its outcome may still be delivered, so this follower is not
    /// used again.
    pub(super) fn remove(&mut self, follower: &Arc<Follower<O>>) {
        self.all.retain(|other| !Arc::ptr_eq(other, follower));
    }

    /// Promotes a thread that waits. If there is none, those that are about to wait lead first.
    pub(super) fn promote_one(&self) {
        for follower in &self.all {
            if follower.promote_if_waiting() {
                return;
            }
        }
    }

    pub(super) fn promote_all(&self) {
        self.all.iter().for_each(|follower| follower.promote());
    }
}

impl<O> fmt::Debug for Follower<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}

// Several orders of one thread at a time. They go through the inbox, so that they are written to
// each node together, and they are collected as they are fulfilled, so that the thread can begin
// others meanwhile.
//
// A leader that steps down promotes one follower, and a thread with several orders can wait at one
// follower only. So each order has a follower of its own, and each of these passes a promotion or
// an outcome on to the one where the thread waits. There may be thousands of orders, most of which
// wait for long: the thread is told which are fulfilled, and does not look at all.

/// The followers of a thread that has several orders at a time. They are used again.
pub(super) struct Batch<E: EventLoop> {
    /// Where the thread waits.
    waits_at: Arc<Follower<E::Outcome>>,
    /// One for each order. Their index is the number of the order.
    followers: Vec<Arc<Follower<E::Outcome>>>,
    /// How many orders are not fulfilled.
    open: usize,
    /// The numbers that can be used again.
    free: Vec<usize>,
    /// Empty but while outcomes are taken.
    fulfilled: Vec<usize>,
}

impl<E: EventLoop> Batch<E> {
    pub(super) fn new(shared: &LeaderFollowers<E>) -> Self {
        let waits_at = shared.lock_followers().join();
        Self {
            waits_at,
            followers: Vec::new(),
            open: 0,
            free: Vec::new(),
            fulfilled: Vec::new(),
        }
    }

    /// Where the thread waits, to [nudge](LeaderFollowers::nudge) it there.
    pub(super) fn waits_at(&self) -> &Arc<Follower<E::Outcome>> {
        &self.waits_at
    }

    /// Puts an order into the inbox and returns its number, which no other open order has. It is
    /// sent before later orders of this thread, but perhaps only when the thread calls
    /// [`collect`](Self::collect), which must follow without delay.
    ///
    /// # Panics
    ///
    /// The event loop panicked.
    pub(super) fn begin(&mut self, shared: &LeaderFollowers<E>, order: E::Order) -> usize {
        shared.expect_not_poisoned();
        let number = self.free.pop().unwrap_or_else(|| {
            let number = self.followers.len();
            let follower = Follower::of_batch(&self.waits_at, number);
            self.followers.push(Arc::new(follower));
            number
        });
        shared.send_to_leader(Job::Open(order, Arc::clone(&self.followers[number])));
        self.open += 1;
        number
    }

    /// Is there an order that is not fulfilled? Then the thread must call
    /// [`collect`](Self::collect) again without delay, because it may have been promoted.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Waits until an order is fulfilled, if any is open, or until the thread is nudged, and calls
    /// `each` with the number and the outcome of each order that is. Returns whether either has
    /// come. With an I/O thread, it gives up when nothing has been delivered for `limit`.
    ///
    /// # Panics
    ///
    /// The event loop panicked, in this thread or in another.
    pub(super) fn collect(
        &mut self,
        shared: &LeaderFollowers<E>,
        limit: Duration,
        mut each: impl FnMut(usize, E::Outcome),
    ) -> bool {
        if !self.is_open() {
            return false;
        }
        let Self {
            waits_at,
            followers,
            open,
            free,
            fulfilled,
        } = self;
        let collected = shared.lead_or_follow(waits_at, limit, &mut || {
            let before = *open;
            let is_nudged = waits_at.take_news(fulfilled);
            for number in fulfilled.drain(..) {
                // Without an outcome, it is that of an order that was abandoned.
                if let Some(outcome) = followers[number].take_outcome() {
                    *open -= 1;
                    free.push(number);
                    each(number, outcome);
                }
            }
            (is_nudged || *open < before).then_some(())
        });
        collected.is_some()
    }

    /// Stops waiting for this order. An outcome that is delivered later is ignored.
    pub(super) fn abandon(&mut self, number: usize) {
        self.open -= 1;
        self.followers[number] = Arc::new(Follower::of_batch(&self.waits_at, number));
        self.free.push(number);
    }
}

impl<E: EventLoop> fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}
