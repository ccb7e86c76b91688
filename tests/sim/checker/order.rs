//! The order of waiters, and how soon the next one has a lock that was released.
//!
//! Both hold only in histories without faults: a waiter whose entry a majority of the nodes has
//! numbered is served before any call that began later, and when a lock is released for which
//! somebody waits, the next holder has it after a few rounds.

use super::{Checker, Invariant, Name};
use std::collections::BTreeMap;

/// A waiter with a place in the nodes' queue.
#[derive(Clone, Copy, Debug)]
struct Place {
    resource: u64,
    /// When a majority had numbered it.
    since: u64,
}

/// The waiters, and the locks that lie free although somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// How soon a released lock must have its next holder, in a history without faults.
    pub(crate) soon: Option<u64>,
    places: BTreeMap<Name, Place>,
    /// Resources, and since when they lie free.
    free: Vec<(u64, u64)>,
    late: Vec<String>,
    /// How many grants were checked against waiters.
    pub(crate) checked: u64,
    pub(crate) awaited_releases: u64,
}

impl Order {
    /// A majority of the nodes has given a waiter its number.
    pub(crate) fn joined(&mut self, resource: u64, waiter: Name, now: u64) {
        self.places.entry(waiter).or_insert(Place { resource, since: now });
    }

    /// A holder has begun to release a lock.
    pub(crate) fn released(&mut self, resource: u64, now: u64) {
        self.free.retain(|(other, _)| *other != resource);
        if self.is_awaited(resource) {
            self.free.push((resource, now));
            self.awaited_releases += 1;
        }
    }

    /// A waiter has given up. The lock may have been reserved for it.
    pub(crate) fn left(&mut self, waiter: Name, now: u64) {
        let Some(Place { resource, .. }) = self.places.remove(&waiter) else { return };
        let was_free = self.free.iter().any(|(other, _)| *other == resource);
        self.free.retain(|(other, _)| *other != resource);
        if was_free && self.is_awaited(resource) {
            self.free.push((resource, now));
        }
    }

    fn is_awaited(&self, resource: u64) -> bool {
        self.places.values().any(|place| place.resource == resource)
    }

    /// The lock is held again, or the history is over.
    fn taken(&mut self, resource: u64, now: u64) {
        let Some(index) = self.free.iter().position(|(other, _)| *other == resource) else {
            return;
        };
        let (_, since) = self.free.swap_remove(index);
        if self.soon.is_some_and(|soon| now - since > soon) {
            let waiting = self.places.len();
            self.late.push(format!("{resource} lay free from {since} to {now} for {waiting}"));
        }
    }
}

impl Checker {
    /// A call got a lock of one resource. `called_at` is when it began, unless it was called with
    /// the lock of another thread of its client.
    pub(crate) fn granted_in_order(
        &mut self,
        resource: u64,
        waiter: Option<Name>,
        called_at: Option<u64>,
        now: u64,
    ) {
        self.order.taken(resource, now);
        waiter.and_then(|waiter| self.order.places.remove(&waiter));
        if self.order.soon.is_none() {
            return;
        }
        self.order.checked += u64::from(self.order.is_awaited(resource));
        let passed = self.order.places.iter().find(|(_, place)| {
            place.resource == resource && called_at.is_some_and(|called| place.since < called)
        });
        if let Some(passed) = passed {
            let text = format!("{waiter:?}, called at {called_at:?}, has passed {passed:?}");
            self.report_violation(Invariant::Order, text);
        }
    }

    /// Reports the locks that lay free for too long, until now.
    pub(super) fn expect_prompt_grants(&mut self, now: u64) {
        let free: Vec<u64> = self.order.free.iter().map(|(resource, _)| *resource).collect();
        free.into_iter().for_each(|resource| self.order.taken(resource, now));
        for text in std::mem::take(&mut self.order.late) {
            self.report_violation(Invariant::WakeUp, text);
        }
    }
}
