//! What a lock may have beyond one key and a token.

use super::{Node, NodeSet, Token, Ttl};
use std::sync::Arc;

/// The most that a wall clock counts for, in microseconds since 1970: a time in the year 2112. A
/// clock that is wrong by more must not use up what counters have room for.
pub const FENCE_SEED_MAX: u64 = 1 << 52;

/// The largest fencing token: what is left above any wall clock for counting a grant every
/// microsecond for twelve days, or one every millisecond for 34 years. The nodes' scripts count in
/// doubles, which are exact up to twice as much.
///
/// No lower than that, so that no clock and no counting comes to the end; and no higher, because
/// what is beyond it has not been counted. A node whose counter is there, by whatever accident,
/// grants nothing, and the others do not follow it: nobody has had such a token, or a majority
/// would have the counter, and then nobody is granted the lock.
pub const FENCE_MAX: u64 = FENCE_SEED_MAX + (1 << 40);

/// What a lock has beyond one key and a token. Most have nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockAttributes {
    /// Keys that are locked together with the first: all of them, or none.
    pub more_keys: Vec<Arc<[u8]>>,
    /// What follows the token in the keys' value, to say whose the lock is.
    pub owner: Vec<u8>,
    /// How long the counters live from which fencing tokens come. `None` if there are none.
    pub fence: Option<Ttl>,
}

/// A lock as the nodes know it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever encodes a request must know all of it")]
pub struct LockId {
    /// The lock's key.
    pub key: Arc<[u8]>,
    /// Whose lock it is.
    pub token: Token,
    /// What the lock has beyond that.
    pub attributes: Option<Arc<LockAttributes>>,
}

impl LockId {
    /// The keys that are locked.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        keys(&self.key, &self.attributes)
    }

    /// Are there several keys?
    #[must_use]
    pub fn has_more_keys(&self) -> bool {
        self.attributes.as_ref().is_some_and(|attributes| !attributes.more_keys.is_empty())
    }

    /// How long the counters live, if the lock is fenced.
    #[must_use]
    pub fn counters_ttl(&self) -> Option<Ttl> {
        self.attributes.as_ref()?.fence
    }
}

/// All keys of a lock: the first, and those that are locked together with it.
pub(super) fn keys<'a>(
    first: &'a Arc<[u8]>,
    attributes: &'a Option<Arc<LockAttributes>>,
) -> impl Iterator<Item = &'a [u8]> {
    let more = attributes.iter().flat_map(|attributes| &attributes.more_keys);
    std::iter::once(first).chain(more).map(|key| &**key)
}

/// The lock before, in a request that hands it over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Predecessor {
    /// Whose it was.
    pub token: Token,
    /// What it had beyond that.
    pub attributes: Option<Arc<LockAttributes>>,
}

impl Predecessor {
    /// A lock with no more to it than a key and a token.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self { token, attributes: None }
    }
}

/// The counters that nodes have answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// The largest of them.
    pub largest: u64,
    /// The nodes that granted the lock and answered with that one.
    pub nodes: NodeSet,
}

impl Counters {
    /// Takes in what `node` has answered. The largest counts wherever it comes from; the node only
    /// with its vote.
    pub fn note(&mut self, node: Node, counter: u64, has_voted: bool) {
        if counter > self.largest {
            *self = Self { largest: counter, nodes: NodeSet::EMPTY };
        }
        if counter == self.largest && has_voted {
            self.nodes.insert(node);
        }
    }
}
