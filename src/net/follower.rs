//! A thread that waits for the outcome of its request, or to be promoted to leader; and a batch of
//! requests of one thread, which waits for all of them.

use super::leader_followers::{EventLoop, Job, LeaderFollowers};
use super::sync::{Condvar, Mutex, MutexGuard, PoisonError, wait_while};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Used by one thread at a time, for one request after another.
pub(super) struct Follower<O> {
    state: Mutex<FollowerState<O>>,
    changed: Condvar,
    /// The follower to promote instead, for a thread with several requests: it waits at that one
    /// only.
    waits_at: Option<Arc<Self>>,
}

struct FollowerState<O> {
    outcome: Option<O>,
    is_promoted: bool,
    /// Does a thread wait? If not, a wake-up would be a needless system call.
    is_waiting: bool,
}

impl<O> Follower<O> {
    fn new() -> Self {
        let state = FollowerState {
            outcome: None,
            is_promoted: false,
            is_waiting: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            waits_at: None,
        }
    }

    /// The follower for one of several requests of a thread, which waits at `other` for all of
    /// them.
    fn that_waits_at(other: &Arc<Self>) -> Self {
        Self {
            waits_at: Some(Arc::clone(other)),
            ..Self::new()
        }
    }

    pub(super) fn deliver(&self, outcome: O) {
        let mut state = self.lock();
        state.outcome = Some(outcome);
        self.wake(state);
    }

    /// Wakes the thread to become the leader. A thread that is promoted although there is a leader
    /// goes on waiting.
    pub(super) fn promote(&self) {
        let mut state = self.lock();
        state.is_promoted = true;
        self.wake(state);
    }

    /// Wakes the thread, whose state has changed.
    fn wake(&self, state: MutexGuard<'_, FollowerState<O>>) {
        let is_waiting = state.is_waiting;
        drop(state);
        if is_waiting {
            self.changed.notify_one();
        }
        if let Some(other) = &self.waits_at {
            other.promote();
        }
    }

    pub(super) fn take_outcome(&self) -> Option<O> {
        self.lock().outcome.take()
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

    pub(super) fn promote_all(&self) {
        self.all.iter().for_each(|follower| follower.promote());
    }
}

impl<O> fmt::Debug for Follower<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}

// Several requests of one thread at a time. They go through the inbox, so that they are written to
// each node together, and they are collected as they are decided, so that the thread can begin
// others meanwhile.
//
// A leader that steps down promotes one follower, and a thread with several requests can wait at
// one follower only. So each request has a follower of its own, and each of these passes a
// promotion or an outcome on to the one where the thread waits.

/// The followers of a thread that has several requests at a time. They are used again.
pub(super) struct Batch<E: EventLoop> {
    /// Where the thread waits.
    waits_at: Arc<Follower<E::Outcome>>,
    /// One for each request. Their index is the number of the request.
    followers: Vec<Arc<Follower<E::Outcome>>>,
    /// The numbers of the requests that are not decided.
    open: Vec<usize>,
    /// The numbers that can be used again.
    free: Vec<usize>,
}

impl<E: EventLoop> Batch<E> {
    pub(super) fn new(shared: &LeaderFollowers<E>) -> Self {
        let waits_at = shared.lock_followers().join();
        Self {
            waits_at,
            followers: Vec::new(),
            open: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts a request into the inbox and returns its number, which no other open request has. It is
    /// sent before later requests of this thread, but perhaps only when the thread calls
    /// [`collect`](Self::collect), which must follow without delay.
    ///
    /// # Panics
    ///
    /// The event loop panicked.
    pub(super) fn begin(&mut self, shared: &LeaderFollowers<E>, order: E::Order) -> usize {
        shared.expect_not_poisoned();
        let number = self.free.pop().unwrap_or_else(|| {
            self.followers
                .push(Arc::new(Follower::that_waits_at(&self.waits_at)));
            self.followers.len() - 1
        });
        shared.send_to_leader(Job::Open(order, Arc::clone(&self.followers[number])));
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
        } = self;
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

impl<E: EventLoop> fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("open", &self.open.len())
            .finish_non_exhaustive()
    }
}
