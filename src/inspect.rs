//! What the nodes hold for a resource, for people and programs that want to look and not to lock.

use crate::engine::{Token, quorum};
use crate::node::script::SHOWN_MAX;
use crate::node::{KeySnapshot, NodeAnswer, NodeError, NodeReport};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What [`LockClient::inspect`](crate::LockClient::inspect) saw. It was so when the nodes answered,
/// and may be otherwise by the time it is read.
///
/// It remembers the values that it saw, without showing them, for
/// [`LockClient::force_release`](crate::LockClient::force_release).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// What a majority of the nodes says.
    pub state: LockState,
    /// What each node says, in the order of the configuration.
    pub nodes: Vec<NodeView>,
    pub(crate) seen: Seen,
}

/// What a removal by force goes by: it removes what was seen and nothing else.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The lock's key.
    pub(crate) key: Arc<[u8]>,
    /// The values that are locks, each once.
    pub(crate) locks: Arc<[Vec<u8>]>,
    /// Nodes that hold something that is no lock.
    pub(crate) others: Vec<Arc<str>>,
}

/// Whoever knows the tokens in the values can release the lock.
impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen")
            .field("key", &self.key.escape_ascii().to_string())
            .field("locks", &self.locks.len())
            .field("others", &self.others)
            .finish()
    }
}

impl Seen {
    fn of(key: Arc<[u8]>, snapshots: &[Option<KeySnapshot>], reports: &[NodeReport]) -> Self {
        let mut locks = BTreeSet::new();
        let mut others = Vec::new();
        for (snapshot, report) in snapshots.iter().zip(reports) {
            match snapshot {
                Some(snapshot) if is_lock(snapshot) => locks.extend(snapshot.value.clone()),
                Some(KeySnapshot { value: Some(_), .. }) => others.push(Arc::clone(&report.url)),
                _ => {}
            }
        }
        Self { key, locks: locks.into_iter().collect(), others }
    }
}

/// Is it a string that ends by itself, and no longer than a lock's? Anything else is somebody's
/// data under the name of a lock.
fn is_lock(snapshot: &KeySnapshot) -> bool {
    let is_text = |value: &Vec<u8>| !value.is_empty() && value.len() < SHOWN_MAX;
    snapshot.left >= 0 && snapshot.value.as_ref().is_some_and(is_text)
}

/// Is a lock free or held, as far as a majority of the nodes can say?
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// So many nodes have no key for it that an attempt would have been granted by a majority.
    Free,
    /// A majority holds the same value.
    Held(Holder),
    /// Neither: somebody is just taking it or giving it back, or what is left of a failed attempt
    /// has yet to be removed or to expire.
    Undecided,
}

/// Who holds a lock, on one node or on a majority of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The [label](crate::LockRequest::owner), if there is one: what follows the token in the value
    /// of the key. What another program put there may look like one.
    pub owner: Option<Vec<u8>>,
    /// How long the key has to live, and with it the lock unless it is extended; of a majority, how
    /// long until it is none any more. `None` if it has no end, which no lock of this library has.
    pub remaining: Option<Duration>,
}

/// What one node holds for a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeView {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    /// Who holds the lock there, if anybody, or why that is not known.
    pub holder: Result<Option<Holder>, NodeError>,
    /// Does it hold the value that a majority holds?
    pub agrees: bool,
}

impl Inspection {
    /// `None` if too few nodes answered to say anything.
    pub(crate) fn of(
        key: Arc<[u8]>,
        snapshots: &[Option<KeySnapshot>],
        reports: Vec<NodeReport>,
    ) -> Result<Self, Vec<NodeReport>> {
        let needed = quorum(snapshots.len());
        if snapshots.iter().flatten().count() < needed {
            return Err(reports);
        }
        let mut values: BTreeMap<&[u8], Vec<&KeySnapshot>> = BTreeMap::new();
        for snapshot in snapshots.iter().flatten() {
            if let Some(value) = &snapshot.value {
                values.entry(value).or_default().push(snapshot);
            }
        }
        let most = values.into_iter().find(|(_, holders)| holders.len() >= needed);
        let free = snapshots.iter().flatten().filter(|snapshot| snapshot.value.is_none()).count();
        let state = match &most {
            Some((value, holders)) => LockState::Held(Holder {
                owner: label(value),
                remaining: remaining_of_majority(holders, needed),
            }),
            None if free >= needed => LockState::Free,
            None => LockState::Undecided,
        };
        let value = most.map(|(value, _)| value.to_vec());
        let seen = Seen::of(key, snapshots, &reports);
        let views = reports.into_iter().zip(snapshots);
        let nodes = views.map(|(report, snapshot)| view(report, snapshot.as_ref(), &value));
        Ok(Self { nodes: nodes.collect(), state, seen })
    }
}

fn view(report: NodeReport, snapshot: Option<&KeySnapshot>, value: &Option<Vec<u8>>) -> NodeView {
    let holder = match (snapshot, report.answer) {
        (Some(snapshot), _) => Ok(holder(snapshot)),
        (None, NodeAnswer::Failed(problem)) => Err(problem),
        (None, _) => Err(NodeError::TimedOut(crate::node::Phase::Answering)),
    };
    let agrees = value.is_some() && snapshot.is_some_and(|snapshot| snapshot.value == *value);
    NodeView { url: report.url, holder, agrees }
}

fn holder(snapshot: &KeySnapshot) -> Option<Holder> {
    let value = snapshot.value.as_ref()?;
    Some(Holder { owner: label(value), remaining: remaining(snapshot) })
}

/// What follows the token in a value.
fn label(value: &[u8]) -> Option<Vec<u8>> {
    value.get(Token::LEN..).filter(|label| !label.is_empty()).map(<[u8]>::to_vec)
}

fn remaining(snapshot: &KeySnapshot) -> Option<Duration> {
    u64::try_from(snapshot.left).ok().map(Duration::from_millis)
}

/// How long until fewer than `needed` of these are left.
fn remaining_of_majority(holders: &[&KeySnapshot], needed: usize) -> Option<Duration> {
    // One that has no end outlives all others.
    let mut left: Vec<u64> =
        holders.iter().map(|holder| u64::try_from(holder.left).unwrap_or(u64::MAX)).collect();
    left.sort_unstable_by(|one, other| other.cmp(one));
    left.get(needed - 1).copied().filter(|left| *left < u64::MAX).map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
