//! The attempts of an acquisition: when their rounds end, what a failed one removes, and whether
//! there is another.
//!
//! A round ends after `node_timeout`. In a new client, or after connections were lost, it goes on
//! for up to `connect_timeout`, until a majority of the nodes has answered: a request needs a round
//! trip, and connecting needs two or more before it.

use super::{Acquire, Acquired, State, Wait};
use crate::engine::{
    Before, Claim, Command, Counters, Entropy, FENCE_SEED_MAX, Fence, HeldLock, LockId, NodeSet,
    Removal, Request, Verdict, Votes, quorum,
};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// What part of the validity a lock that a majority has granted may wait for the other nodes.
const SPARE: u32 = 8;

/// How much earlier a quarantine may end than was reported: servers before Redis 6.2 tell their
/// uptime in whole seconds, and may tell a longer one when they are connected again.
const QUARANTINE_GRAIN: Duration = Duration::from_secs(1);

impl Acquire {
    /// The end of a round that begins now, in an attempt that began at `started`.
    pub(super) fn deadline(&self, now: Time, started: Time) -> Time {
        now.after(self.rules.node_timeout)
            .min(self.end_of_call(started))
    }

    /// The caller's own deadline, which ends the rounds of an attempt that began at `started`. A
    /// deadline that had passed before means one attempt, and that attempt must have time for
    /// replies.
    pub(super) fn end_of_call(&self, started: Time) -> Time {
        match self.wait {
            Wait::Until(time) if time > started => time,
            _ => Time::MAX,
        }
    }

    /// Begins a round of all nodes that ends at `deadline`, or later if they are still connecting.
    pub(super) fn send(&mut self, now: Time, deadline: Time, command: Command) {
        let request = Request::to_all(&self.rules, now, command);
        let connect_deadline = request.connect_deadline.min(self.latest()).max(deadline);
        let validity = self
            .rules
            .drift
            .validity(self.ttl)
            .saturating_sub(self.min_validity);
        let spare_until = now.after(validity / SPARE);
        let request = Request {
            deadline,
            connect_deadline,
            spare_until,
            ..request
        };
        self.state = State::Asking {
            request,
            granted: None,
            is_sent: false,
        };
    }

    /// When the last round ends in any case: a single attempt may have to connect.
    pub(super) fn latest(&self) -> Time {
        match self.began {
            Some(began) if self.is_single() => began.after(self.rules.connect_timeout),
            _ => self.end(),
        }
    }

    /// Ends the attempt that began at `started` as failed. The answers to its last request give the
    /// reason; its keys are removed from `nodes`.
    pub(super) fn fail(
        &mut self,
        now: Time,
        started: Time,
        request: &Request,
        nodes: NodeSet,
        votes: &Votes,
    ) {
        let failure = if votes.same_server {
            Acquired::SameServer
        } else if votes.tally.granted_by_majority() == Verdict::Won {
            Acquired::TooSlow(now.since(started))
        } else if self.is_contended(request, votes) {
            Acquired::Contended
        } else {
            Acquired::Unanswered
        };
        let is_split = Self::is_split(request, votes);
        if votes.was_prolonged {
            // What a single attempt may do on connections that are ready, it may still do.
            self.connected = Some(now);
        }
        self.failure = Some(failure.clone());
        self.give_up_predecessor(now, NodeSet::EMPTY);
        let lock = request.lock().expect("an attempt names a lock").clone();
        if let Some(place) = &mut self.place {
            // The waiter's next request withdraws the attempt.
            place.entry.lock = lock.clone();
        }
        let is_useless = self.is_useless(now, votes, &failure);
        let lease = self.lease_of_waiter(&lock, is_split);
        if !is_useless && self.fail_over_to_queue(now, started, &lock, lease, votes, &failure) {
            return;
        }
        let ttl = self.ttl;
        let keep_for = None;
        let waiter = None;
        let removal = Removal {
            lock,
            ttl,
            keep_for,
            waiter,
            is_awaited: false,
        };
        let undo = Request {
            command: Command::Remove(removal),
            nodes,
            ..request.clone()
        };
        self.undo = Some(self.leave(now).unwrap_or(undo));
        self.state = self.after_failure(now, started, is_split, votes, failure);
    }

    /// Prepares the removal of the predecessor, which its holder has given up, from every node that
    /// may still have its key and was not asked for the handoff.
    pub(super) fn give_up_predecessor(&mut self, now: Time, handed_off: NodeSet) {
        let Some(mut held) = self.predecessor.take() else {
            return;
        };
        held.nodes = held.nodes.without(handed_off);
        let is_anywhere = !held.nodes.is_empty();
        self.undo_before = is_anywhere.then(|| held.undo(now, &self.rules));
    }

    /// Do other clients hold the lock, or wait for it? Where nodes are in quarantine, nobody may: a
    /// refusal there can be due to a reservation that cannot be claimed yet.
    fn is_contended(&self, request: &Request, votes: &Votes) -> bool {
        let is_answered = votes.tally.answered_by_majority() == Verdict::Won;
        is_answered && votes.quarantine.is_zero() || self.is_cut_short(request, votes)
    }

    /// Did the caller's deadline cut the round short, while answers could still arrive, and did the
    /// previous round say that other clients hold the lock? Then the round says nothing about the
    /// nodes, and the previous one counts.
    pub(super) fn is_cut_short(&self, request: &Request, votes: &Votes) -> bool {
        request.deadline == self.end()
            && votes.tally.answered_by_majority() == Verdict::Pending
            && self.is_refused()
    }

    /// When the call's wait ends. See [`Wait::deadline`].
    pub fn deadline_of_call(&self) -> Option<Time> {
        self.wait.deadline()
    }

    /// Did the last round that tells say that other clients hold the lock?
    pub fn is_refused(&self) -> bool {
        matches!(self.failure, Some(Acquired::Contended))
    }

    /// Can no attempt succeed before the wait is over? Too many nodes are misconfigured, or in a
    /// quarantine that outlasts it: `votes` counts nodes that have not answered as if they were in
    /// none.
    pub(super) fn is_useless(&self, now: Time, votes: &Votes, failure: &Acquired) -> bool {
        let usable = self.rules.nodes - votes.permanent_failures.len();
        let soonest = votes.quarantine.saturating_sub(QUARANTINE_GRAIN);
        usable < quorum(self.rules.nodes)
            || matches!(failure, Acquired::SameServer)
            || !soonest.is_zero() && now.after(soonest) >= self.end()
    }

    /// Pauses before the next attempt, or ends with `failure` if another attempt is useless. The
    /// failed attempt began at `started`.
    pub(super) fn after_failure(
        &mut self,
        now: Time,
        started: Time,
        is_split: bool,
        votes: &Votes,
        failure: Acquired,
    ) -> State {
        if self.is_useless(now, votes, &failure) {
            return State::Over(Some(failure));
        }
        if is_split && self.is_single() {
            return self.after_split(now, started, failure);
        }
        let round = now.since(started);
        if self.is_single() && self.attempts == 1 && matches!(failure, Acquired::TooSlow(_)) {
            // Connecting has used up the validity, and is over.
            return if votes.was_prolonged {
                State::Resting(now)
            } else {
                State::Over(Some(failure))
            };
        }
        let Some(backoff) = &mut self.backoff else {
            return State::Over(Some(failure));
        };
        // An attempt before the end of the quarantine cannot succeed. The random part stays,
        // because all waiting clients see the quarantine end at the same moment.
        let delay = votes.quarantine.saturating_add(backoff.next_delay(round));
        match self.wait {
            Wait::No => State::Over(Some(failure)),
            Wait::Forever => State::Resting(now.after(delay)),
            Wait::Until(end) if now >= end => State::Over(Some(failure)),
            Wait::Until(end) => {
                // The delay is shortened so that a last attempt fits in before the caller's
                // deadline. If too little time is left for that, attempts would only come faster:
                // the caller waits for its deadline, at which no attempt begins.
                let last = end
                    .since(now)
                    .saturating_sub(self.time_for_another(now, round, votes));
                let is_in_time = !last.is_zero();
                State::Resting(if is_in_time {
                    now.after(delay.min(last))
                } else {
                    end
                })
            }
        }
    }

    /// How much of the caller's time another attempt needs, after one that took `round` and ended
    /// with these votes.
    ///
    /// If a majority has answered, another one takes as long, without the connecting. If not, this
    /// one says little about how long an answer takes once the nodes are up again: an attempt that
    /// has half of what is left is worth it.
    pub(super) fn time_for_another(&self, now: Time, round: Duration, votes: &Votes) -> Duration {
        let is_answered = votes.tally.answered_by_majority() == Verdict::Won;
        let needed = match is_answered {
            true if votes.was_prolonged => round / TRIPS,
            true => round,
            false => round.min(self.end().since(now) / 2),
        };
        needed.max(self.rules.retry_base)
    }
}

// Split votes: several clients ask for a free lock at once, each gets some nodes, and none enough.
//
// A caller that waits tries again anyway. A caller that makes a single attempt would get
// `Contended`, and so might all of them, although no client holds the lock. So a split attempt is
// undone and repeated after a short random pause: the first client to repeat it finds the nodes
// free.
//
// A refusal looks the same whether another client holds the lock or only asks for it. With an odd
// number of nodes that have all answered, every attempt that fails is refused by a majority. But a
// lock that is held was written to all nodes: no node grants it to another client, except a node
// that was unreachable or has lost the key. So grants beside refusals show a split. Without a
// grant among the answers that decided the attempt, the attempt is not repeated, and a held lock
// is reported without delay. An attempt that was decided before its own grant arrived is not
// repeated either; at least one of the competing attempts sees a grant and is.

/// The most attempts in one split vote. If a node has lost the key of a lock that is held, every
/// attempt looks like a split vote.
pub(super) const SPLIT_ATTEMPTS_MAX: u32 = 4;

/// How many times as long the first round takes at least, in which connections are made: a round
/// trip to connect, and one for the greeting.
const TRIPS: u32 = 3;

impl Acquire {
    /// Does this look like a split vote: some nodes granted the lock, and others refused it?
    pub(super) fn is_split(request: &Request, votes: &Votes) -> bool {
        let tally = &votes.tally;
        request.is_claim()
            && !request.is_turn()
            && request.predecessor().is_none()
            && !votes.same_server
            && tally.granted_by_majority() == Verdict::Lost
            && tally.answered_by_majority() == Verdict::Won
            && !tally.granted.is_empty()
            && !tally.refused.is_empty()
    }

    /// Does the caller want no more than one attempt?
    pub(super) fn is_single(&self) -> bool {
        match self.wait {
            Wait::No => true,
            Wait::Until(time) => self.began.is_some_and(|began| time <= began),
            Wait::Forever => false,
        }
    }

    /// When a single attempt ends, with its repetitions after split votes: one round's time after
    /// it began, or after the round in which it connected.
    pub(super) fn end_of_single(&self) -> Time {
        match self.connected.or(self.began) {
            Some(began) if self.is_single() => began.after(self.rules.node_timeout),
            _ => Time::MAX,
        }
    }

    /// When the caller's wait ends, with or without replies.
    pub(super) fn end(&self) -> Time {
        match self.wait {
            Wait::Until(time) if !self.is_single() => time,
            _ => self.end_of_single(),
        }
    }

    /// Pauses before another attempt, if one fits within the time of the round.
    pub(super) fn after_split(&mut self, now: Time, started: Time, failure: Acquired) -> State {
        let took = now.since(started);
        let round = if self.connected == Some(now) {
            took / TRIPS
        } else {
            took
        };
        // The time left after another round as long as this one.
        let left = self.end_of_single().since(now).saturating_sub(round);
        match &mut self.backoff {
            Some(backoff) if self.attempts < SPLIT_ATTEMPTS_MAX && !left.is_zero() => {
                State::Resting(now.after(backoff.next_delay_within(round, left)))
            }
            _ => State::Over(Some(failure)),
        }
    }
}

// Fencing tokens: numbers that grow with every grant of a lock.
//
// Each node has a counter for the lock. A grant raises it by one, or to the requesting client's
// wall clock in microseconds if that is larger, and answers with the new value. The largest answer
// is the fencing token. A majority must know it before the lock is held: the next grant needs a
// majority too, so it sees this counter on at least one node and gets a larger token. If a
// majority has answered with the largest counter, a majority knows it already. If not, a second
// round writes it to all nodes: each node takes it only if the lock's key still holds our token
// and the node's counter is not above it.
//
// A permit is counted like a lock: the numbers of all permits of a resource grow, so those of each
// do. Two permits that are granted at the same time may have the same number. A reader raises no
// counter by one, but to its wall clock, and gets the largest number that a majority knows, by the
// same two rounds: at least the last writer's, and less than the next writer's, because a majority
// knows it. While a lock is shared, a counter above a token is not a refusal: it is raised by
// others that hold shares too, and the next holder of this one gets a larger number anyway.
//
// The wall clock makes tokens grow when nodes have lost their data, as long as there are fewer
// grants than microseconds; the counters make them grow when clients' wall clocks disagree.
// `tests/searches/fencing.rs` checks all histories of a certain size for both. Using the clock
// only where there is no counter is not enough: a claim that was under way while a node lost its
// data would start a counter below tokens that were granted meanwhile.

/// The least value of a counter, by this wall clock.
pub(super) fn seed(wall: u64) -> u64 {
    wall.clamp(1, FENCE_SEED_MAX)
}

impl Acquire {
    /// What an attempt with these random numbers takes.
    pub(super) fn claim(&self, entropy: Entropy, before: Before) -> Claim {
        let lock = LockId {
            key: Arc::clone(&self.key),
            token: entropy.token,
            attributes: self.attributes.clone(),
        };
        let fence = if self.is_fenced() {
            seed(entropy.wall)
        } else {
            0
        };
        Claim {
            lock,
            ttl: self.ttl,
            fence,
            before,
        }
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.attributes
            .as_ref()
            .is_some_and(|attributes| attributes.fence.is_some())
    }

    /// The state after a majority has granted the lock in time.
    pub(super) fn granted(&self, now: Time, held: HeldLock, lock: LockId, votes: &Votes) -> State {
        if !self.is_fenced() {
            return State::Over(Some(Acquired::Held(held)));
        }
        let Counters { largest, nodes } = votes.counters;
        if nodes.len() >= quorum(self.rules.nodes) {
            return State::Over(Some(Acquired::Held(HeldLock {
                fence: Some(largest),
                ..held
            })));
        }
        let request = Request::to_all(
            &self.rules,
            now,
            Command::Fence(Fence {
                lock,
                fence: largest,
            }),
        );
        let request = Request {
            started: held.since,
            ..request
        };
        let request = request
            .ending_by(self.end_of_call(held.since))
            .ending_by(held.valid_until);
        State::Asking {
            request,
            granted: Some(held),
            is_sent: false,
        }
    }

    /// Handles the votes of the round that raises the nodes' counters to the token.
    pub(super) fn confirmed(
        &mut self,
        now: Time,
        held: HeldLock,
        request: &Request,
        votes: &Votes,
    ) {
        let is_confirmed = votes.tally.granted_by_majority() == Verdict::Won;
        let in_time = self.is_in_time(now, held.valid_until);
        if is_confirmed && in_time && !votes.same_server {
            let held = HeldLock {
                fence: request.fence(),
                ..held
            };
            self.state = State::Over(Some(Acquired::Held(held)));
            return;
        }
        // If a majority refused, their keys do not hold our token any more: the keys were removed.
        let nodes = held.nodes.union(votes.sent);
        self.fail(now, held.since, request, nodes, votes);
    }
}
