//! The queue for a lock that the nodes keep: a waiter's entry, and what the nodes answer about it.
//!
//! A client that waits for a lock enters its waiter into a queue on every node. Each node reserves
//! a lock that is free for the first waiter in its queue and tells that waiter's client. A
//! reservation is no vote and gives nobody the lock: it only says that it is time to ask.

use super::{LockId, Node, NodeSet, Token, Ttl};
use std::time::Duration;

/// How long a waiter in front may be silent by default. It renews its entry after two thirds of
/// that time, so once a second. A waiter that has died delays the others for at most this time.
pub const WAITER_LEASE: Duration = Duration::from_millis(1_500);

/// The largest number of a waiter. No queue gets there by counting: a node that answers with a
/// larger one is not believed.
pub const WAITER_NUMBER_MAX: u64 = 1 << 52;

/// A waiter's entry in the nodes' queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "code that encodes a request must know all fields")]
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
    /// Is the node to tell the client when it reserves the lock for the waiter?
    pub listens: bool,
}

/// What one node answers about a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "code that reads an answer must set all fields")]
pub struct QueueView {
    /// How many waiters are before it.
    pub place: u64,
    /// Does the node reserve the lock for it?
    pub is_reserved: bool,
    /// The ttl of the lock's key, if it has one: until then it holds a lock or a reservation.
    pub left: Option<Duration>,
    /// Will the node tell this client when it reserves the lock for the waiter?
    pub is_heard: bool,
}

/// What the nodes' answers say about a waiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueState {
    /// How many waiters are before it, on the node where most are.
    pub place: u64,
    /// The nodes that reserve the lock for it.
    pub reserved: NodeSet,
    /// The nodes that will tell this client when they do.
    pub listening: NodeSet,
    /// When the lock's key may have expired on a majority of the nodes, from their answers on.
    pub left: Option<Duration>,
    /// Does a waiter of another client wait for the lock?
    pub is_awaited: bool,
    /// The nodes that have no queue, or whose rights do not suffice for it.
    pub without: NodeSet,
}

impl QueueState {
    /// What these answers say, one for each node that answered.
    pub fn note(&mut self, views: impl Iterator<Item = (Node, QueueView)>, quorum: usize) {
        let mut lefts: Vec<Duration> = Vec::new();
        for (node, view) in views {
            self.place = self.place.max(view.place);
            if view.is_reserved {
                self.reserved.insert(node);
            }
            if view.is_heard {
                self.listening.insert(node);
            }
            lefts.push(view.left.unwrap_or(Duration::MAX));
        }
        lefts.sort_unstable();
        let left = lefts.get(quorum - 1).copied();
        self.left = left.filter(|left| *left < Duration::MAX);
    }
}
