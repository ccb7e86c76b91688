//! What one node has for a lock.

use crate::engine::Token;
use std::fmt;
use std::time::Duration;

/// The most bytes of a value that a node shows: more than the value of any lock has.
pub const SHOWN_MAX: usize = 1024;

/// The most waiters, and the most holders of shares, that a node lists.
pub const LISTED_MAX: usize = 100;

#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeySnapshot {
    /// The key's value, if there is one. Empty if it is not a string.
    pub value: Option<Vec<u8>>,
    pub is_string: bool,
    /// The ttl in milliseconds: -1 if the key has none, -2 if there is no key.
    pub left: i64,
    /// The first hundred waiters in the lock's queue, in its order.
    pub waiters: Vec<WaiterSnapshot>,
    pub waiter_count: usize,
    /// The first hundred holders of a lock that is shared, by the end of their ttl.
    pub holders: Vec<HolderSnapshot>,
    /// How many holders there are of a lock that is shared.
    pub holder_count: usize,
    /// For how long the node's grants do not count, as far as the client knows.
    pub quarantine: Option<Duration>,
}

/// The holder of a share of a lock on one node.
#[derive(Clone, PartialEq, Eq)]
pub struct HolderSnapshot {
    /// Its member in the set of holders: the permit, if it has one, a colon, and the lock's value.
    pub member: Vec<u8>,
    /// The ttl in milliseconds.
    pub left: i64,
}

/// Does not show the value: knowledge of the token in it is enough to release the share.
impl fmt::Debug for HolderSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HolderSnapshot").field("left", &self.left).finish_non_exhaustive()
    }
}

/// A waiter in a lock's queue on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterSnapshot {
    pub name: Token,
    /// When it began to wait, in microseconds since 1970 by its own wall clock.
    pub since: u64,
    /// How many permits there are if it waits for one of them, 0 if it waits as a reader. `None` if
    /// it waits for the exclusive lock.
    pub permits: Option<u32>,
    pub owner: Vec<u8>,
}

impl WaiterSnapshot {
    /// Reads a waiter's name and its entry. The label may have any bytes, blanks too.
    pub(super) fn read(name: &[u8], entry: &[u8]) -> Option<Self> {
        let name = Token::new(name.try_into().ok()?);
        let mut words = entry.splitn(5, |byte| *byte == b' ');
        let (head, owner) = (words.next()?, words.nth(3)?.to_vec());
        let head = std::str::from_utf8(head).ok()?;
        let (since, permits) = match head.split_once('s') {
            Some((since, permits)) => (since, Some(permits.parse().ok()?)),
            None => (head, None),
        };
        let since = since.parse().ok()?;
        Some(Self { name, since, permits, owner })
    }
}

/// Does not show the value: knowledge of the token in it is enough to release the lock.
impl fmt::Debug for KeySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySnapshot")
            .field("bytes", &self.value.as_ref().map(Vec::len))
            .field("left", &self.left)
            .field("waiters", &self.waiters.len())
            .field("holders", &self.holders.len())
            .finish()
    }
}
