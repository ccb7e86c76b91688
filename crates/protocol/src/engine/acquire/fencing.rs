//! Fencing tokens: numbers that grow with every grant of a lock.
//!
//! Each node has a counter for the lock. A grant raises it by one, or to the requesting client's
//! wall clock in microseconds if that is larger, and answers with the new value. The largest answer
//! is the fencing token. A majority must know it before the lock is held: the next grant needs a
//! majority too, so it sees this counter on at least one node and gets a larger token. If a
//! majority has answered with the largest counter, a majority knows it already. If not, a second
//! round writes it to all nodes: each node takes it only if the lock's key still holds our token
//! and the node's counter is not above it.
//!
//! A permit is counted like a lock: the numbers of all permits of a resource grow, so those of each
//! do. Two permits that are granted at the same time may have the same number. A reader raises no
//! counter by one, but to its wall clock, and gets the largest number that a majority knows, by the
//! same two rounds: at least the last writer's, and less than the next writer's, because a majority
//! knows it. While a lock is shared, a counter above a token is no refusal: it is raised by others
//! that hold shares too, and the next holder of this one gets a larger number all the same.
//!
//! The wall clock makes tokens grow when nodes have lost their data, as long as there are fewer
//! grants than microseconds; the counters make them grow when clients' wall clocks disagree.
//! `tests/searches/fencing.rs` checks all histories of a certain size for both. Using the clock
//! only where there is no counter is not enough: a claim that was under way while a node lost its
//! data would start a counter below tokens that were granted meanwhile.

use super::{Acquire, Acquired, State};
use crate::engine::{
    Acquisition, Action, Ballot, Counters, Entropy, FENCE_SEED_MAX, HeldLock, LockId, Request,
    Verdict, quorum,
};
use crate::time::Time;
use std::sync::Arc;

/// The least value of a counter, by this wall clock.
pub(super) fn seed(wall: u64) -> u64 {
    wall.clamp(1, FENCE_SEED_MAX)
}

impl Acquire {
    /// What an attempt with these random numbers takes.
    pub(super) fn acquisition(&self, entropy: Entropy) -> Acquisition {
        let lock = LockId {
            key: Arc::clone(&self.key),
            token: entropy.token,
            attributes: self.attributes.clone(),
        };
        let fence = if self.is_fenced() { seed(entropy.wall) } else { 0 };
        Acquisition { lock, ttl: self.ttl, fence }
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.attributes.as_ref().is_some_and(|attributes| attributes.fence.is_some())
    }

    /// The state after a majority has granted the lock in time.
    pub(super) fn granted(
        &self,
        now: Time,
        held: HeldLock,
        lock: LockId,
        ballot: &Ballot,
    ) -> State {
        if !self.is_fenced() {
            return State::Over(Some(Acquired::Held(held)));
        }
        let Counters { largest, nodes } = ballot.counters;
        if nodes.len() >= quorum(self.rules.nodes) {
            return State::Over(Some(Acquired::Held(HeldLock { fence: Some(largest), ..held })));
        }
        let request = Request::to_all(&self.rules, now, Action::Fence { lock, fence: largest });
        let request = Request { started: held.since, ..request };
        let request = request.ending_by(self.end_of_call(held.since)).ending_by(held.valid_until);
        State::Confirming { held, request, is_sent: false }
    }

    /// Handles the votes of the round that raises the nodes' counters to the token.
    pub(super) fn confirmed(
        &mut self,
        now: Time,
        held: HeldLock,
        request: &Request,
        ballot: &Ballot,
    ) {
        let is_confirmed = ballot.tally.granted_by_majority() == Verdict::Won;
        let in_time = self.is_in_time(now, held.valid_until);
        if is_confirmed && in_time && !ballot.same_server {
            let held = HeldLock { fence: request.fence(), ..held };
            self.state = State::Over(Some(Acquired::Held(held)));
            return;
        }
        // If a majority refused, their keys do not hold our token any more: the keys were removed.
        let nodes = held.nodes.union(ballot.sent);
        self.fail(now, held.since, request, nodes, ballot);
    }
}
