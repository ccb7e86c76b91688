//! A thread that waits for the outcome of its request, or to be promoted to leader.

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
    pub(super) fn new() -> Self {
        let state = FollowerState { outcome: None, is_promoted: false, is_waiting: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), waits_at: None }
    }

    /// The follower for one of several requests of a thread, which waits at `other` for all of
    /// them.
    pub(super) fn that_waits_at(other: &Arc<Self>) -> Self {
        Self { waits_at: Some(Arc::clone(other)), ..Self::new() }
    }

    pub(super) fn deliver(&self, outcome: O) {
        self.wake(|state| state.outcome = Some(outcome));
    }

    /// Wakes the thread to become the leader. A thread that is promoted although there is a leader
    /// goes on waiting.
    pub(super) fn promote(&self) {
        self.wake(|state| state.is_promoted = true);
    }

    fn wake(&self, change: impl FnOnce(&mut FollowerState<O>)) {
        let mut state = self.lock();
        change(&mut state);
        let is_waiting = state.is_waiting;
        drop(state);
        if is_waiting {
            self.changed.notify_one();
        }
        if let Some(other) = &self.waits_at {
            other.promote();
        }
    }

    /// The outcome, if it was delivered.
    pub(super) fn take_outcome(&self) -> Option<O> {
        self.lock().outcome.take()
    }

    /// Waits for the outcome or a promotion, for at most `limit` if there is one. Returns whether
    /// either has come.
    pub(super) fn wait(&self, limit: Option<Duration>) -> bool {
        let mut state = self.lock();
        state.is_waiting = true;
        let is_early = |state: &mut FollowerState<O>| state.outcome.is_none() && !state.is_promoted;
        state = wait_while(&self.changed, state, limit, is_early);
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
        Self { all: Vec::new(), free: Vec::new() }
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
