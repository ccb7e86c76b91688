//! The place of a caller in the nodes' queue.

use super::Acquire;
use crate::clock::Time;
use crate::engine::{Action, LockId, QueueEntry, QueueState, Removal, Request, Token, Ttl, quorum};

/// The place of a caller in the nodes' queue.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) entry: QueueEntry,
    pub(super) state: QueueState,
    /// When the entry is to be renewed.
    pub(super) renew_at: Time,
    /// No turn is taken before this.
    pub(super) turn_at: Time,
    /// How many turns have failed.
    pub(super) failed_turns: u32,
    /// How often it was its turn and it did not take the lock in time: see `MISSES_MAX`.
    pub(super) misses: u32,
    /// Did the last renewal find that a majority of the nodes has just taken the waiter out?
    pub(super) was_missed: bool,
    /// How many renewals in a row were answered by too few nodes.
    pub(super) unanswered: u32,
    /// When the nodes were last asked.
    pub(super) asked_at: Time,
    /// How often the entry was renewed at the same place.
    pub(super) renewals: u32,
}

impl Place {
    /// For a waiter that is about to join, and takes no turn before `turn_at`.
    pub(super) fn new(entry: QueueEntry, now: Time, turn_at: Time) -> Self {
        Self {
            entry,
            state: QueueState::default(),
            renew_at: now,
            turn_at,
            failed_turns: 0,
            misses: 0,
            was_missed: false,
            unanswered: 0,
            asked_at: now,
            renewals: 0,
        }
    }
}

impl Acquire {
    /// How many waiters are before this one, once it has a place in the queue.
    #[must_use]
    pub fn place(&self) -> Option<u64> {
        let place = self.place.as_ref().filter(|place| place.entry.number > 0);
        place.map(|place| place.state.place)
    }

    /// Does a majority of the nodes reserve the lock for this waiter?
    #[must_use]
    pub fn is_called(&self) -> bool {
        let quorum = quorum(self.rules.nodes);
        self.place.as_ref().is_some_and(|place| place.state.reserved.len() >= quorum)
    }

    /// How long the entry of a waiter in front is kept, if this caller queues.
    pub(super) fn lease_of_waiter(&self, lock: &LockId) -> Option<Ttl> {
        let may_queue = self.may_queue && !self.is_single() && !lock.has_more_keys();
        self.rules.waiter_lease.filter(|_| may_queue)
    }

    /// The entry of this caller, named after its first attempt, before it has a number.
    pub(super) fn entry(&self, lock: &LockId, lease: Ttl) -> QueueEntry {
        QueueEntry {
            lock: lock.clone(),
            ttl: self.ttl,
            waiter: lock.token,
            number: 0,
            since: self.wall,
            lease,
            lease_in_front: lease,
            claim: self.rules.claim_time(),
            channel: None,
        }
    }

    /// The removal of the waiter, if there is one: it may stand in the queue of any node.
    pub(super) fn leave(&mut self, now: Time) -> Option<Request> {
        let QueueEntry { lock, waiter, lease, .. } = self.place.take()?.entry;
        let (ttl, waiter) = (self.ttl.max(lease), Some(waiter));
        let removal = Removal { lock, ttl, linger: None, waiter };
        Some(Request::to_all(&self.rules, now, Action::Undo(removal)))
    }

    /// The waiter in the nodes' queue, if the caller has queued.
    #[must_use]
    pub fn waiter(&self) -> Option<Token> {
        self.place.as_ref().map(|place| place.entry.waiter)
    }
}
