//! Putting the key of a lock that was extended back where it was lost.

use super::Rounds;
use crate::clock::Time;
use crate::engine::{Action, Node, Request};

impl<W> Rounds<W> {
    /// Puts the key of a confirmed extension back on a node that answered that it has lost it. Not
    /// waited for and not counted: it is what the next extension finds.
    pub(super) fn restore(&mut self, now: Time, slot: usize, node: Node) {
        let entry = &self.entries[slot];
        let Some(request) = entry.request.as_ref() else { return };
        let Action::Extend { lock, ttl } = &request.action else { return };
        let Some(ttl) = ttl.left(request.started, now) else { return };
        if entry.tally.refused.contains(node) {
            let action = Action::Restore { lock: lock.clone(), ttl };
            let Request { started, deadline, nodes, .. } = *request;
            let request = Request { action, started, deadline, nodes };
            self.sessions[node.index()].send(now, None, &request);
        }
    }

    /// After a removal, or when a lock was handed over, no key of it may be put back.
    pub(super) fn forget_extensions(&mut self, request: &Request) {
        let removed = match &request.action {
            Action::Release(removal) | Action::Undo(removal) => Some(removal.lock.token),
            _ => request.predecessor().map(|before| before.token),
        };
        let Some(token) = removed.filter(|_| self.extensions > 0) else { return };
        for slot in 0..self.entries.len() {
            let entry = &mut self.entries[slot];
            if entry.request.as_ref().and_then(Request::lock).is_none_or(|lock| lock.token != token)
            {
                continue;
            }
            // It may still be asked for: one thread keeps a lock alive that another gives up.
            entry.is_forgotten = true;
            if entry.waiter.is_none() {
                self.leave(slot);
            }
        }
    }
}
