//! Where a thread waits for what its request comes to.

use super::sync::{Condvar, Mutex, MutexGuard, PoisonError, wait_while};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A place for one thread at a time, used for one request after another.
pub(super) struct Follower<O> {
    state: Mutex<FollowerState<O>>,
    changed: Condvar,
    /// Where the thread waits that wants this outcome and others at the same time.
    leader: Option<Arc<Self>>,
}

struct FollowerState<O> {
    outcome: Option<O>,
    is_called: bool,
    /// Does somebody wait here? If not, waking would be a system call for nothing.
    is_taken: bool,
}

impl<O> Follower<O> {
    pub(super) fn new() -> Self {
        let state = FollowerState { outcome: None, is_called: false, is_taken: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), leader: None }
    }

    /// A place for one of many requests of a thread that waits for all of them at `leader`.
    pub(super) fn behind(leader: &Arc<Self>) -> Self {
        Self { leader: Some(Arc::clone(leader)), ..Self::new() }
    }

    /// Hands over the outcome.
    pub(super) fn hand(&self, outcome: O) {
        self.wake(|state| state.outcome = Some(outcome));
    }

    /// Calls the one who waits here to drive. One call too many does no harm.
    pub(super) fn call(&self) {
        self.wake(|state| state.is_called = true);
    }

    fn wake(&self, change: impl FnOnce(&mut FollowerState<O>)) {
        let mut state = self.lock();
        change(&mut state);
        let is_taken = state.is_taken;
        drop(state);
        if is_taken {
            self.changed.notify_one();
        }
        if let Some(leader) = &self.leader {
            leader.call();
        }
    }

    /// The outcome, if it is there.
    pub(super) fn take(&self) -> Option<O> {
        self.lock().outcome.take()
    }

    /// Waits until the outcome is there, or to be called, for as long as there is a limit. Answers
    /// whether one of them has come.
    pub(super) fn wait(&self, limit: Option<Duration>) -> bool {
        let mut state = self.lock();
        state.is_taken = true;
        let is_early = |state: &mut FollowerState<O>| state.outcome.is_none() && !state.is_called;
        state = wait_while(&self.changed, state, limit, is_early);
        state.is_taken = false;
        let is_called = std::mem::take(&mut state.is_called);
        is_called || state.outcome.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, FollowerState<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The seats of those who wait for one outcome each.
pub(super) struct Followers<O> {
    all: Vec<Arc<Follower<O>>>,
    /// Those that nobody uses, for the next who come.
    free: Vec<Arc<Follower<O>>>,
}

impl<O> Followers<O> {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }

    pub(super) fn take(&mut self) -> Arc<Follower<O>> {
        self.free.pop().unwrap_or_else(|| {
            let seat = Arc::new(Follower::new());
            self.all.push(Arc::clone(&seat));
            seat
        })
    }

    pub(super) fn give_back(&mut self, seat: Arc<Follower<O>>) {
        self.free.push(seat);
    }

    /// Whoever sat here has left without an outcome. It may still come, so nobody else sits here.
    pub(super) fn remove(&mut self, seat: &Arc<Follower<O>>) {
        self.all.retain(|other| !Arc::ptr_eq(other, seat));
    }

    /// Calls whoever waits.
    pub(super) fn call_all(&self) {
        self.all.iter().for_each(|seat| seat.call());
    }
}

impl<O> fmt::Debug for Follower<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}
