//! The order of waiters, and how soon the next one has a lock that was released.
//!
//! Both hold only in histories without faults: a waiter whose entry a majority of the nodes has
//! numbered is served before any call that began later, and when a lock is released for which
//! somebody waits, the next holder has it after a few rounds. Of shares, only those come in order
//! that exclude each other: a waiter for one of some permits is not passed by one for as many, if
//! that one takes a permit that was its own. The order of readers among each other, and of waiters
//! for different numbers of permits, is not checked.

use super::{Checker, Invariant, Name};
use redlatch_protocol::engine::Share;
use std::collections::{BTreeMap, BTreeSet};

/// A waiter with a place in the nodes' queue, or in that of each resource of a set.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) resources: Vec<u64>,
    /// The share that it wants, if not all of the lock.
    pub(crate) share: Option<Share>,
    /// When its call began.
    pub(crate) called_at: u64,
    /// When a majority had numbered it.
    pub(crate) since: u64,
}

/// A lock or a share that has been granted and is not released yet.
#[derive(Clone, Copy, Debug)]
struct Taken {
    resource: u64,
    token: Name,
    share: Option<Share>,
}

/// A call that gets a lock of this resource, and perhaps of others with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking {
    pub(crate) resource: u64,
    pub(crate) token: Name,
    pub(crate) share: Option<Share>,
    pub(crate) waiter: Option<Name>,
    /// When it began, unless it was called with the lock of another thread of its client.
    pub(crate) called_at: Option<u64>,
}

/// The waiters, and the locks that lie free although somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// How soon a released lock must have its next holder, in a history without faults.
    pub(crate) soon: Option<u64>,
    /// Do nodes see releases and turns in different orders, so that turns for permits split?
    pub(crate) are_turns_split: bool,
    places: BTreeMap<Name, Place>,
    taken: Vec<Taken>,
    /// Resources, and since when they lie free for those who are first in the queue.
    free: Vec<(u64, u64)>,
    late: Vec<String>,
    /// How many grants were checked against waiters, and how many of them of shares.
    pub(crate) checked: u64,
    pub(crate) checked_shares: u64,
    pub(crate) awaited_releases: u64,
}

/// How much longer a permit may lie free, in nanoseconds: a turn may split. Over links that differ,
/// a waiter may be told too early or by too few nodes, and asks once a second.
const SPLIT_MAX: u64 = 50_000_000;
const SPLITS_MAX: u64 = 1_100_000_000;

impl Order {
    /// A majority of the nodes has given a waiter its number.
    pub(crate) fn joined(&mut self, waiter: Name, place: Place) {
        if self.soon.is_some() {
            let since = place.since;
            let resources = place.resources.clone();
            // A set may have waited for one of its resources alone.
            let known = self
                .places
                .get(&waiter)
                .filter(|known| known.resources == resources);
            if known.is_none() {
                self.places.insert(waiter, place);
            }
            resources
                .into_iter()
                .for_each(|resource| self.look(resource, since));
        }
    }

    /// A holder has begun to release a lock.
    pub(crate) fn released(&mut self, resources: &[u64], token: Name, now: u64) {
        self.taken.retain(|taken| taken.token != token);
        for resource in resources.iter().copied() {
            self.awaited_releases += u64::from(self.is_awaited(resource));
            self.look(resource, now);
        }
    }

    /// A waiter has given up. The lock may have been reserved for it.
    pub(crate) fn left(&mut self, waiter: Name, now: u64) {
        let Some(Place { resources, .. }) = self.places.remove(&waiter) else {
            return;
        };
        self.free.retain(|(other, _)| !resources.contains(other));
        resources
            .into_iter()
            .for_each(|resource| self.look(resource, now));
    }

    fn waiting(&self, resource: u64) -> impl Iterator<Item = &Place> {
        self.places
            .values()
            .filter(move |place| place.resources.contains(&resource))
    }

    fn is_awaited(&self, resource: u64) -> bool {
        self.waiting(resource).next().is_some()
    }

    /// Notes since when a resource has been free for whichever waiter is first, and the others of
    /// sets that wait for it.
    fn look(&mut self, resource: u64, now: u64) {
        let others = self.waiting(resource).flat_map(|place| &place.resources);
        let resources: BTreeSet<u64> = others.copied().chain([resource]).collect();
        resources
            .into_iter()
            .for_each(|resource| self.look_at(resource, now));
    }

    fn look_at(&mut self, resource: u64, now: u64) {
        let is_free = self.is_free_for_first(resource);
        let index = self.free.iter().position(|(other, _)| *other == resource);
        match index {
            None if is_free => self.free.push((resource, now)),
            Some(index) if !is_free => drop(self.free.swap_remove(index)),
            _ => {}
        }
    }

    /// Can all waiters be served that may be the first of the queue? If one had its place before
    /// another began, the other is not the first.
    fn is_free_for_first(&self, resource: u64) -> bool {
        let earliest = self.waiting(resource).map(|other| other.since).min();
        let is_first = |it: &&Place| earliest.is_some_and(|earliest| it.called_at <= earliest);
        let mut first = self.waiting(resource).filter(is_first).peekable();
        first.peek().is_some() && first.all(|it| self.can_be_served(it))
    }

    /// Is all that it wants free, and is a set the first everywhere?
    fn can_be_served(&self, place: &Place) -> bool {
        let is_set = place.resources.len() > 1;
        let is_after = |other: &Place| other.called_at > place.since;
        place.resources.iter().all(|resource| {
            let mut others = self
                .waiting(*resource)
                .filter(|other| !std::ptr::eq(*other, place));
            self.free_for(*resource, place.share) > 0 && (!is_set || others.all(is_after))
        })
    }

    /// How many more locks of this kind could be held now.
    fn free_for(&self, resource: u64, share: Option<Share>) -> usize {
        let taken = || self.taken.iter().filter(|taken| taken.resource == resource);
        match share {
            None => usize::from(taken().next().is_none()),
            Some(Share::Reader) if taken().all(|taken| taken.share == Some(Share::Reader)) => {
                usize::MAX
            }
            Some(Share::Permit { of, .. }) if taken().all(|taken| has_permit(taken.share)) => {
                let permits = taken().filter_map(|taken| taken.share?.permit());
                of as usize
                    - permits
                        .filter(|permit| *permit < of)
                        .count()
                        .min(of as usize)
            }
            Some(_) => 0,
        }
    }

    /// The lock is held again, or the history is over.
    fn end_wait(&mut self, resource: u64, now: u64) {
        let Some(index) = self.free.iter().position(|(other, _)| *other == resource) else {
            return;
        };
        let (_, since) = self.free.swap_remove(index);
        // A node that refused a holder, and gave its number to another client, does not tell the
        // next waiter when that holder gives the permit back: one history in 80 000 needs 41 ms
        // where 30 would be soon. The limit is far below the time after which a waiter that was not
        // told asks by itself: lost wake-ups are still seen.
        let is_permit = self.waiting(resource).any(|place| has_permit(place.share));
        let splits = if self.are_turns_split {
            SPLITS_MAX
        } else {
            SPLIT_MAX
        };
        let split = if is_permit { splits } else { 0 };
        if self.soon.is_some_and(|soon| now - since > soon + split) {
            let waiting = self.places.len();
            self.late.push(format!(
                "{resource} lay free from {since} to {now} for {waiting}"
            ));
        }
    }

    /// Someone who waited before this call began, and is now passed by it.
    fn passed_by(&self, taking: &Taking) -> Option<&Place> {
        let Taking {
            resource,
            share,
            called_at,
            ..
        } = *taking;
        let before = || {
            let is_before = move |place: &&Place| called_at.is_some_and(|at| place.since < at);
            self.waiting(resource).filter(is_before)
        };
        let Some(share) = share else {
            return before().next();
        };
        // Those who want the same can be served together if there is enough of it. The order of
        // those who want different numbers of permits is not checked.
        let is_same = |place: &&Place| place.share.map(Share::permits) == Some(share.permits());
        let are_permits = |place: &&Place| has_permit(place.share) && share.permits() > 0;
        let is_enough = self.free_for(resource, Some(share)) >= before().filter(is_same).count();
        // A turn that splits lets others pass.
        let is_enough = is_enough || self.are_turns_split;
        let is_passed = |place: &&Place| match is_same(place) {
            true => !is_enough,
            false => !are_permits(place),
        };
        before().find(is_passed)
    }
}

fn has_permit(share: Option<Share>) -> bool {
    share.is_some_and(|share| share.permits() > 0)
}

impl Checker {
    /// A call got a lock of a resource.
    pub(crate) fn granted_in_order(&mut self, taking: &Taking, now: u64) {
        let Taking {
            resource,
            token,
            share,
            waiter,
            ..
        } = *taking;
        if self.order.soon.is_none() {
            return;
        }
        self.order.end_wait(resource, now);
        waiter.and_then(|waiter| self.order.places.remove(&waiter));
        // A lock that was handed off is not released before.
        let is_other = |taken: &Taken| taken.resource != resource || taken.share.is_some();
        self.order
            .taken
            .retain(|taken| share.is_some() || is_other(taken));
        self.order.taken.push(Taken {
            resource,
            token,
            share,
        });
        let is_awaited = self.order.is_awaited(resource);
        self.order.checked += u64::from(is_awaited);
        self.order.checked_shares += u64::from(is_awaited && share.is_some());
        if let Some(passed) = self.order.passed_by(taking) {
            let text = format!("{taking:?} has passed {passed:?}");
            self.report_violation(Invariant::Order, text);
        }
        self.order.look(resource, now);
    }

    /// Reports the locks that lay free for too long, until now.
    pub(super) fn expect_prompt_grants(&mut self, now: u64) {
        let free: Vec<u64> = self
            .order
            .free
            .iter()
            .map(|(resource, _)| *resource)
            .collect();
        free.into_iter()
            .for_each(|resource| self.order.end_wait(resource, now));
        for text in std::mem::take(&mut self.order.late) {
            self.report_violation(Invariant::WakeUp, text);
        }
    }
}
