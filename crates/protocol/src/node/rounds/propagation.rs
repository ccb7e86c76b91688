//! Brings a lock that is held to every node that can be reached.
//!
//! A round ends with a majority. The lock is brought to the other nodes afterwards, by whichever
//! thread drives the connections next:
//!
//! * **a node that refused**, because it had not carried out a removal yet that others had, gets
//!   the key by [restoring it](Keep::restores), a few times with growing pauses. If the lock came
//!   from the nodes' queue, the node tells when it reserves the lock for the waiter, which has it
//!   already: that proves that the removal has arrived.
//! * **a node that was not reached** gets it when it has answered the greeting.
//!
//! A restoration is not a vote. It has the rest of the ttl, replaces no other holder's token, and
//! is not sent after the lock was released, handed off or lost: see
//! [`forget_extensions`](Rounds::forget_extensions).

use super::Rounds;
use super::entry::Entry;
use crate::engine::{Command, Keep, LockId, Node, NodeSet, Removal, Request, Token, Vote, quorum};
use crate::node::SharedRequest;
use crate::time::Time;
use std::collections::BTreeSet;
use std::time::Duration;

/// The pause before a restoration that was refused is sent again, and how often it is. Each pause
/// is twice as long as the one before it.
const RETRY_PAUSE: Duration = Duration::from_millis(1);
const TRIES_MAX: u32 = 8;

/// Where a lock is that a majority has granted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LockSpread {
    /// The nodes that have it by a restoration, and those whose answer to one is not there yet.
    pub(super) placed: NodeSet,
    asked: NodeSet,
    /// The nodes to which it was ever sent.
    restored: NodeSet,
    /// Those of them to which the round's request was not: its holder does not know that they may
    /// have the lock.
    unknown: NodeSet,
    /// When it is sent again to the nodes that refused, and how often it was.
    retry_at: Option<Time>,
    tries: u32,
    /// When the majority had granted it, and until when its round waits for other nodes.
    pub(super) won_at: Option<Time>,
    pub(super) waits_until: Option<Time>,
}

/// The locks that are kept, and what is known about the nodes that lack them.
#[derive(Debug, Default)]
pub(super) struct Propagation {
    /// The entries of extensions, permits, and locks that are not known to be on every node.
    pub(super) kept: BTreeSet<(Token, usize)>,
    /// No restoration of these is due before this.
    pub(super) retries_at: Option<Time>,
    /// Until when locks wait for nodes to which the first connection is being made. `None` before
    /// the first lock.
    pub(super) arrivals_until: Option<Time>,
    /// The nodes for which a waiter in its turn has waited in vain, and until when that counts.
    pub(super) late_nodes: NodeSet,
    pub(super) late_until: Option<Time>,
}

impl Propagation {
    /// Forgets the entry of this request.
    pub(super) fn forget(&mut self, request: &Request, round: usize) {
        if let Some(token) = request.token().filter(|_| !self.kept.is_empty()) {
            self.kept.remove(&(token, round));
        }
    }

    fn retry_by(&mut self, at: Time) {
        self.retries_at = Some(self.retries_at.map_or(at, |before| before.min(at)));
    }
}

impl<W> Entry<W> {
    pub(super) fn token(&self) -> Option<Token> {
        self.request.as_deref().and_then(Request::token)
    }

    /// Does the entry stay after its round, until every node has the lock?
    pub(super) fn is_lock(&self) -> bool {
        self.is_to_restore()
            && self
                .request
                .as_deref()
                .is_some_and(|it| it.share().is_none())
    }

    fn lacking(&self) -> NodeSet {
        let has = self
            .tally
            .granted
            .union(self.spread.placed)
            .union(self.spread.asked);
        NodeSet::all(self.tally.nodes()).without(has)
    }

    fn is_everywhere(&self) -> bool {
        self.tally.granted.union(self.spread.placed).len() == self.tally.nodes()
    }

    fn is_turn_of(&self, waiter: &Token) -> bool {
        let request = self.request.as_ref();
        request.is_some_and(|it| it.is_turn() && it.waiter() == Some(*waiter))
    }
}

impl<W> Rounds<W> {
    /// Goes on with a lock whose round is over, until every node has it. Leaves other rounds.
    pub(super) fn propagate(&mut self, now: Time, round: usize) {
        let entry = &self.entries[round];
        if !entry.is_lock() {
            return self.end_other(now, round);
        }
        self.keep(round);
        self.send_to_new(now, round);
        self.end_if_everywhere(now, round);
    }

    /// Goes on with a round that is over, of a share or of a lock that is not held.
    fn end_other(&mut self, now: Time, round: usize) {
        if self.note_joined(now, round) {
            return;
        }
        let Entry { tally, .. } = self.entries[round];
        if self.entries[round].is_to_restore() {
            tally
                .refused
                .iter()
                .for_each(|node| self.restore(now, round, node));
            if !tally.is_complete() {
                return;
            }
        }
        let token = self.entries[round]
            .token()
            .filter(|_| tally.refused.len() >= quorum(tally.nodes()));
        let is_lost = self.entries[round]
            .request
            .as_deref()
            .is_some_and(Request::is_extension);
        self.end_round(round);
        // A majority says that it has no such key.
        while let Some(earlier) = token
            .filter(|_| is_lost)
            .and_then(|token| self.idle_round(&token))
        {
            self.end_round(earlier);
        }
    }

    /// Keeps the entry by its token, in place of those of earlier rounds about this lock.
    pub(super) fn keep(&mut self, round: usize) {
        let Some(token) = self.entries[round].token() else {
            return;
        };
        self.propagation.kept.remove(&(token, round));
        while let Some(earlier) = self.idle_round(&token) {
            let restored = self.entries[earlier].spread.restored;
            let spread = &mut self.entries[round].spread;
            spread.restored = spread.restored.union(restored);
            self.end_round(earlier);
        }
        self.propagation.kept.insert((token, round));
    }

    /// The first entry from this index on that is kept for the token.
    fn kept_round(&self, token: &Token, from: usize) -> Option<usize> {
        let mut rounds = self
            .propagation
            .kept
            .range((*token, from)..=(*token, usize::MAX));
        rounds.next().map(|(_, round)| *round)
    }

    /// The first entry without a waiter that is kept for the token.
    fn idle_round(&self, token: &Token) -> Option<usize> {
        let kept = self
            .propagation
            .kept
            .range((*token, 0)..=(*token, usize::MAX));
        let mut rounds = kept.map(|(_, round)| *round);
        rounds.find(|round| self.entries[*round].waiter.is_none())
    }

    /// Counts a late vote about a lock that is kept.
    pub(super) fn note_late_vote(&mut self, now: Time, round: usize, node: Node) {
        if self.entries[round].is_lock() {
            if self.entries[round].tally.refused.contains(node) {
                self.send_to(now, round, node);
            }
            return self.end_if_everywhere(now, round);
        }
        self.restore(now, round, node);
        self.note_late_number(now, round, node);
        if self.entries[round].tally.is_complete() {
            self.end_round(round);
        }
    }

    /// Takes the answer to a restoration.
    pub(super) fn note_restoration(&mut self, now: Time, round: usize, node: Node, vote: Vote) {
        let spread = &mut self.entries[round].spread;
        if !spread.asked.contains(node) {
            return;
        }
        spread.asked.remove(node);
        match vote {
            Vote::Granted => spread.placed.insert(node),
            Vote::Refused => self.retry_later(now, round),
            // If the connection was lost, it is sent on the next one.
            Vote::Failed => {}
        }
        self.settle(now, round, false);
        self.end_if_everywhere(now, round);
    }

    /// A node reserves the lock for a waiter in its turn: if it has refused that, it has freed the
    /// lock since.
    pub(super) fn note_reservation(&mut self, now: Time, node: Node, waiter: &Token) {
        let mut rounds = self.propagation.kept.iter().map(|(_, round)| *round);
        let Some(round) = rounds.find(|round| self.entries[*round].is_turn_of(waiter)) else {
            return;
        };
        if self.entries[round].tally.refused.contains(node) {
            self.send_to(now, round, node);
        }
        self.settle(now, round, false);
    }

    /// A node can be reached again, or for the first time.
    pub(super) fn note_reached(&mut self, now: Time, node: Node) {
        let rounds: Vec<usize> = self
            .propagation
            .kept
            .iter()
            .map(|(_, round)| *round)
            .collect();
        for round in rounds {
            let entry = &self.entries[round];
            if entry.is_lock() && entry.tally.failed.contains(node) {
                self.send_to(now, round, node);
            }
        }
    }

    /// Sends the restorations that are due again.
    pub(super) fn retry_due(&mut self, now: Time) {
        if self.propagation.retries_at.is_none_or(|at| now < at) {
            return;
        }
        self.propagation.retries_at = None;
        let rounds: Vec<usize> = self
            .propagation
            .kept
            .iter()
            .map(|(_, round)| *round)
            .collect();
        for round in rounds {
            match self.entries[round].spread.retry_at {
                Some(at) if now >= at => {
                    self.entries[round].spread.retry_at = None;
                    self.send_to_refused(now, round);
                }
                Some(at) => self.propagation.retry_by(at),
                None => {}
            }
        }
    }

    /// Restores the lock on the nodes that refused it, where that was not tried yet.
    pub(super) fn send_to_new(&mut self, now: Time, round: usize) {
        let entry = &self.entries[round];
        let nodes = entry.tally.refused.without(entry.spread.restored);
        nodes.iter().for_each(|node| self.send_to(now, round, node));
    }

    /// Restores the lock on the nodes that refused it, or refused a restoration.
    fn send_to_refused(&mut self, now: Time, round: usize) {
        let entry = &self.entries[round];
        let nodes = entry.tally.refused.union(entry.spread.restored);
        nodes.iter().for_each(|node| self.send_to(now, round, node));
    }

    /// Restores the lock on a node, if it lacks it and can be written to.
    fn send_to(&mut self, now: Time, round: usize, node: Node) {
        let entry = &self.entries[round];
        let Some(request) = entry.restoration(now).filter(|_| entry.is_lock()) else {
            return;
        };
        let session = &mut self.sessions[node.index()];
        let is_of_use = session.is_ready() && session.same_server().is_none();
        if !is_of_use || !entry.lacking().contains(node) {
            return;
        }
        if !session.has_room(&request) {
            // It would be written later, with too long a ttl.
            return self.retry_later(now, round);
        }
        let ticket = entry.ticket(round);
        session.send(now, Some(ticket), request);
        let entry = &mut self.entries[round];
        if entry.unsent.contains(node) {
            entry.unsent.remove(node);
            entry.spread.unknown.insert(node);
        }
        entry.spread.asked.insert(node);
        entry.spread.restored.insert(node);
    }

    /// Sends the restorations that were refused once more after a pause.
    fn retry_later(&mut self, now: Time, round: usize) {
        let spread = &mut self.entries[round].spread;
        if spread.retry_at.is_some() || spread.tries == TRIES_MAX {
            return;
        }
        let at = now.after(RETRY_PAUSE * 2_u32.pow(spread.tries));
        spread.tries += 1;
        spread.retry_at = Some(at);
        self.propagation.retry_by(at);
    }

    /// Ends the entry of a lock that every node has. One that knows more than the holder stays: the
    /// release, or the handoff, goes to those nodes too.
    fn end_if_everywhere(&mut self, now: Time, round: usize) {
        let entry = &self.entries[round];
        let Some(request) = entry.request.as_ref().filter(|_| entry.waiter.is_none()) else {
            return;
        };
        let is_done = entry.is_everywhere() && entry.spread.unknown.is_empty();
        if is_done || request.ttl_left(now).is_none() {
            self.end_round(round);
        }
    }
}

// Restores the key of an extended lock on nodes that lost it, and a permit on nodes that granted
// another, or none.
//
// A node that granted another permit gives that up in any case, so that it is free there as
// everywhere. If the right one belongs to another client there, the node keeps nothing of ours: it
// cannot take away a vote that it gave. That client either has another permit by a majority, and
// tells the node, or gives its attempt up; the next extension brings ours to the node.

impl<W> Rounds<W> {
    /// Restores the key of a confirmed extension on a node that answered that it has no such key,
    /// and a permit on a node that granted another.
    /// The request has no waiter and no vote: the next extension finds the key.
    pub(super) fn restore(&mut self, now: Time, round: usize, node: Node) {
        let entry = &self.entries[round];
        let is_lacking = entry.tally.refused.contains(node);
        if !is_lacking || !entry.request.as_deref().is_some_and(Request::is_to_restore) {
            return;
        }
        let Some(restoration) = entry.restoration(now) else {
            return;
        };
        for request in [Some(restoration), entry.leave(node)].into_iter().flatten() {
            self.sessions[node.index()].send(now, None, request);
        }
    }

    /// Prevents that a key is restored after the release, the undo or the handoff of its lock.
    /// Returns the nodes where it was restored.
    pub(super) fn forget_extensions(&mut self, request: &Request) -> NodeSet {
        let removed = match &request.command {
            // An entry withdraws a turn that failed, and may have been granted too late.
            Command::Remove(_) | Command::Queue(_) => request.token(),
            _ => request.predecessor().map(|before| before.token),
        };
        let mut nodes = NodeSet::EMPTY;
        let mut next = 0;
        let Some(token) = removed.filter(|_| !self.propagation.kept.is_empty()) else {
            return nodes;
        };
        while let Some(round) = self.kept_round(&token, next) {
            next = round + 1;
            nodes = nodes.union(self.entries[round].spread.restored);
            // It may still have a waiter: another thread may be extending the lock.
            self.entries[round].is_forgotten = true;
            if self.entries[round].waiter.is_none() {
                self.end_round(round);
            }
        }
        nodes
    }
}

impl<W> Entry<W> {
    /// The request that gives the lock to a node which lacks it, for the rest of its ttl.
    fn restoration(&self, now: Time) -> Option<SharedRequest> {
        let request = self.request.as_deref()?;
        let mut lock = request.lock()?.clone();
        let ttl = request.ttl_left(now)?;
        if let Some(permit) = self.permit() {
            lock = lock.with_permit(Some(permit));
        }
        let keep = Keep {
            lock,
            ttl,
            restores: true,
            reclaims: false,
            is_resumed: false,
        };
        Some(Request::into(Request {
            command: Command::Keep(keep),
            ..*request
        }))
    }

    /// The request that takes a waiter out of the queue of a node that refused its turn, which a
    /// majority granted. A node that grants a turn does that itself; on this one, the waiter would
    /// be called before others until its lease has ended.
    fn leave(&self, node: Node) -> Option<SharedRequest> {
        let request = self.request.as_deref()?;
        let waiter = request.waiter().filter(|_| request.is_turn())?;
        let lock = request.lock()?;
        if self.granted_permit(node).is_some() {
            return None;
        }
        // Not with the token of the lock, which is not given up.
        let lock = LockId {
            token: waiter,
            ..lock.clone()
        };
        let ttl = request.ttl()?;
        let waiter = Some(waiter);
        let removal = Removal {
            lock,
            ttl,
            keep_for: None,
            waiter,
            is_awaited: false,
        };
        Some(Request::into(Request {
            command: Command::Remove(removal),
            ..*request
        }))
    }
}
