//! The commands by which the nodes' locks are looked at, listed and removed by force. Their Lua is
//! beside them.

#[cfg(feature = "diagnostics")]
mod listing;

use super::engine::{CustomCommand, NoVote, RunScript, Said, Script, Tally, Token, Vote};
use super::node::script::{HOLDERS_SUFFIX, INSPECT, QUEUE_SUFFIX, elements_of_parts};
use super::resp::{Elements, Reply};
#[cfg(feature = "diagnostics")]
pub use listing::{ForcedRemoval, KeyPage, Listing};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

// A lock, its holders and its waiters are looked at.

/// Looks at the lock with this key. What is said is its [`KeySnapshot`].
#[derive(Clone, Debug)]
pub struct Look {
    pub key: Arc<[u8]>,
    /// How much longer than its lock a key lives on the node. Zero at first.
    pub skew: Duration,
}

impl Look {
    pub fn new(key: Arc<[u8]>) -> Self {
        let skew = Duration::ZERO;
        Self { key, skew }
    }
}

impl CustomCommand for Look {
    fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    fn script(&self) -> Script {
        INSPECT
    }

    fn for_group(&self, _: &Arc<[u8]>, skew: Duration) -> Option<Arc<dyn CustomCommand>> {
        let key = Arc::clone(&self.key);
        Some(Arc::new(Self { key, skew }))
    }

    fn call(&self, run: &mut RunScript<'_>) {
        let [queue, holders] =
            [QUEUE_SUFFIX, HOLDERS_SUFFIX].map(|suffix| [&self.key, suffix].concat());
        run(&[&self.key, &queue, &holders], &[]);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        let seen = snapshot(number, reply)?;
        let skew = self.skew;
        Some(Ok((Vote::Granted, Said::new(KeySnapshot { skew, ..seen }))))
    }

    fn in_quarantine(&self, said: Said, left: Duration) -> Said {
        let seen = said.get::<KeySnapshot>().cloned();
        seen.map_or(said, |seen| {
            Said::new(KeySnapshot {
                quarantine: Some(left),
                ..seen
            })
        })
    }

    /// Every node is asked for what it has.
    fn waits_for_more(&self, _: &[Option<Said>], _: &Tally, _: usize) -> bool {
        true
    }
}

fn snapshot(number: i64, reply: &Reply<'_>) -> Option<KeySnapshot> {
    let Reply::Array(list) = reply else {
        return None;
    };
    let elements: Vec<_> = list.iter().collect();
    let [
        first,
        value,
        Reply::Integer(left),
        Reply::Array(waiters),
        Reply::Array(holders),
        Reply::Integer(waiter_count),
        Reply::Integer(holder_count),
    ] = &elements[..]
    else {
        return None;
    };
    if *first != Reply::Integer(number) {
        return None;
    }
    let (value, is_string) = match value {
        Reply::Null => (None, false),
        Reply::Bulk(bytes) => (Some(bytes.to_vec()), true),
        Reply::Integer(0) => (Some(Vec::new()), false),
        _ => return None,
    };
    Some(KeySnapshot {
        value,
        is_string,
        left: *left,
        // A member that is not a waiter's name was put there by another program.
        waiters: pairs(waiters, waiter)?.into_iter().flatten().collect(),
        waiter_count: usize::try_from(*waiter_count).ok()?,
        holders: pairs(holders, holder)?,
        holder_count: usize::try_from(*holder_count).ok()?,
        quarantine: None,
        skew: Duration::ZERO,
    })
}

/// What a list says whose elements come in parts and belong together by two.
fn pairs<T>(
    list: &Elements<'_>,
    read: impl Fn(Reply<'_>, Reply<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let elements = elements_of_parts(list)?;
    elements
        .chunks(2)
        .map(|pair| read(pair[0], *pair.get(1)?))
        .collect()
}

/// A holder of a shared lock: its member and its ttl.
fn holder(member: Reply<'_>, left: Reply<'_>) -> Option<HolderSnapshot> {
    let (Reply::Bulk(member), Reply::Integer(left)) = (member, left) else {
        return None;
    };
    Some(HolderSnapshot {
        member: member.to_vec(),
        left,
    })
}

/// A waiter in a queue, if it is one: its name and the value of its lease.
fn waiter(name: Reply<'_>, lease: Reply<'_>) -> Option<Option<WaiterSnapshot>> {
    let (Reply::Bulk(name), Reply::Bulk(lease)) = (name, lease) else {
        return None;
    };
    Some(WaiterSnapshot::read(name, lease))
}

// What one node has for a lock.

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
    /// How much longer than its lock a key lives on the node.
    pub skew: Duration,
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
        f.debug_struct("HolderSnapshot")
            .field("left", &self.left)
            .finish_non_exhaustive()
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
    fn read(name: &[u8], entry: &[u8]) -> Option<Self> {
        let name = Token::new(name.try_into().ok()?);
        let mut words = entry.splitn(5, |byte| *byte == b' ');
        let head = words.next()?;
        let owner = words.nth(3)?.to_vec();
        let head = std::str::from_utf8(head).ok()?;
        let (since, permits) = match head.split_once('s') {
            Some((since, permits)) => (since, Some(permits.parse().ok()?)),
            None => (head, None),
        };
        let since = since.parse().ok()?;
        Some(Self {
            name,
            since,
            permits,
            owner,
        })
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

#[cfg(all(test, feature = "diagnostics"))]
mod tests;
