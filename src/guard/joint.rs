//! Guards of a share that several threads of this client have together.

use super::release::Withdrawal;
use super::{LockGuard, ReusedLock};
use crate::clock::{self, Time};
use crate::core::{Core, Granted, PUBLISHER, ShareMember};
use crate::error::Error;
use crate::event::Released;
use std::sync::Arc;
use std::time::Duration;

impl LockGuard {
    /// A guard of a share that another thread has taken from the nodes, for a call that `began`
    /// then.
    pub(crate) fn of_member(
        core: &Arc<Core>,
        member: ShareMember,
        granted: Granted,
        began: Time,
        max_hold: Option<Duration>,
    ) -> Self {
        let held = ReusedLock::of_others(granted.held);
        let mut guard = Self::of(Arc::clone(core), held, None, max_hold);
        guard.since = began.max(guard.since);
        (guard.member, guard.capacity) = (Some(member), granted.capacity);
        guard
    }

    /// It is kept alive without this guard: by the thread that took the share, or by a session.
    /// With an error, the notifier cannot be started, and the guard is dropped.
    pub(crate) fn kept_by_others(mut self) -> Result<Self, Error> {
        self.emit_when_lost()?;
        Ok(self)
    }

    /// From now on the threads that wait for this share have it too.
    pub(crate) fn share_with(&mut self, mut member: ShareMember) {
        member.publish(Granted {
            held: Arc::clone(&self.held),
            capacity: self.capacity.clone(),
        });
        self.member = Some(member);
    }

    /// Which of the guards of its lock it is.
    pub(super) fn number(&self) -> usize {
        self.member.as_ref().map_or(PUBLISHER, ShareMember::number)
    }

    /// Leaves the lock to the other members that have it, if there are any.
    pub(super) fn leave(&mut self, mut member: ShareMember, stays_until: Time) -> Withdrawal {
        let number = member.number();
        // Before the others can give it up: what they know afterwards does not count.
        let now = clock::now();
        if let Some(stays_until) = member.leave(stays_until) {
            return Withdrawal::WasLast(stays_until);
        }
        self.is_given_up = true;
        let is_held = self
            .held
            .leave(now, number)
            .is_ok_and(|valid_until| now < valid_until);
        Withdrawal::OthersStay(if is_held {
            Released::InTime
        } else {
            Released::TooLate
        })
    }
}
