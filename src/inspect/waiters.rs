//! The waiters in the nodes' queue for a lock, in one order from the lists of all nodes.

use super::{Label, Name};
use crate::clock::{WallTime, wall_time};
use crate::engine::{Token, quorum};
use redlatch_protocol::inspect::{KeySnapshot, LISTED_MAX, WaiterSnapshot};
use std::collections::{BTreeMap, BTreeSet};

/// A call that waits for a lock in the nodes' queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedWaiter {
    pub(crate) owner: Option<Label>,
    pub(crate) is_for_share: bool,
    /// When it began to wait, by the wall clock of its own machine; on ZooKeeper, by that of the
    /// leader.
    pub since: WallTime,
    /// On how many of the nodes that answered it has a place. It has its place in the order once
    /// these are a majority of all nodes; with fewer it is just arriving, or has gone without
    /// reaching them all. 1 on ZooKeeper.
    pub nodes: usize,
}

impl QueuedWaiter {
    /// The [label](crate::LockRequest::owner) of its request, if it has one.
    #[must_use]
    pub fn owner(&self) -> Option<Name<'_>> {
        self.owner.as_ref().map(Label::name)
    }

    /// Does it wait for a share, as a [reader](crate::LockRequest::shared) or for a
    /// [permit](crate::LockRequest::one_of), and not for the exclusive lock? Waiters for shares
    /// that stand next to each other may be served together.
    ///
    /// `false` on ZooKeeper, where a waiter's znode does not say what it waits for.
    #[must_use]
    pub fn is_for_share(&self) -> bool {
        self.is_for_share
    }

    fn new(waiter: &WaiterSnapshot, nodes: usize) -> Self {
        let owner = &waiter.owner;
        Self {
            owner: (!owner.is_empty()).then(|| Label(owner.clone())),
            is_for_share: waiter.permits.is_some(),
            since: wall_time(waiter.since),
            nodes,
        }
    }
}

/// The waiters of all nodes: those that a majority has, in their order, and then the others.
pub(super) fn waiters_of(snapshots: &[Option<KeySnapshot>]) -> Vec<QueuedWaiter> {
    let lists: Vec<&[WaiterSnapshot]> = snapshots
        .iter()
        .flatten()
        .map(|snapshot| &*snapshot.waiters)
        .collect();
    let mut found: BTreeMap<Token, QueuedWaiter> = BTreeMap::new();
    for list in &lists {
        let names: BTreeMap<Token, &WaiterSnapshot> =
            list.iter().map(|waiter| (waiter.name, waiter)).collect();
        for (name, waiter) in names {
            found
                .entry(name)
                .or_insert_with(|| QueuedWaiter::new(waiter, 0))
                .nodes += 1;
        }
    }
    let has_majority = |name: &Token| found[name].nodes >= quorum(snapshots.len());
    let mut order = merged(&lists, has_majority);
    order.extend(merged(&lists, |name| !has_majority(name)));
    order
        .into_iter()
        .filter_map(|name| found.remove(&name))
        .collect()
}

/// How many waiters a node has, if not all of them are in its list.
pub(super) fn count_waiters(snapshots: &[Option<KeySnapshot>]) -> usize {
    let counts = snapshots
        .iter()
        .flatten()
        .map(|snapshot| snapshot.waiter_count);
    counts
        .filter(|count| *count > LISTED_MAX)
        .max()
        .unwrap_or(0)
}

/// Merges lists of waiters into one order. The next one is always the waiter that is the first of
/// the most lists. The nodes order waiters by the same numbers, and of those that each have a
/// majority of the nodes, the one with the lowest number is the first of a majority of the lists:
/// so these keep the order of their numbers, whichever nodes lack some of them.
fn merged(lists: &[&[WaiterSnapshot]], is_wanted: impl Fn(&Token) -> bool) -> Vec<Token> {
    let mut lists: Vec<Vec<Token>> = lists
        .iter()
        .map(|list| {
            let names = list.iter().rev().map(|waiter| waiter.name);
            // The first one is at the end, to be popped.
            names.filter(&is_wanted).collect()
        })
        .collect();
    let mut order = Vec::new();
    let mut taken = BTreeSet::new();
    loop {
        let mut firsts: BTreeMap<Token, usize> = BTreeMap::new();
        for list in &mut lists {
            while list.last().is_some_and(|name| taken.contains(name)) {
                list.pop();
            }
            if let Some(name) = list.last() {
                *firsts.entry(*name).or_default() += 1;
            }
        }
        // Of several, the one with the lower name, as on the nodes.
        let next = firsts
            .iter()
            .max_by_key(|(name, lists)| (**lists, std::cmp::Reverse(**name)));
        let Some((next, _)) = next else { return order };
        taken.insert(*next);
        order.push(*next);
    }
}
