//! The commands by which the nodes' locks are looked at, listed and removed by force. Their scripts
//! are beside them.

#[cfg(feature = "diagnostics")]
mod listing;
mod snapshot;

use super::engine::{CustomCommand, NoVote, RunScript, Said, Script, Tally, Vote};
use super::node::script::{elements_of_parts, lua_script};
use super::resp::{Elements, Reply};
#[cfg(feature = "diagnostics")]
pub use listing::{ForcedRemoval, KeyPage, Listing, REMOVE, SCAN};
pub use snapshot::{HolderSnapshot, KeySnapshot, LISTED_MAX, SHOWN_MAX, WaiterSnapshot};
use std::sync::Arc;
use std::time::Duration;

/// The scripts, in the order of their numbers.
#[cfg(feature = "diagnostics")]
pub const ALL: [Script; 3] = [REMOVE, INSPECT, SCAN];

/// The number of the first one, among those of custom commands.
const FIRST: u32 = 7;

// A lock, its holders and its waiters are looked at.

pub const INSPECT: Script = lua_script!("inspect.lua");

/// Looks at the lock with this key. What is said is its [`KeySnapshot`].
#[derive(Clone, Debug)]
pub struct Look {
    pub key: Arc<[u8]>,
}

impl CustomCommand for Look {
    fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    fn script(&self) -> (Script, u32) {
        (INSPECT, FIRST + 1)
    }

    fn call(&self, run: &mut RunScript<'_>) {
        run(&[&self.key], &[]);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        snapshot(number, reply).map(|seen| Ok((Vote::Granted, Said::new(seen))))
    }

    fn in_quarantine(&self, said: Said, left: Duration) -> Said {
        let seen = said.get::<KeySnapshot>().cloned();
        seen.map_or(said, |seen| Said::new(KeySnapshot { quarantine: Some(left), ..seen }))
    }

    /// Every node is asked for what it has.
    fn waits_for_more(&self, _: &[Option<Said>], _: &Tally, _: usize) -> bool {
        true
    }
}

fn snapshot(number: i64, reply: &Reply<'_>) -> Option<KeySnapshot> {
    let Reply::Array(list) = reply else { return None };
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
        // A member that is no waiter's name was put there by another program.
        waiters: pairs(waiters, waiter)?.into_iter().flatten().collect(),
        waiter_count: usize::try_from(*waiter_count).ok()?,
        holders: pairs(holders, holder)?,
        holder_count: usize::try_from(*holder_count).ok()?,
        quarantine: None,
    })
}

/// What a list says whose elements come in parts and belong together by two.
fn pairs<T>(
    list: &Elements<'_>,
    read: impl Fn(Reply<'_>, Reply<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let elements = elements_of_parts(list)?;
    elements.chunks(2).map(|pair| read(pair[0], *pair.get(1)?)).collect()
}

/// A holder of a shared lock: its member and its ttl.
fn holder(member: Reply<'_>, left: Reply<'_>) -> Option<HolderSnapshot> {
    let (Reply::Bulk(member), Reply::Integer(left)) = (member, left) else { return None };
    Some(HolderSnapshot { member: member.to_vec(), left })
}

/// A waiter in a queue, if it is one: its name and the value of its lease.
fn waiter(name: Reply<'_>, lease: Reply<'_>) -> Option<Option<WaiterSnapshot>> {
    let (Reply::Bulk(name), Reply::Bulk(lease)) = (name, lease) else { return None };
    Some(WaiterSnapshot::read(name, lease))
}

#[cfg(test)]
mod tests;
