//! Rounds of waiters: a node's vote is its word that it reserves the lock.
//!
//! Nothing is sent, except that the first waiter has the nodes tell when the lock's key changes. A
//! round ends early, and the waiter asks, if the key has changed on enough nodes that it may be
//! free, if a connection on which a node would have told was lost, or when the time is over for
//! which a node reserves the lock for another waiter.

use super::Rounds;
use crate::clock::Time;
use crate::engine::{Node, NodeSet, Request, Token, Verb, Vote, quorum};
use crate::node::session::{Hint, Session};
use std::collections::BTreeMap;
use std::time::Duration;

/// Within this time of each other, nodes carry out one release.
const TOGETHER: Duration = Duration::from_millis(10);

/// What the nodes have told about a waiter since its last request.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    /// The nodes that reserve the lock for it.
    pub(super) reserved: NodeSet,
    /// The nodes where the lock's key has changed.
    changed: NodeSet,
    /// When another waiter's time to claim the lock is over, as each node told last.
    claims: BTreeMap<Node, Time>,
    /// Has a node called on it to ask, or was the connection lost on which it would have told?
    is_called_on: bool,
    /// The entry of its open round, and when that ends if nothing is told.
    round: Option<(usize, Time)>,
    /// Do its rounds end at once, because its call was cancelled?
    pub(super) is_ended: bool,
}

impl Waiter {
    /// When it asks at the latest: when the time to claim is over on a majority of the nodes, with
    /// those that reserve the lock for it, and on others where it is over soon after.
    fn asks_at(&self, quorum: usize) -> Option<Time> {
        let mut times: Vec<Time> = self.claims.values().copied().collect();
        times.sort_unstable();
        let more = quorum.saturating_sub(self.reserved.len()).max(1);
        let enough = *times.get(more - 1).or(times.last())?;
        times.into_iter().rfind(|time| *time <= enough.after(TOGETHER))
    }

    /// Is there something that only a request can clear up?
    fn must_ask(&self, quorum: usize) -> bool {
        let is_free = || self.reserved.union(self.changed).len() >= quorum;
        self.is_ended || self.is_called_on || !self.changed.is_empty() && is_free()
    }
}

impl<W> Rounds<W> {
    /// Notes the waiters that come and go with this request. A reservation that is told before the
    /// waiter's round is opened must not be lost.
    pub(super) fn note_waiter(&mut self, request: &Request) {
        let predecessor = request.predecessor().and_then(|before| before.waiter);
        let Some(name) = request.waiter().or(predecessor) else { return };
        match request.verb() {
            Verb::Queue => {
                let waiter = self.queued.entry(name).or_default();
                *waiter = Waiter { is_ended: waiter.is_ended, ..Waiter::default() };
            }
            Verb::Await => {}
            // What was told before its turn counts no more.
            Verb::Turn => drop(self.queued.remove(&name)),
            _ => {
                self.queued.remove(&name);
                self.sessions.iter_mut().for_each(|session| session.forget_waiter(&name));
            }
        }
    }

    /// The nodes that reserve the lock for a waiter whose turn begins with this request.
    pub(super) fn called(&self, request: &Request) -> NodeSet {
        let waiter = request.waiter().filter(|_| request.verb() == Verb::Turn);
        let waiter = waiter.and_then(|waiter| self.queued.get(&waiter));
        waiter.map_or(NodeSet::EMPTY, |waiter| waiter.reserved)
    }

    /// Opens a round that waits for reservations.
    pub(super) fn open_wait(&mut self, now: Time, slot: usize) {
        let Some(request) = self.entries[slot].request.clone() else { return };
        for session in &mut self.sessions {
            session.watch_key(now, &request);
        }
        let (Some(name), quorum) = (request.waiter(), quorum(self.nodes())) else { return };
        let waiter = self.queued.entry(name).or_default();
        waiter.round = Some((slot, request.deadline));
        let (reserved, asks_at) = (waiter.reserved, waiter.asks_at(quorum));
        let must_ask = waiter.must_ask(quorum) || self.are_waits_over;
        for node in reserved.iter() {
            self.entries[slot].tally.cast(node, Vote::Granted);
        }
        self.ask_at((slot, request.deadline), asks_at);
        self.settle(now, slot, must_ask);
    }

    /// Ends a waiter's round at this time, if its own end is later.
    fn ask_at(&mut self, (slot, end): (usize, Time), time: Option<Time>) {
        if let Some(request) = &mut self.entries[slot].request {
            request.deadline = time.map_or(end, |time| end.min(time));
            request.connect_deadline = request.deadline;
            self.ends_at = self.ends_at.min(request.deadline);
        }
    }

    /// Hands on what a node has told about waiters.
    pub(super) fn notify(&mut self, now: Time, node: Node) {
        let quorum = quorum(self.nodes());
        while let Some((name, hint)) = self.sessions[node.index()].poll_hint() {
            self.reaching.in_vain.remove(node);
            let Some(waiter) = self.queued.get_mut(&name) else {
                if hint == Hint::Reserved {
                    self.note_reservation(now, node, &name);
                }
                continue;
            };
            match hint {
                Hint::Reserved => {
                    waiter.reserved.insert(node);
                    waiter.claims.remove(&node);
                }
                Hint::Changed => waiter.changed.insert(node),
                Hint::Lost | Hint::AskIn(Duration::ZERO) => waiter.is_called_on = true,
                Hint::AskIn(time) => drop(waiter.claims.insert(node, now.after(time))),
            }
            let (must_ask, asks_at) = (waiter.must_ask(quorum), waiter.asks_at(quorum));
            let Some((slot, end)) = waiter.round else { continue };
            if hint == Hint::Reserved {
                self.entries[slot].tally.cast(node, Vote::Granted);
            }
            self.ask_at((slot, end), asks_at);
            self.settle(now, slot, must_ask);
        }
    }

    /// How many waiters are known, and how many the nodes notify. Both are zero when nobody waits.
    #[must_use]
    pub fn queue_load(&self) -> (usize, usize) {
        (self.queued.len(), self.sessions.iter().map(Session::waiters_heard).sum())
    }

    /// Ends the rounds that wait for reservations, now and from now on: those of one waiter, until
    /// its next turn, or all.
    pub(super) fn end_waits(&mut self, now: Time, waiter: Option<Token>) {
        self.are_waits_over |= waiter.is_none();
        let is_meant = |other: &Token| waiter.is_none_or(|waiter| waiter == *other);
        let mut slots = Vec::new();
        for (_, waiter) in self.queued.iter_mut().filter(|(name, _)| is_meant(name)) {
            waiter.is_ended = true;
            slots.extend(waiter.round.map(|(slot, _)| slot));
        }
        slots.into_iter().for_each(|slot| self.settle(now, slot, true));
    }

    /// The round of this waiter is over.
    pub(super) fn end_wait(&mut self, name: &Token) {
        if let Some(waiter) = self.queued.get_mut(name) {
            waiter.round = None;
        }
    }
}
