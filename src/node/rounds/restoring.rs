//! Restores the key of an extended lock on nodes that lost it, and a permit on nodes that granted
//! another.
//!
//! If a node gave our permit to another client, and another one to us, it cannot move ours. It only
//! changes the number in our member, to the permit's plus 1024, which no permit has. Otherwise each
//! of several nodes could have another number free, so that nobody gets a permit that is free.
//! Such a member is
//!
//! * **no vote**: a majority granted another number than the one that is freed, so that vote was
//!   counted as a refusal. Extensions and fencing tokens name the member with the right number, and
//!   the node refuses them.
//! * **a share**: the node grants no whole lock and no reader beside it, as before, and a release
//!   finds it by its value. It counts as a holder when the node calls waiters.
//! * **a claim**: nobody else is given the number, which the other client cannot have on a majority
//!   while we have it. When that one has given it back, this request gives it to us, as on a node
//!   that has nothing of us.

use super::Rounds;
use super::entry::Entry;
use crate::clock::Time;
use crate::engine::{Action, LockId, Node, Removal, Request};

impl<W> Rounds<W> {
    /// Restores the key of a confirmed extension on a node that answered that it has no such key,
    /// and a permit on a node that granted another.
    /// The request has no waiter and no vote: the next extension finds the key.
    pub(super) fn restore(&mut self, now: Time, slot: usize, node: Node) {
        let entry = &self.entries[slot];
        let Some(request) = entry.request.as_ref() else { return };
        let (true, Some(lock), Some(ttl)) =
            (request.is_to_restore(), request.lock(), request.ttl())
        else {
            return;
        };
        let Some(ttl) = ttl.left(request.started, now) else { return };
        if entry.tally.refused.contains(node) {
            let lock = match entry.permit() {
                Some(permit) => lock.clone().with_permit(Some(permit)),
                None => lock.clone(),
            };
            let leave = entry.leave(node);
            let action = Action::Restore { lock, ttl };
            let request = Request { action, ..request.clone() };
            self.sessions[node.index()].send(now, None, &request);
            if let Some(leave) = leave {
                self.sessions[node.index()].send(now, None, &leave);
            }
        }
    }

    /// Prevents that a key is restored after the release, the undo or the handoff of its lock.
    pub(super) fn forget_extensions(&mut self, request: &Request) {
        let removed = match &request.action {
            Action::Release(removal) | Action::Undo(removal) => Some(removal.lock.token),
            // It withdraws a turn that failed, and may have been granted too late.
            Action::Queue(entry) => Some(entry.lock.token),
            _ => request.predecessor().map(|before| before.token),
        };
        let Some(token) = removed.filter(|_| self.extensions > 0) else { return };
        for slot in 0..self.entries.len() {
            let entry = &mut self.entries[slot];
            if entry.request.as_ref().and_then(Request::lock).is_none_or(|lock| lock.token != token)
            {
                continue;
            }
            // It may still have a waiter: another thread may be extending the lock.
            entry.is_forgotten = true;
            if entry.waiter.is_none() {
                self.leave(slot);
            }
        }
    }
}

impl<W> Entry<W> {
    /// The request that takes a waiter out of the queue of a node that refused its turn, which a
    /// majority granted. A node that grants a turn does that itself; on this one, the waiter would
    /// be called before others until its lease has ended.
    fn leave(&self, node: Node) -> Option<Request> {
        let request = self.request.as_ref()?;
        let Action::Turn { new, waiter } = &request.action else { return None };
        if self.permits[node.index()].is_some() {
            return None;
        }
        // Not with the token of the lock, which is not given up.
        let lock = LockId { token: *waiter, ..new.lock.clone() };
        let removal = Removal { lock, ttl: new.ttl, linger: None, waiter: Some(*waiter) };
        Some(Request { action: Action::Undo(removal), ..request.clone() })
    }
}
