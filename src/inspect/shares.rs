//! Who has a share of a lock, from the sets of holders of all nodes.

use super::{Holder, LockState, label};
use crate::engine::PERMITS_MAX;
use crate::node::command::{SHARED, read_member};
use redlatch_protocol::inspect::{HolderSnapshot, KeySnapshot, LISTED_MAX};
use std::collections::BTreeMap;
use std::time::Duration;

/// Is the lock shared on this node? Then its key's value is the same for all holders.
pub(super) fn is_shared(snapshot: &KeySnapshot) -> bool {
    snapshot.value.as_deref() == Some(SHARED)
}

/// The holders of shares on one node.
pub(super) fn on_node(snapshot: &KeySnapshot) -> Vec<Holder> {
    let holders = snapshot.holders.iter().filter(|_| is_shared(snapshot));
    holders.filter_map(|holder| read(&holder.member, holder.left)).collect()
}

/// What a release by force removes from the node: the members of its set of holders; the key's
/// value if it has none, so that nobody has a share.
pub(super) fn members(snapshot: &KeySnapshot) -> impl Iterator<Item = Vec<u8>> {
    let members = snapshot.holders.iter().map(|holder| holder.member.clone());
    let alone = snapshot.value.clone().filter(|_| snapshot.holders.is_empty());
    members.chain(alone)
}

/// The state of a lock that a majority of the nodes shares: the holders that a majority has.
pub(super) fn state(snapshots: &[Option<KeySnapshot>], needed: usize) -> LockState {
    let mut found: BTreeMap<&[u8], Vec<i64>> = BTreeMap::new();
    let shared = snapshots.iter().flatten().filter(|snapshot| is_shared(snapshot));
    for HolderSnapshot { member, left } in shared.flat_map(|snapshot| &snapshot.holders) {
        found.entry(member).or_default().push(*left);
    }
    let of_majority = |(member, mut left): (&[u8], Vec<i64>)| {
        left.sort_unstable_by(|one, other| other.cmp(one));
        read(member, *left.get(needed - 1)?)
    };
    let mut holders: Vec<Holder> = found.into_iter().filter_map(of_majority).collect();
    holders.sort_by_key(|holder| (holder.slot, holder.remaining));
    if holders.is_empty() { LockState::Undecided } else { LockState::Shared(holders) }
}

/// How many hold a lock in this state.
pub(super) fn count(snapshots: &[Option<KeySnapshot>], state: &LockState) -> usize {
    let shown = match state {
        LockState::Shared(holders) => holders.len(),
        LockState::Held(_) => return 1,
        _ => return 0,
    };
    let shared = snapshots.iter().flatten().filter(|snapshot| is_shared(snapshot));
    let counts = shared.map(|snapshot| snapshot.holder_count);
    counts.filter(|count| *count > LISTED_MAX).max().unwrap_or(0).max(shown)
}

fn read(member: &[u8], left: i64) -> Option<Holder> {
    let (slot, value) = read_member(member)?;
    // Where another client was given this slot, the member has a number that is larger by that.
    let slot = slot.map(|number| number % PERMITS_MAX);
    let remaining = u64::try_from(left).ok().map(Duration::from_millis);
    Some(Holder { owner: label(value), slot, remaining, since: None, other_program: None })
}
