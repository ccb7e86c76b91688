//! Restores the key of an extended lock on nodes that lost it, and a permit on nodes that granted
//! another, or none.
//!
//! A node that granted another permit gives that up in any case, so that it is free there as
//! everywhere. If the right one belongs to another client there, the node keeps nothing of ours: it
//! cannot take away a vote that it gave. That client either has another permit by a majority, and
//! the node is told so, or gives its attempt up; the next extension brings ours to the node.

use super::Rounds;
use super::entry::Entry;
use crate::engine::{Action, LockId, Node, NodeSet, Removal, Request};
use crate::time::Time;

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
    /// Returns the nodes where it was restored.
    pub(super) fn forget_extensions(&mut self, request: &Request) -> NodeSet {
        let removed = match &request.action {
            Action::Release(removal) | Action::Undo(removal) => Some(removal.lock.token),
            // It withdraws a turn that failed, and may have been granted too late.
            Action::Queue(entry) => Some(entry.lock.token),
            _ => request.predecessor().map(|before| before.token),
        };
        let (mut nodes, mut next) = (NodeSet::EMPTY, 0);
        let Some(token) = removed.filter(|_| !self.reaching.kept.is_empty()) else { return nodes };
        while let Some(slot) = self.kept_slot(&token, next) {
            next = slot + 1;
            nodes = nodes.union(self.restored(slot));
            // It may still have a waiter: another thread may be extending the lock.
            self.entries[slot].is_forgotten = true;
            if self.entries[slot].waiter.is_none() {
                self.end_round(slot);
            }
        }
        nodes
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
