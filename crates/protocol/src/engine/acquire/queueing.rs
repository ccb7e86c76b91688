//! Waiting in the nodes' queue: joining it, taking the lock in turn, and leaving.
//!
//! ```text
//!   the try is refused ──▶ Queue ──▶ wait ── a majority reserves the lock ──▶ Turn ──▶ held
//!                           │ ▲       │                                         │
//!        no majority joined │ └───────┴── time to renew ──────── refused ───────┘
//!                           ▼
//!                 back off, and try again
//! ```
//!
//! Each node gives the waiter a number, one above the last in its queue. The waiter's number is the
//! largest that it was given. If a majority has given this number, it has its place; if not, it
//! tells it to all nodes first. So whoever has joined a majority before another begins is served
//! before it: the two majorities have a node in common.
//!
//! Only the turn is a vote, with a token of its own and counted as any attempt. A reservation may
//! be moved or expire at any time before. A turn that fails is withdrawn, and the waiter stands
//! where it stood.

use super::place::Place;
use super::{Acquire, Acquired, State};
use crate::engine::{
    Before, Command, Entropy, LockId, NodeSet, QueueEntry, QueueWait, Request, Ttl, Verdict, Votes,
    quorum,
};
use crate::time::Time;
use std::time::Duration;

/// After how many failed turns the next is delayed. A first one may come too early because of nodes
/// that release the lock a little later than others.
const PROMPT_TURNS: u32 = 2;

/// After how many misses the waiter gives its place up and joins the queue at its end: turns that
/// took too long, and times that a majority of the nodes took it out of the queue. It is too slow
/// to claim the lock, or has not enough validity left when it has, and must not keep others
/// waiting. A turn that is refused is not a miss: another client has the lock, or nodes disagree
/// for a moment.
const MISSES_MAX: u32 = 4;

/// After how many renewals in a row at the same place earlier misses are forgotten.
const CALM_RENEWALS: u32 = 4;

/// The longest pause between two renewals that too few nodes answer. Each may cost others the time
/// of a reservation.
const UNANSWERED_PAUSE_MAX: Duration = Duration::from_millis(500);

impl Acquire {
    /// Ends the wait early: what is on the nodes is removed.
    pub(super) fn abandon(&mut self, now: Time) {
        self.give_up_predecessor(now, NodeSet::EMPTY);
        self.give_up(now, Acquired::Contended);
    }

    /// Goes on in the queue after an attempt that failed. Returns whether it does.
    pub(super) fn fail_over_to_queue(
        &mut self,
        now: Time,
        started: Time,
        lock: &LockId,
        lease: Option<Ttl>,
        votes: &Votes,
        failure: &Acquired,
    ) -> bool {
        let round = now.since(started);
        if self.end().since(now) <= self.time_for_another(now, round, votes) {
            return false;
        }
        match &mut self.place {
            Some(place) => {
                let is_over = votes.quarantine.is_zero();
                let is_miss = is_over && !matches!(failure, Acquired::Contended);
                place.failed_turns += u32::from(is_over);
                place.misses += u32::from(is_miss);
                place.renewals = 0;
                if place.misses >= MISSES_MAX {
                    return false;
                }
                let is_prompt = place.failed_turns <= PROMPT_TURNS && votes.quarantine.is_zero();
                let delay = match &mut self.backoff {
                    Some(backoff) if !is_prompt => backoff.next_delay(round),
                    _ => Duration::ZERO,
                };
                place.turn_at = now.after(votes.quarantine.saturating_add(delay));
            }
            None => {
                // Nodes in quarantine grant nothing yet, and it is their queue that keeps the order
                // until they do.
                let is_quarantined =
                    matches!(failure, Acquired::Unanswered) && !votes.quarantine.is_zero();
                let is_refused = matches!(failure, Acquired::Contended) || is_quarantined;
                let Some(lease) = lease.filter(|_| is_refused) else {
                    return false;
                };
                let entry = self.entry(lock, lease, votes);
                self.place = Some(Place::new(entry, now, now.after(votes.quarantine)));
            }
        }
        self.ask(now);
        true
    }

    /// Enters the queue, renews the entry, or withdraws a failed turn: one request for all.
    pub(super) fn ask(&mut self, now: Time) {
        let Some(place) = &mut self.place else { return };
        place.asked_at = now;
        let entry = QueueEntry {
            lock: place.awaited(),
            ..place.entry.clone()
        };
        self.send(now, self.round_end(now), Command::Queue(entry));
    }

    /// When a round of a waiter ends that begins now.
    fn round_end(&self, now: Time) -> Time {
        self.deadline(now, now).min(self.end())
    }

    /// Handles the answers about the queue.
    pub(super) fn asked(&mut self, now: Time, request: &Request, votes: &Votes) {
        let quorum = quorum(self.rules.nodes);
        let is_answered = votes.tally.granted_by_majority() == Verdict::Won;
        let failure = if votes.same_server {
            Acquired::SameServer
        } else if is_answered && !votes.quarantine.is_zero() {
            Acquired::Unanswered // no majority grants now: others need not hold the lock
        } else if is_answered || self.is_cut_short(request, votes) {
            Acquired::Contended
        } else {
            Acquired::Unanswered
        };
        let is_useless = self.is_useless(now, votes, &failure);
        self.failure = Some(failure);
        if is_useless || now >= self.end() {
            return self.give_up_after(now);
        }
        let Some(place) = &mut self.place else { return };
        // The quarantine may end before the entry is renewed again.
        place.entry.claim = self.rules.claim_time(votes.quarantine);
        if !is_answered {
            return self.renew_later(now, request.started, votes);
        }
        place.unanswered = 0;
        let is_out = votes.queue.out.len() >= quorum;
        // Taken out, it stays out for the answer that says so, and is put back by the next.
        // A reservation that could not be claimed is not missed.
        let is_miss = is_out && !place.was_missed && votes.quarantine.is_zero();
        place.misses += u32::from(is_miss);
        place.was_missed = is_miss;
        if place.misses >= MISSES_MAX {
            return self.leave_and_back_off(now, request.started, votes);
        }
        if place.entry.number == 0 {
            place.entry.number = votes.counters.largest;
            if votes.counters.nodes.len() < quorum {
                place.state = votes.queue.clone();
                return self.ask(now);
            }
        }
        if self.let_others_pass(now, votes) {
            return;
        }
        if self.is_single() && votes.queue.reserved.len() < quorum {
            return self.give_up_after(now);
        }
        let Some(place) = &mut self.place else { return };
        let place_before = std::mem::replace(&mut place.state, votes.queue.clone()).place;
        let is_calm = place_before == votes.queue.place && !is_out;
        place.renewals = if is_calm { place.renewals + 1 } else { 0 };
        if place.renewals >= CALM_RENEWALS {
            place.misses = 0;
        }
        self.schedule(now);
        self.renew_after_quarantine(now, votes.quarantine, is_out);
        self.wait_in_queue();
    }

    /// Handles answers of too few nodes.
    fn renew_later(&mut self, now: Time, started: Time, votes: &Votes) {
        let round = now.since(started);
        let Some(place) = &mut self.place else { return };
        let has_queue = has_queue(votes, self.rules.nodes);
        if place.entry.number == 0 || !has_queue {
            self.may_queue = has_queue;
            return self.leave_and_back_off(now, started, votes);
        }
        let delay = self
            .backoff
            .as_mut()
            .map_or(round, |backoff| backoff.next_delay(round));
        let longer = delay.saturating_mul(2_u32.saturating_pow(place.unanswered));
        place.unanswered += 1;
        place.renew_at = now.after(longer.min(UNANSWERED_PAUSE_MAX.max(delay)));
        self.state = State::Resting(place.renew_at.min(self.end()));
    }

    /// Waits until a majority of the nodes reserves the lock, which ends the wait at once if it
    /// already does, or until there is something to ask.
    pub(super) fn wait_in_queue(&mut self) {
        let end = self.end();
        let Some(place) = &self.place else { return };
        self.state = State::Waiting(QueueWait {
            key: place.missing(),
            waiter: place.entry.waiter,
            watches: place.state.place == 0,
            until: place.renew_at.min(end),
        });
    }

    /// The wait has ended, and no majority of the nodes reserves the lock.
    pub(super) fn not_called(&mut self, now: Time) {
        if now >= self.end() || self.is_single() {
            return self.give_up_after(now);
        }
        self.ask_again(now);
    }

    /// Asks the nodes, and not without end, whatever they tell.
    fn ask_again(&mut self, now: Time) {
        let Some(place) = &mut self.place else { return };
        let next_ask = place.asked_at.after(self.rules.retry_base);
        if now >= next_ask {
            return self.ask(now);
        }
        place.renew_at = place.renew_at.min(next_ask);
        self.state = State::Resting(next_ask.min(self.end()));
    }

    /// A majority of the nodes reserves the lock: begins the turn, unless it must not begin yet.
    pub(super) fn called(&mut self, now: Time, entropy: Entropy) {
        let end = self.end();
        if now >= end {
            return self.give_up_after(now);
        }
        let Some(place) = &mut self.place else { return };
        if now < place.turn_at {
            if now >= place.renew_at {
                return self.ask_again(now);
            }
            self.state = State::Resting(place.turn_at.min(place.renew_at).min(end));
            return;
        }
        if place.alone.is_some() {
            return self.wait_for_all(now);
        }
        // What the nodes said counts for one turn.
        let free = std::mem::take(&mut place.state.free);
        let waiter = place.entry.waiter;
        let was_split = place.failed_turns > 0 || self.is_single();
        self.attempts += 1;
        let mut claim = self.claim(entropy, Before::Turn(waiter));
        if was_split {
            // In a first turn each node gives the permit that it has for the waiter, which is the
            // same on nodes that agree on who holds which. Others would give different ones again.
            claim.lock = claim.lock.with_permit(free.choose(entropy.seed));
        }
        self.send(now, self.round_end(now), Command::Claim(claim));
    }

    /// Ends the wait with the last failure.
    fn give_up_after(&mut self, now: Time) {
        let failure = self.failure.clone().unwrap_or(Acquired::Contended);
        self.give_up(now, failure);
    }

    /// Ends the wait: leaves the queue, with what the last attempt may have left on the nodes.
    pub(super) fn give_up(&mut self, now: Time, failure: Acquired) {
        self.undo = self.leave(now).or(self.undo.take());
        self.state = State::Over(Some(failure));
    }

    /// Leaves the queue and goes on with random pauses: too few nodes let this waiter in.
    fn leave_and_back_off(&mut self, now: Time, started: Time, votes: &Votes) {
        self.undo = self.leave(now);
        let failure = self.failure.clone().unwrap_or(Acquired::Unanswered);
        self.state = self.after_failure(now, started, false, votes, failure);
    }
}

/// Can a majority of the nodes have a queue for this waiter, as these answers of too few say? Nodes
/// can lose theirs while somebody waits in it, with the rights to it. And if other nodes are down,
/// the nodes without a queue may be needed for a majority.
fn has_queue(votes: &Votes, nodes: usize) -> bool {
    let without = votes.queue.without;
    let tally = &votes.tally;
    let quorum = quorum(nodes);
    let down = tally.failed.without(without);
    let minority = nodes - quorum;
    // The round may have ended before all could answer that have one.
    let is_lost = tally.granted_by_majority() == Verdict::Lost && down.len() <= minority;
    let are_needed = is_lost || tally.granted.union(without).len() >= quorum;
    without.is_empty() || without.len() <= minority && !are_needed
}
