//! The attempts of an acquisition: when their rounds end, what a failed one removes, and whether
//! there is another.
//!
//! A round ends after `node_timeout`. In a new client, or after connections were lost, it goes on
//! for up to `connect_timeout`, until a majority of the nodes has answered: a request needs a round
//! trip, and connecting needs two or more before it.

use super::{Acquire, Acquired, State, Wait};
use crate::engine::{Action, Ballot, NodeSet, Removal, Request, Verdict, quorum};
use crate::time::Time;

/// What part of the validity a lock that a majority has granted may wait for the other nodes.
const SPARE: u32 = 8;

impl Acquire {
    /// The end of a round that begins now, in an attempt that began at `started`.
    pub(super) fn deadline(&self, now: Time, started: Time) -> Time {
        now.after(self.rules.node_timeout).min(self.end_of_call(started))
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
    pub(super) fn send(&mut self, now: Time, deadline: Time, action: Action) {
        let request = Request::to_all(&self.rules, now, action);
        let connect_deadline = request.connect_deadline.min(self.latest()).max(deadline);
        let validity = self.rules.drift.validity(self.ttl).saturating_sub(self.min_validity);
        let spare_until = now.after(validity / SPARE);
        let request = Request { deadline, connect_deadline, spare_until, ..request };
        self.state = State::Asking { request, is_sent: false };
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
        ballot: &Ballot,
    ) {
        let failure = if ballot.same_server {
            Acquired::SameServer
        } else if ballot.tally.granted_by_majority() == Verdict::Won {
            Acquired::TooSlow(now.since(started))
        } else if self.is_contended(request, ballot) {
            Acquired::Contended
        } else {
            Acquired::Unanswered
        };
        let is_split = Self::is_split(request, ballot);
        if ballot.was_connecting {
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
        let is_useless = self.is_useless(ballot, &failure);
        let lease = self.lease_of_waiter(&lock, is_split);
        if !is_useless && self.fail_over_to_queue(now, started, &lock, lease, ballot, &failure) {
            return;
        }
        let removal = Removal { lock, ttl: self.ttl, linger: None, waiter: None };
        let undo = Request { action: Action::Undo(removal), nodes, ..request.clone() };
        self.undo = Some(self.leave(now).unwrap_or(undo));
        self.state = self.after_failure(now, started, is_split, ballot, failure);
    }

    /// Prepares the removal of the predecessor, which its holder has given up, from every node that
    /// may still have its key and was not asked for the handoff.
    pub(super) fn give_up_predecessor(&mut self, now: Time, handed_off: NodeSet) {
        let Some(mut held) = self.predecessor.take() else { return };
        held.nodes = held.nodes.without(handed_off);
        let is_anywhere = !held.nodes.is_empty();
        self.undo_before = is_anywhere.then(|| held.undo(now, &self.rules));
    }

    /// Do other clients hold the lock, or wait for it? Where nodes are in quarantine, nobody may: a
    /// refusal there can be due to a reservation that cannot be claimed yet.
    fn is_contended(&self, request: &Request, ballot: &Ballot) -> bool {
        let is_answered = ballot.tally.answered_by_majority() == Verdict::Won;
        is_answered && ballot.quarantine.is_zero() || self.is_cut_short(request, ballot)
    }

    /// Did the caller's deadline cut the round short, while answers could still arrive, and did the
    /// previous round say that other clients hold the lock? Then the round says nothing about the
    /// nodes, and the previous one counts.
    pub(super) fn is_cut_short(&self, request: &Request, ballot: &Ballot) -> bool {
        request.deadline == self.end()
            && ballot.tally.answered_by_majority() == Verdict::Pending
            && self.is_refused()
    }

    /// Did the last round that tells say that other clients hold the lock?
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.failure, Some(Acquired::Contended))
    }

    /// Are too many nodes misconfigured for any attempt?
    pub(super) fn is_useless(&self, ballot: &Ballot, failure: &Acquired) -> bool {
        let usable = self.rules.nodes - ballot.permanent_failures.len();
        usable < quorum(self.rules.nodes) || matches!(failure, Acquired::SameServer)
    }

    /// Pauses before the next attempt, or ends with `failure` if another attempt is useless. The
    /// failed attempt began at `started`.
    pub(super) fn after_failure(
        &mut self,
        now: Time,
        started: Time,
        is_split: bool,
        ballot: &Ballot,
        failure: Acquired,
    ) -> State {
        if self.is_useless(ballot, &failure) {
            return State::Over(Some(failure));
        }
        if is_split && self.is_single() {
            return self.after_split(now, started, failure);
        }
        let round = now.since(started);
        if self.is_single() && self.attempts == 1 && matches!(failure, Acquired::TooSlow(_)) {
            // Connecting has used up the validity, and is over.
            return if ballot.was_connecting {
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
        let delay = ballot.quarantine.saturating_add(backoff.next_delay(round));
        match self.wait {
            Wait::No => State::Over(Some(failure)),
            Wait::Forever => State::Resting(now.after(delay)),
            Wait::Until(time) => {
                // The delay is shortened so that a last attempt fits in before the caller's
                // deadline. If too little time is left for that, attempts would only come faster.
                let left = time.since(now);
                let last = left.saturating_sub(round.max(self.rules.retry_base));
                if last.is_zero() {
                    State::Over(Some(failure))
                } else {
                    State::Resting(now.after(delay.min(last)))
                }
            }
        }
    }
}
