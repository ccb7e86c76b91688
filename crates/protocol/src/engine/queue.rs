//! The queue for a lock that the nodes keep: a waiter's entry, and what the nodes answer about it.
//!
//! A client that waits for a lock enters its waiter into a queue on every node. Each node reserves
//! a lock that is free for the first waiter in its queue and tells that waiter's client. A
//! reservation is not a vote and gives nobody the lock: it only says that it is time to ask.

use super::{LockId, Node, NodeSet, PermitSet, Removal, Token, Ttl, quorum, until_quorum};
use crate::time::Time;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

/// How long the entry of a waiter in front is kept by default. It renews its entry after two thirds
/// of that time, so once a second. Dead waiters of whose death a node does not hear delay the
/// others for at most this time, however many they are.
pub const WAITER_LEASE: Duration = Duration::from_millis(1_500);

/// The longest time for which a node reserves a lock for a waiter.
pub const CLAIM_TIME_MAX: Duration = Duration::from_secs(60);

/// The largest number of a waiter. No queue gets there by counting: a node that answers with a
/// larger one is not believed.
pub const WAITER_NUMBER_MAX: u64 = 1 << 52;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// The last failed attempt. Its token is withdrawn where it was granted.
    pub lock: LockId,
    /// How long the key of that attempt may exist.
    pub ttl: Ttl,
    /// The name of the waiter: the token of its first attempt.
    pub waiter: Token,
    /// Its number: the lowest in the queue is the first. Zero for one more than the last.
    pub number: u64,
    /// When it began to wait, in microseconds since 1970 by its own wall clock.
    pub since: u64,
    /// How long the entry is kept if it is not renewed.
    pub lease: Ttl,
    /// How long it would be kept in front, where entries are renewed most often.
    pub lease_in_front: Ttl,
    /// How long a node reserves the lock for this waiter: as long as a claim may take.
    pub claim: ClaimTime,
    /// The channel on which the node notifies the waiter's connection. The session with the node
    /// sets it.
    pub channel: Option<Channel>,
}

/// The channel of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    pub number: u64,
    /// Is it one of a shard, whose messages a cluster does not send to all of its nodes?
    pub is_sharded: bool,
}

impl QueueEntry {
    /// The removal of the waiter from the queues of the lock's keys, and of its last attempt.
    pub fn leave(self) -> Removal {
        let Self {
            lock,
            waiter,
            ttl,
            lease,
            ..
        } = self;
        let ttl = ttl.max(lease);
        let waiter = Some(waiter);
        Removal {
            lock,
            ttl,
            keep_for: None,
            waiter,
            is_awaited: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTime {
    /// If the node notifies the waiter.
    pub notified: Ttl,
    /// If the waiter has to ask.
    pub asking: Ttl,
}

/// A wait in the nodes' queue, between two requests: nothing is asked of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueWait {
    pub key: Arc<[u8]>,
    pub waiter: Token,
    /// Are the nodes to tell when the lock's key changes?
    pub watches: bool,
    /// When it ends if the nodes tell nothing.
    pub until: Time,
}

/// What one node answers about a waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// How many waiters are before it.
    pub place: u64,
    /// Does the node reserve the lock for it? Of a set of resources: all of them.
    pub is_reserved: bool,
    /// If it reserves some of the resources of a set, and not all: for which of the set's keys,
    /// from 0, the waiter waits longest.
    pub lacks: Option<usize>,
    /// Was it out of the queue, although it had a number? It had missed its reservation, or the
    /// node has lost the queue.
    pub was_out: bool,
    /// The ttl of the lock's key, if it has one: until then it holds a lock or a reservation.
    pub left: Option<Duration>,
    /// Will the node notify this client when it reserves the lock for the waiter, and when the
    /// lock's key changes?
    pub is_heard: bool,
    /// The permits that are free there, if the waiter is called for one.
    pub free: PermitSet,
}

/// What the nodes' answers say about a waiter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// How many waiters are before it, on the node where most are.
    pub place: u64,
    /// How many waiters this client has, for this lock and others, and attempts under way, which
    /// may become some before a lease that is given now has ended.
    pub waiters: usize,
    /// The nodes that reserve the lock for it.
    pub reserved: NodeSet,
    /// The nodes that reserve a part of a set of resources for it.
    pub part: NodeSet,
    /// For which key of the set, from 0, the waiter waits longest there.
    pub lacks: Option<usize>,
    /// The same of each of these nodes, a bit for a key (a set has 64 at most): not all need say
    /// the same.
    pub lacking: u64,
    /// The nodes that will notify this client when they do.
    pub listening: NodeSet,
    /// The nodes where it was out of the queue.
    pub out: NodeSet,
    /// When a majority of the nodes may be free or reserved for this waiter, from their answers on:
    /// the lock's key may have expired then.
    pub left: Option<Duration>,
    /// Does a waiter of another client wait for the lock?
    pub is_awaited: bool,
    /// The nodes that have no queue, or whose rights do not suffice for it.
    pub without: NodeSet,
    /// The permits that are free on a majority of the nodes.
    pub free: PermitSet,
}

impl QueueState {
    /// What these answers say, one for each node that answered, of this many nodes.
    pub fn note(&mut self, views: impl Iterator<Item = (Node, QueueView)>, nodes: usize) {
        let mut lefts: Vec<(bool, Duration)> = Vec::new();
        let mut lacking: Vec<usize> = Vec::new();
        let mut free: Vec<PermitSet> = Vec::new();
        for (node, view) in views {
            self.place = self.place.max(view.place);
            if view.is_reserved {
                self.reserved.insert(node);
                free.push(view.free);
            }
            if let Some(index) = view.lacks {
                self.part.insert(node);
                self.lacking |= 1 << index.min(63);
                lacking.push(index);
            }
            if view.was_out {
                self.out.insert(node);
            }
            if view.is_heard {
                self.listening.insert(node);
            }
            lefts.push((view.is_reserved, view.left.unwrap_or(Duration::MAX)));
        }
        if free.len() >= quorum(nodes) && free.iter().any(|set| *set != PermitSet::default()) {
            self.free = PermitSet::in_at_least(&free, quorum(nodes));
        }
        // The median: what most of them say, if most say the same.
        lacking.sort_unstable();
        self.lacks = lacking.get(lacking.len() / 2).copied();
        let silent = iter::repeat_n(Duration::MAX, nodes - lefts.len());
        // A node that reserves the lock for this waiter is not one of those it waits for.
        let is_called = self.reserved.len() >= quorum(nodes);
        let awaited = lefts
            .into_iter()
            .filter(|(is_mine, _)| is_called || !is_mine);
        let left = until_quorum(nodes, awaited.map(|(_, left)| left).chain(silent));
        self.left = left.filter(|left| *left < Duration::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(views: &[(bool, u64)]) -> Option<u64> {
        let view = |(index, (is_reserved, left)): (usize, &(bool, u64))| {
            let is_reserved = *is_reserved;
            let left = Some(Duration::from_millis(*left));
            let place = 0;
            let was_out = false;
            let is_heard = true;
            let free = PermitSet::default();
            let view = QueueView {
                place,
                is_reserved,
                lacks: None,
                was_out,
                left,
                is_heard,
                free,
            };
            (Node::new(index), view)
        };
        let mut state = QueueState::default();
        state.note(views.iter().enumerate().map(view), 3);
        state.left.map(|left| left.as_millis() as u64)
    }

    #[test]
    fn a_waiter_looks_when_enough_nodes_may_be_free_beside_those_that_reserve_the_lock_for_it() {
        assert_eq!(left(&[(false, 50), (false, 20), (false, 90)]), Some(50));
        assert_eq!(left(&[(true, 300), (false, 20), (false, 90)]), Some(20));
        assert_eq!(
            left(&[(true, 300), (true, 200), (false, 90)]),
            Some(200),
            "it is its turn"
        );
        assert_eq!(left(&[(true, 300), (false, 20)]), Some(20));
        assert_eq!(left(&[(false, 20)]), None, "too few have answered");
    }
}
