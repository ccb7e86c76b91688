//! Rounds of waiters: nothing is sent, and a node's vote is its word that it reserves the lock.

use super::Rounds;
use crate::clock::Time;
use crate::engine::{Node, NodeSet, Request, Verb, Vote, quorum};
use crate::node::session::Session;

impl<W> Rounds<W> {
    /// Notes the waiters that come and go with this request. A reservation that is told before the
    /// waiter's round is opened must not be lost.
    pub(super) fn note_waiter(&mut self, request: &Request) {
        let predecessor = request.predecessor().and_then(|before| before.waiter);
        let Some(waiter) = request.waiter().or(predecessor) else { return };
        match request.verb() {
            Verb::Queue => drop(self.reserved.insert(waiter, NodeSet::EMPTY)),
            Verb::Await => {}
            // What was told before its turn counts no more.
            Verb::Turn => drop(self.reserved.remove(&waiter)),
            _ => {
                self.reserved.remove(&waiter);
                self.sessions.iter_mut().for_each(|session| session.forget_bell(&waiter));
            }
        }
    }

    /// Opens a round that waits for reservations.
    pub(super) fn open_wait(&mut self, now: Time, slot: usize) {
        let entry = &self.entries[slot];
        let waiter = entry.request.as_ref().and_then(Request::waiter);
        let reserved = waiter.and_then(|waiter| self.reserved.get(&waiter).copied());
        for node in reserved.unwrap_or(NodeSet::EMPTY).iter() {
            self.entries[slot].tally.cast(node, Vote::Granted);
        }
        self.settle(now, slot, self.are_waits_over);
    }

    /// Hands on what a node has told about reservations.
    pub(super) fn ring(&mut self, now: Time, node: Node) {
        while let Some(waiter) = self.sessions[node.index()].poll_ring() {
            let Some(reserved) = self.reserved.get_mut(&waiter) else { continue };
            reserved.insert(node);
            if let Some(slot) = self.waits.get(&waiter).copied() {
                self.entries[slot].tally.cast(node, Vote::Granted);
                self.settle(now, slot, false);
            }
        }
    }

    /// How many waiters are known, and for how many of them the nodes remember bells. Both are zero
    /// when nobody waits.
    #[must_use]
    pub fn queue_load(&self) -> (usize, usize) {
        let bells = self.sessions.iter().map(Session::bells).sum();
        (self.reserved.len() + self.waits.len(), bells)
    }

    /// Ends the rounds of waiters of whom too few nodes would tell, because connections were lost:
    /// they ask, on new connections.
    pub(super) fn end_unheard_waits(&mut self, now: Time, node: Node) {
        for waiter in self.sessions[node.index()].take_lost_bells() {
            let Some(slot) = self.waits.get(&waiter).copied() else { continue };
            let heard = self.sessions.iter().filter(|session| session.is_heard(&waiter)).count();
            if heard < quorum(self.nodes()) {
                self.settle(now, slot, true);
            }
        }
    }

    /// Ends all rounds that wait for reservations, now and from now on.
    pub(super) fn end_waits(&mut self, now: Time) {
        self.are_waits_over = true;
        let slots: Vec<usize> = self.waits.values().copied().collect();
        slots.into_iter().for_each(|slot| self.settle(now, slot, true));
    }
}
