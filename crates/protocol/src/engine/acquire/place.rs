//! The place of a caller in the nodes' queue, and when its entry there is renewed.
//!
//! A waiter in front renews its entry after two thirds of its lease, and once a second at least.
//! The further back it stands, the longer its lease is, and the less often it is renewed. So is
//! that of a first waiter whose client has very many waiters. Waiters also ask when the key that
//! they wait for expires, because no release follows then: those in front at once, and each behind
//! them a little later than the one before it, which may have died too. If the nodes do not tell
//! about reservations, they ask soon, and less and less often.

use super::Acquire;
use crate::engine::{Command, LockId, QueueEntry, QueueState, Request, Token, Ttl, Votes, quorum};
use crate::time::Time;
use std::time::Duration;

/// Waiters up to this place ask as soon as the key that they wait for expires: the first waiter,
/// and those that follow if it has died.
const PLACES_IN_FRONT: u64 = 2;

/// How much later than the one before it each waiter behind them asks.
const ONE_AFTER_ANOTHER: Duration = Duration::from_millis(10);

/// How many places share one length of interval between renewals, and how often it grows.
const PLACES_PER_STEP: u64 = 8;
const STEPS_MAX: u64 = 8;

/// The same for the first waiter of a queue, by how many waiters its client has or may have soon:
/// the renewals of thousands would take much of a node, and come too late on a busy machine. This
/// one is told when its turn comes, and asks when the key expires. If it dies, the others wait for
/// its reservation, and not for its lease: the second is told when to ask.
const WAITERS_PER_STEP: u64 = 500;

/// By what part of that interval those of different waiters differ, and at which times some renew
/// together. Thousands at once would keep requests of their client waiting, and of ten thousand one
/// after another, each costs the nodes and the client up to twice as much.
const SPREAD: u32 = 8;
const TOGETHER: Duration = Duration::from_millis(500);

/// The longest interval of a waiter in front, whatever its lease: a holder that has died after it
/// took the lock from the queue is noticed with a renewal.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// How much longer than its ttl a key may exist: one millisecond of granularity.
const EXPIRY: Duration = Duration::from_millis(1);

/// The pause of the first waiter before it asks, in multiples of `retry_base`, if no node tells it
/// about reservations.
const POLL: u32 = 10;

/// The place of a caller in the nodes' queue.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) entry: QueueEntry,
    pub(super) state: QueueState,
    /// When the entry is to be renewed.
    pub(super) renew_at: Time,
    /// No turn is taken before this.
    pub(super) turn_at: Time,
    /// How many turns have failed.
    pub(super) failed_turns: u32,
    /// How often it was its turn and it did not take the lock in time: see `MISSES_MAX`.
    pub(super) misses: u32,
    /// Did the last renewal find that a majority of the nodes has just taken the waiter out?
    pub(super) was_missed: bool,
    /// How many renewals in a row were answered by too few nodes.
    pub(super) unanswered: u32,
    /// When the nodes were last asked.
    pub(super) asked_at: Time,
    /// How often the entry was renewed at the same place.
    pub(super) renewals: u32,
    /// Until when nodes may reserve a part of a set of resources for it while it waits for the
    /// rest.
    pub(super) keeps_part_until: Time,
    /// The key of a set that it waits for alone, if it does, counted from 0.
    pub(super) alone: Option<usize>,
    /// The key that it waited for alone last.
    pub(super) alone_last: Option<usize>,
}

impl Place {
    /// For a waiter that is about to join, and takes no turn before `turn_at`.
    pub(super) fn new(entry: QueueEntry, now: Time, turn_at: Time) -> Self {
        Self {
            keeps_part_until: now.after(entry.ttl.as_duration()),
            alone: None,
            alone_last: None,
            entry,
            state: QueueState::default(),
            renew_at: now,
            turn_at,
            failed_turns: 0,
            misses: 0,
            was_missed: false,
            unanswered: 0,
            asked_at: now,
            renewals: 0,
        }
    }
}

impl Acquire {
    /// How many waiters are before this one, once it has a place in the queue.
    pub fn place(&self) -> Option<u64> {
        let place = self.place.as_ref().filter(|place| place.entry.number > 0);
        place.map(|place| place.state.place)
    }

    /// How long the entry of a waiter in front is kept, if this caller queues. One that makes a
    /// single attempt does if nodes gave it different permits: there they say which are free.
    pub(super) fn lease_of_waiter(&self, lock: &LockId, is_split: bool) -> Option<Ttl> {
        let splits_permits = is_split && lock.share().is_some_and(|share| share.permits() > 0);
        let may_queue = self.may_queue && (!self.is_single() || splits_permits);
        self.rules.waiter_lease.filter(|_| may_queue)
    }

    /// The entry of this caller, named after its first attempt, before it has a number. Its first
    /// lease is that of a first waiter, whose place it may get.
    pub(super) fn entry(&self, lock: &LockId, front: Ttl, votes: &Votes) -> QueueEntry {
        let step = step_of(votes.queue.waiters as u64, WAITERS_PER_STEP);
        QueueEntry {
            lock: lock.clone(),
            ttl: self.ttl,
            waiter: lock.token,
            number: 0,
            since: self.wall,
            lease: multiple(front, step),
            lease_in_front: front,
            claim: self.rules.claim_time(votes.quarantine),
            channel: None,
        }
    }

    /// The removal of the waiter, if there is one: it may stand in the queue of any node.
    pub(super) fn leave(&mut self, now: Time) -> Option<Request> {
        let removal = self.place.take()?.entry.leave();
        Some(Request::to_all(&self.rules, now, Command::Remove(removal)))
    }

    /// Sets when the entry is renewed next, and for how long it is kept then.
    pub(super) fn schedule(&mut self, now: Time) {
        let (Some(front), quorum) = (self.rules.waiter_lease, quorum(self.rules.nodes)) else {
            return;
        };
        let base = self.rules.retry_base;
        let cap = self.rules.retry_cap;
        let Some(place) = &mut self.place else { return };
        let part_lasts = place.part_lasts(now);
        let QueueState {
            place: before,
            waiters,
            left,
            listening,
            part,
            ..
        } = place.state;
        let entry = &mut place.entry;
        // The entry is kept for as long as the request said.
        let kept = interval(entry.lease.as_duration());
        let step = match before {
            0 if listening.len() >= quorum => step_of(waiters as u64, WAITERS_PER_STEP),
            _ => step_of(before, PLACES_PER_STEP),
        };
        entry.lease = multiple(front, step);
        let mut pause = kept
            .min(interval(entry.lease.as_duration()))
            .min(INTERVAL_MAX * step);
        if before == 0 && pause > INTERVAL_MAX {
            pause = pause_in_crowd(now, pause, entry.waiter);
        }
        if let Some(left) = left {
            let behind = before.saturating_sub(PLACES_IN_FRONT);
            let later = ONE_AFTER_ANOTHER.saturating_mul(behind.try_into().unwrap_or(u32::MAX));
            pause = pause.min(left.saturating_add(EXPIRY).saturating_add(later));
        }
        if !part.is_empty() {
            let renewal = interval(front.as_duration());
            pause = pause.min(part_lasts.map_or(renewal, |left| left.min(renewal)));
        }
        if listening.len() < quorum {
            let doubled = 2_u32.saturating_pow(place.renewals);
            let first = base.saturating_mul(POLL).saturating_mul(doubled).min(cap);
            // All waiters for shares before it may be served together with it, and a set may be the
            // first for one of its resources wherever it stands for another.
            let ahead = match entry.lock.share() {
                Some(_) => before.min(PLACES_IN_FRONT),
                None if entry.lock.has_more_keys() => 0,
                None => before,
            };
            let places = u32::try_from(ahead + 1).unwrap_or(u32::MAX);
            pause = pause.min(first.saturating_mul(places));
        }
        place.renew_at = now.after(pause);
    }

    /// Nodes in quarantine tell nothing about reservations, and nothing when it ends. Who was taken
    /// out for one that began before it is put back at once: later, the others would be first.
    pub(super) fn renew_after_quarantine(&mut self, now: Time, quarantine: Duration, is_out: bool) {
        if let Some(place) = self.place.as_mut().filter(|_| !quarantine.is_zero()) {
            let delay = self
                .backoff
                .as_mut()
                .map(|it| it.next_delay(Duration::ZERO));
            let end = quarantine.saturating_add(delay.unwrap_or_default());
            let pause = if is_out {
                end.min(self.rules.retry_base)
            } else {
                end
            };
            place.renew_at = place.renew_at.min(now.after(pause));
        }
    }
}

/// How many times as long as in front a lease is, with so many places or waiters of which each
/// `per_step` make it longer.
fn step_of(count: u64, per_step: u64) -> u32 {
    (count / per_step + 1).min(STEPS_MAX) as u32
}

/// How long a first waiter pauses whose client has very many.
fn pause_in_crowd(now: Time, longest: Duration, waiter: Token) -> Duration {
    let part = u32::from(waiter.as_bytes()[0]);
    let pause = longest - longest * part / (256 * SPREAD);
    let after_others = now.after(pause).since(Time::ZERO).as_nanos() % TOGETHER.as_nanos();
    pause - Duration::from_nanos(after_others as u64)
}

fn multiple(lease: Ttl, step: u32) -> Ttl {
    Ttl::from_duration(lease.as_duration() * step).unwrap_or(lease)
}

/// How long after an entry was renewed it is renewed again.
fn interval(lease: Duration) -> Duration {
    lease * 2 / 3
}
