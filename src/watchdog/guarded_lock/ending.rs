//! The end of a lock that is held.

use super::{GuardedLock, Phase, State};
use crate::clock::Time;
use crate::error::LossReason;

impl GuardedLock {
    /// The lock is lost now, if it was held: whoever keeps it says so.
    #[allow(dead_code, reason = "nodes tell of no loss, and ensembles do")]
    pub(crate) fn end_now(&self, now: Time, lost: LossReason) {
        let mut state = self.lock();
        self.expire(&mut state, now);
        if state.phase == Phase::Held {
            self.lose(&mut state, now, lost);
        }
    }

    /// One of several guards gives the lock up, and the others go on: its callbacks are dropped,
    /// unless the lock was lost before. Returns what [`check`](Self::check) does.
    pub(crate) fn leave(&self, now: Time, guard: usize) -> Result<Time, LossReason> {
        let mut state = self.lock();
        self.expire(&mut state, now);
        let mut dropped = Vec::new();
        if state.phase == Phase::Held {
            let all = std::mem::take(&mut state.callbacks);
            (dropped, state.callbacks) = all.into_iter().partition(|(owner, _)| *owner == guard);
        }
        let held_until = state.valid_until().map(|valid_until| self.end_of(valid_until));
        drop(state);
        // Not under the mutex: dropping what they own may call into this lock.
        drop(dropped);
        held_until
    }

    /// The end of its validity: its own, or that of the session that holds it.
    pub(super) fn end(&self, state: &State) -> Time {
        self.end_of(state.valid_until)
    }

    pub(super) fn end_of(&self, valid_until: Time) -> Time {
        let session = self.granted.session.as_ref();
        session.map_or(valid_until, |session| valid_until.min(session.get()))
    }

    /// Makes the transition to `Lost` if the validity has passed.
    pub(super) fn expire(&self, state: &mut State, now: Time) {
        if state.phase == Phase::Held && now >= self.end(state) {
            self.lose(state, now, LossReason::Expired);
        }
    }

    pub(super) fn lose(&self, state: &mut State, now: Time, lost: LossReason) {
        state.phase = Phase::Lost(lost);
        state.valid_until = state.valid_until.min(now);
        self.lost.notify_all();
    }
}
