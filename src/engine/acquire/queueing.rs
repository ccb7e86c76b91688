//! Waiting in the nodes' queue: joining it, taking the lock in turn, and leaving.
//!
//! ```text
//!   the try is refused ──▶ Queue ──▶ Await ── a majority reserves the lock ──▶ Turn ──▶ held
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

use super::{Acquire, Acquired, State};
use crate::clock::Time;
use crate::engine::{
    Action, Ballot, Entropy, LockId, NodeSet, QueueEntry, QueueState, Removal, Request, Share,
    Token, Ttl, Verdict, quorum,
};
use std::sync::Arc;
use std::time::Duration;

/// After how many failed turns the next is delayed. A first one may come too early because of nodes
/// that release the lock a little later than others.
const PROMPT_TURNS: u32 = 2;

/// After how many failed turns the nodes are not believed any more when they tell about
/// reservations: a server whose table of remembered keys is full tells it all the time. From then
/// on this caller asks now and then.
const BELIEVED_TURNS: u32 = 4;

/// The place of a caller in the nodes' queue.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) entry: QueueEntry,
    pub(super) state: QueueState,
    /// When the entry is to be renewed.
    pub(super) renew_at: Time,
    /// No turn is taken before this.
    turn_at: Time,
    /// How many turns have failed.
    failed_turns: u32,
    /// How often the entry was renewed at the same place.
    pub(super) renewals: u32,
}

impl Acquire {
    /// How many waiters are before this one, once it has a place in the queue.
    #[must_use]
    pub fn place(&self) -> Option<u64> {
        let place = self.place.as_ref().filter(|place| place.entry.number > 0);
        place.map(|place| place.state.place)
    }

    /// Does a majority of the nodes reserve the lock for this waiter?
    #[must_use]
    pub fn is_called(&self) -> bool {
        let quorum = quorum(self.rules.nodes);
        self.place.as_ref().is_some_and(|place| place.state.reserved.len() >= quorum)
    }

    /// Ends the wait early: what is on the nodes is removed.
    pub fn abandon(&mut self, now: Time) {
        self.give_up_predecessor(now, NodeSet::EMPTY);
        self.give_up(now, Acquired::Contended);
    }

    /// Goes on in the queue after an attempt that failed. Returns whether it does.
    pub(super) fn fail_over_to_queue(
        &mut self,
        now: Time,
        started: Time,
        lock: &LockId,
        (ballot, failure): (&Ballot, &Acquired),
    ) -> bool {
        let round = now.since(started);
        if self.end().since(now) <= round.max(self.rules.retry_base) {
            return false;
        }
        match &mut self.place {
            Some(place) => {
                place.failed_turns += 1;
                // A permit that the nodes told about may have gone to a client with another count.
                let is_shared = lock.share().is_some();
                place.entry.listens = place.failed_turns < BELIEVED_TURNS || is_shared;
                let is_prompt = place.failed_turns <= PROMPT_TURNS && ballot.quarantine.is_zero();
                let delay = match &mut self.backoff {
                    Some(backoff) if !is_prompt => backoff.next_delay(round),
                    _ => Duration::ZERO,
                };
                place.turn_at = now.after(ballot.quarantine.saturating_add(delay));
            }
            None => {
                // Nodes in quarantine grant nothing yet, and it is their queue that keeps the order
                // until they do.
                let is_quarantined =
                    matches!(failure, Acquired::Unanswered) && !ballot.quarantine.is_zero();
                let is_refused = matches!(failure, Acquired::Contended) || is_quarantined;
                let Some(lease) = self.lease_of_waiter(lock).filter(|_| is_refused) else {
                    return false;
                };
                let (waiter, since) = (lock.token, self.wall);
                let (lock, ttl) = (lock.clone(), self.ttl);
                let entry =
                    QueueEntry { lock, ttl, waiter, number: 0, since, lease, listens: true };
                let turn_at = now.after(ballot.quarantine);
                self.place = Some(Place {
                    entry,
                    state: QueueState::default(),
                    renew_at: now,
                    turn_at,
                    failed_turns: 0,
                    renewals: 0,
                });
            }
        }
        self.ask(now);
        true
    }

    /// How long the entry of a waiter in front is kept, if this caller queues.
    fn lease_of_waiter(&self, lock: &LockId) -> Option<Ttl> {
        let may_queue = self.may_queue && !self.is_single() && !lock.has_more_keys();
        self.rules.waiter_lease.filter(|_| may_queue)
    }

    /// Enters the queue, renews the entry, or withdraws a failed turn: one request for all.
    fn ask(&mut self, now: Time) {
        let Some(place) = &self.place else { return };
        let action = Action::Queue(place.entry.clone());
        self.send(now, self.round_end(now), action);
    }

    /// When a round of a waiter ends that begins now.
    fn round_end(&self, now: Time) -> Time {
        self.deadline(now, now).min(self.end())
    }

    /// Begins a round of all nodes that ends at `deadline`.
    pub(super) fn send(&mut self, now: Time, deadline: Time, action: Action) {
        let request = Request { deadline, ..Request::to_all(&self.rules, now, action) };
        self.state = State::Asking { request, is_sent: false };
    }

    /// Handles the answers about the queue.
    pub(super) fn asked(&mut self, now: Time, request: &Request, ballot: &Ballot) {
        let quorum = quorum(self.rules.nodes);
        let is_answered = ballot.tally.granted_by_majority() == Verdict::Won;
        let failure = if ballot.same_server {
            Acquired::SameServer
        } else if is_answered && !ballot.quarantine.is_zero() && !self.is_refused() {
            Acquired::Unanswered // no node grants now: others need not hold the lock
        } else if is_answered || self.is_cut_short(request, ballot) {
            Acquired::Contended
        } else {
            Acquired::Unanswered
        };
        let is_useless = self.is_useless(ballot, &failure);
        self.failure = Some(failure);
        if is_useless || now >= self.end() {
            return self.give_up_after(now);
        }
        let Some(place) = &mut self.place else { return };
        if !is_answered {
            let round = now.since(request.started);
            // Nodes can lose their queue while somebody waits in it, with the rights to it. And if
            // other nodes are down, the nodes without a queue may be needed for a majority.
            let without = ballot.queue.without.len();
            let has_queue = self.rules.nodes - without >= quorum
                && ballot.tally.granted.len() + without < quorum;
            if place.entry.number == 0 || !has_queue {
                self.may_queue = has_queue;
                return self.leave_and_back_off(now, request.started, ballot);
            }
            let delay = self.backoff.as_mut().map_or(round, |backoff| backoff.next_delay(round));
            place.renew_at = now.after(delay);
            self.state = State::Resting(place.renew_at.min(self.end()));
            return;
        }
        if place.entry.number == 0 {
            place.entry.number = ballot.counters.largest;
            if ballot.counters.nodes.len() < quorum {
                place.state = ballot.queue;
                return self.ask(now);
            }
        }
        // What nodes told that have not answered in this round still counts.
        let told = place.state.reserved.without(ballot.tally.voted());
        let place_before = std::mem::replace(&mut place.state, ballot.queue).place;
        place.state.reserved = place.state.reserved.union(told);
        place.renewals = if place_before == ballot.queue.place { place.renewals + 1 } else { 0 };
        self.schedule(now);
        self.renew_after_quarantine(now, ballot.quarantine);
        self.proceed(now);
    }

    /// Takes the lock if it is this waiter's turn, or goes on waiting.
    fn proceed(&mut self, now: Time) {
        let (is_called, end) = (self.is_called(), self.end());
        let Some(place) = &self.place else { return };
        if is_called {
            // The turn needs a new token, which comes with the next attempt.
            self.state = State::Resting(place.turn_at.max(now).min(place.renew_at).min(end));
            return;
        }
        let QueueEntry { lock, waiter, .. } = &place.entry;
        let action = Action::Await { key: Arc::clone(&lock.key), waiter: *waiter };
        self.send(now, place.renew_at.min(end), action);
    }

    /// Handles the end of waiting: the lock is reserved, or it is time to renew the entry.
    pub(super) fn awaited(&mut self, now: Time, ballot: &Ballot) {
        let Some(place) = &mut self.place else { return };
        if place.entry.listens {
            place.state.reserved = place.state.reserved.union(ballot.tally.granted);
        }
        if self.is_called() && !self.asks_before_turn() {
            let Some(place) = &mut self.place else { return };
            if place.failed_turns > PROMPT_TURNS {
                // These hints were false before. Without a pause, false hints would cause turns
                // without end.
                let delay = self.backoff.as_mut().map(|it| it.next_delay(Duration::ZERO));
                place.turn_at = place.turn_at.max(now.after(delay.unwrap_or_default()));
            }
            self.proceed(now);
        } else if now >= self.end() {
            self.give_up_after(now);
        } else {
            self.ask(now);
        }
    }

    /// Begins the turn, renews the entry, or goes on waiting, after a pause.
    pub(super) fn go_on(&mut self, now: Time, entropy: Entropy) {
        let is_called = self.is_called();
        let Some(place) = &mut self.place else { return };
        let is_due = is_called && now >= place.turn_at;
        if !is_due {
            return if now >= place.renew_at { self.ask(now) } else { self.proceed(now) };
        }
        // What the nodes said counts for one turn.
        place.state.reserved = NodeSet::EMPTY;
        let waiter = place.entry.waiter;
        let is_again = place.failed_turns > 0;
        self.attempts += 1;
        let mut new = self.acquisition(entropy);
        if is_again {
            new.lock = looking_elsewhere(new.lock, entropy.seed);
        }
        self.send(now, self.round_end(now), Action::Turn { new, waiter });
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
    fn leave_and_back_off(&mut self, now: Time, started: Time, ballot: &Ballot) {
        self.undo = self.leave(now);
        let failure = self.failure.clone().unwrap_or(Acquired::Unanswered);
        self.state = self.after_failure(now, (started, false), ballot, failure);
    }

    /// The removal of the waiter, if there is one: it may stand in the queue of any node.
    pub(super) fn leave(&mut self, now: Time) -> Option<Request> {
        let QueueEntry { lock, waiter, lease, .. } = self.place.take()?.entry;
        let (ttl, waiter) = (self.ttl.max(lease), Some(waiter));
        let removal = Removal { lock, ttl, linger: None, waiter };
        Some(Request::to_all(&self.rules, now, Action::Undo(removal)))
    }

    /// The waiter of a lock that was just taken.
    pub(super) fn waiter(&self) -> Option<Token> {
        self.place.as_ref().map(|place| place.entry.waiter)
    }
}

/// The same permit, which the nodes look for from a random number on. In a first turn each node
/// gives the permit that it has for the waiter, which is the same on nodes that agree on who holds
/// which. Nodes that do not agree would give the same different permits again and again.
fn looking_elsewhere(lock: LockId, seed: u64) -> LockId {
    let permits = u64::from(lock.share().map_or(0, Share::permits));
    let number = seed.checked_rem(permits).and_then(|number| u32::try_from(number).ok());
    lock.with_permit(number)
}
