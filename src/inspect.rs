//! What the nodes hold for a resource, read without locking it.

mod shares;
mod waiters;

pub use waiters::QueuedWaiter;

use crate::engine::{Token, quorum};
use crate::name::Name;
use crate::node::command::{SHARED, is_reservation};
use crate::node::script::SHOWN_MAX;
use crate::node::{KeySnapshot, NodeAnswer, NodeError, NodeReport};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What [`LockClient::inspect`](crate::LockClient::inspect) saw: the state when the nodes answered,
/// which may have changed since.
///
/// It remembers the values it saw, without showing them, for
/// [`LockClient::force_release`](crate::LockClient::force_release).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The lock's state, as a majority of the nodes reports it.
    pub state: LockState,
    /// What each node holds, in the order of the configuration.
    pub nodes: Vec<NodeView>,
    /// Who waits for the lock in the nodes' queue, from the first to the last. Each node reports
    /// the first hundred, if the user may read the queue.
    ///
    /// There is one waiter for each client that wants the whole lock, since its threads have a
    /// queue of their own, and one for each call that wants a share of it. Waiters that a majority
    /// of the nodes has come first, in the order in which they are served. Those that fewer nodes
    /// have follow: they are just arriving, or have gone and could not reach each node. Calls that
    /// do not queue are not shown, such as a set of resources, or a client whose
    /// [`queue`](crate::Builder::queue) is off.
    pub waiters: Vec<QueuedWaiter>,
    pub(crate) seen: Seen,
}

/// The values that a release by force removes: those that were seen, and no others.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The lock's key.
    pub(crate) key: Arc<[u8]>,
    /// The values that are locks, each once.
    pub(crate) locks: Arc<[Vec<u8>]>,
    /// The nodes whose value is no lock.
    pub(crate) others: Vec<Arc<str>>,
}

/// Without the values: a token in them is enough to release the lock.
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
                Some(snapshot) if is_reserved(snapshot) => {}
                Some(snapshot) if shares::is_shared(snapshot) => {
                    locks.extend(shares::members(snapshot));
                }
                Some(snapshot) if is_lock(snapshot) => locks.extend(snapshot.value.clone()),
                Some(KeySnapshot { value: Some(_), .. }) => others.push(Arc::clone(&report.url)),
                _ => {}
            }
        }
        Self { key, locks: locks.into_iter().collect(), others }
    }
}

/// Is it a string with a ttl, and no longer than a lock's value? Anything else is other data under
/// the key of a lock.
fn is_lock(snapshot: &KeySnapshot) -> bool {
    let is_text = |value: &Vec<u8>| !value.is_empty() && value.len() < SHOWN_MAX;
    snapshot.left >= 0 && snapshot.value.as_ref().is_some_and(is_text)
}

/// Does the node keep the lock for a waiter? Then nobody holds it there.
fn is_reserved(snapshot: &KeySnapshot) -> bool {
    snapshot.value.as_ref().is_some_and(|value| is_reservation(value))
}

/// Whether a lock is free or held, as a majority of the nodes reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// A majority has no key for it: an attempt would have been granted.
    Free,
    /// A majority holds the same value.
    Held(Holder),
    /// A majority has it shared, by [readers](crate::LockRequest::shared) or
    /// [permits](crate::LockRequest::permits): those that a majority has, readers first and then
    /// permits by their numbers. Each node reports a hundred holders at most, those that end first.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockState};
    /// # fn example(client: &LockClient) -> Result<(), redlatch::Error> {
    /// if let LockState::Shared(holders) = client.inspect("licences")?.state {
    ///     for holder in holders {
    ///         eprintln!("{:?} has permit {:?}", holder.owner(), holder.permit);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    Shared(Vec<Holder>),
    /// No client holds it, and nodes reserve it for a waiter in their queue: a majority has a
    /// reservation or no key, and no majority is without a key. As long as the first waiter is
    /// alive, it acquires the lock within about a round; other attempts are refused.
    Reserved,
    /// Neither: it is just being acquired or released, or keys of a failed attempt have yet to be
    /// removed or to expire.
    Undecided,
}

/// The holder of a lock, on one node or on a majority of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    owner: Option<Label>,
    /// How long until the key expires, and with it the lock unless it is extended; for a majority,
    /// how long until fewer nodes than a majority have the key. `None` if the key has no ttl; every
    /// lock of this library has one.
    pub remaining: Option<Duration>,
    /// The number of its [permit](crate::LockRequest::permits). `None` for a reader, and for the
    /// holder of the whole lock.
    pub permit: Option<u32>,
}

impl Holder {
    /// The owner's [label](crate::LockRequest::owner), if there is one: the bytes that follow the
    /// token in the key's value. A value that another program has set may look like one.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockState};
    /// # fn example(client: &LockClient) -> Result<(), redlatch::Error> {
    /// if let LockState::Held(holder) = client.inspect("orders:42")?.state {
    ///     let owner = holder.owner().map(|name| name.to_string());
    ///     let owner = owner.unwrap_or("an unknown owner".to_owned());
    ///     eprintln!("held by {owner} for another {:?}", holder.remaining);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn owner(&self) -> Option<Name<'_>> {
        self.owner.as_ref().map(Label::name)
    }
}

/// The bytes of an owner's label.
#[derive(Clone, PartialEq, Eq)]
struct Label(Vec<u8>);

impl Label {
    fn name(&self) -> Name<'_> {
        Name::new(&self.0)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// What one node holds for a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeView {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    /// The holder of the whole lock on this node, if there is one, or why that is not known.
    pub holder: Result<Option<Holder>, NodeError>,
    /// Who has a share of the lock on this node, as a [reader](crate::LockRequest::shared) or with
    /// a [permit](crate::LockRequest::permits): a hundred at most, those that end first. If there
    /// are any, [`holder`](Self::holder) is `Ok(None)`.
    pub shares: Vec<Holder>,
    /// Whether it reserves the lock for a waiter in its queue. Then it has no holder.
    pub is_reserved: bool,
    /// Whether it has the value that a majority has. If a majority has the lock shared: whether it
    /// is shared on this node too, whoever has the [shares](Self::shares) there.
    pub agrees: bool,
}

impl Inspection {
    /// The reports of the nodes if too few of them answered.
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
        for snapshot in snapshots.iter().flatten().filter(|snapshot| !is_reserved(snapshot)) {
            if let Some(value) = &snapshot.value {
                values.entry(value).or_default().push(snapshot);
            }
        }
        let most = values.into_iter().find(|(_, holders)| holders.len() >= needed);
        let free = snapshots.iter().flatten().filter(|snapshot| snapshot.value.is_none()).count();
        let reserved = snapshots.iter().flatten().filter(|snapshot| is_reserved(snapshot)).count();
        let state = match &most {
            Some((value, _)) if *value == SHARED => shares::state(snapshots, needed),
            Some((value, holders)) => LockState::Held(Holder {
                owner: label(value),
                remaining: remaining_of_majority(holders, needed),
                permit: None,
            }),
            None if free >= needed => LockState::Free,
            None if free + reserved >= needed => LockState::Reserved,
            None => LockState::Undecided,
        };
        let value = most.map(|(value, _)| value.to_vec());
        let seen = Seen::of(key, snapshots, &reports);
        let views = reports.into_iter().zip(snapshots);
        let nodes = views.map(|(report, snapshot)| view(report, snapshot.as_ref(), &value));
        Ok(Self { nodes: nodes.collect(), state, waiters: waiters::of(snapshots), seen })
    }
}

fn view(report: NodeReport, snapshot: Option<&KeySnapshot>, value: &Option<Vec<u8>>) -> NodeView {
    let holder = match (snapshot, report.answer) {
        (Some(snapshot), _) => Ok(holder(snapshot)),
        (None, NodeAnswer::Failed(error)) => Err(error),
        (None, _) => Err(NodeError::TimedOut(crate::node::Phase::Answering)),
    };
    let agrees = value.is_some() && snapshot.is_some_and(|snapshot| snapshot.value == *value);
    let is_reserved = snapshot.is_some_and(is_reserved);
    let shares = snapshot.map(shares::on_node).unwrap_or_default();
    NodeView { url: report.url, holder, shares, is_reserved, agrees }
}

fn holder(snapshot: &KeySnapshot) -> Option<Holder> {
    let is_single = !is_reserved(snapshot) && !shares::is_shared(snapshot);
    let value = snapshot.value.as_ref().filter(|_| is_single)?;
    Some(Holder { owner: label(value), remaining: remaining(snapshot), permit: None })
}

/// The bytes that follow the token in a value.
fn label(value: &[u8]) -> Option<Label> {
    value.get(Token::LEN..).filter(|label| !label.is_empty()).map(|label| Label(label.to_vec()))
}

fn remaining(snapshot: &KeySnapshot) -> Option<Duration> {
    u64::try_from(snapshot.left).ok().map(Duration::from_millis)
}

/// How long until fewer than `needed` of these keys are left.
fn remaining_of_majority(holders: &[&KeySnapshot], needed: usize) -> Option<Duration> {
    // A key without a ttl outlives all others.
    let mut left: Vec<u64> =
        holders.iter().map(|holder| u64::try_from(holder.left).unwrap_or(u64::MAX)).collect();
    left.sort_unstable_by(|one, other| other.cmp(one));
    left.get(needed - 1).copied().filter(|left| *left < u64::MAX).map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
