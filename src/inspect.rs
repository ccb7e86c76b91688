//! What the nodes hold for a resource, read without locking it.

mod other_data;
mod own_threads;
mod shares;
mod waiters;

use super::clock::WallTime;
use super::engine::{Share, Token, quorum, until_quorum};
use super::name::Name;
use super::node::command::{SHARED, is_reservation};
use super::node::{NodeAnswer, NodeError, NodeReport};
pub(crate) use other_data::OtherData;
pub use own_threads::{OwnHolder, OwnThreads};
use redlatch_protocol::inspect::KeySnapshot;
pub use shares::{NotALock, OtherProgram};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
pub use waiters::QueuedWaiter;
use waiters::{count_waiters, waiters_of};

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
    /// What each node holds, in the order of the configuration. On ZooKeeper, where the ensemble
    /// agrees before it answers, that is one view: that of the server that has answered.
    pub nodes: Vec<NodeView>,
    /// Of Redis nodes: for how long the nodes that answered are not a majority that can grant the
    /// lock, because too many were started less than [`max_ttl`](crate::Builder::max_ttl) ago,
    /// whatever the state is:
    /// see [`restart_guard`](crate::Builder::restart_guard). `None` if that is not so.
    pub quarantine: Option<Duration>,
    /// How many hold the lock: more than [`LockState::Shared`] has if a node has more than a
    /// hundred holders. Then some of them may have expired.
    pub holder_count: usize,
    /// How many wait for the lock: more than [`waiters`](Self::waiters) has if a node has more than
    /// a hundred in its queue. Then some of them may have gone.
    pub waiter_count: usize,
    /// Who waits for the lock in the nodes' queue, from the first to the last: one waiter for each
    /// client that wants the exclusive lock, and one for each call that wants a share of it. Each
    /// node reports the first hundred, if the user may read the queue.
    ///
    /// Waiters that a majority of the nodes has come first, in the order in which they are served.
    /// Those that fewer nodes have follow: they are just arriving, or have gone and could not reach
    /// each node. Calls that do not queue are not shown, such as those of a client whose
    /// [`queue`](crate::Builder::queue) is off. Of the threads that wait for the exclusive lock by
    /// one client, one is shown for all, and none while a thread of that client holds the lock:
    /// those of the client that inspects are in [`own_threads`](Self::own_threads), and those of
    /// others nobody but these knows.
    ///
    /// On ZooKeeper, these are the first hundred contenders behind the lock's holder, those of
    /// other programs and of sets of resources included.
    pub waiters: Vec<QueuedWaiter>,
    /// Who of this client's own threads holds the lock, and how many wait for it.
    pub own_threads: OwnThreads,
    pub(crate) seen: Seen,
}

/// Does the node keep the lock for a waiter? Then nobody holds it there.
fn is_reserved(snapshot: &KeySnapshot) -> bool {
    snapshot
        .value
        .as_ref()
        .is_some_and(|value| is_reservation(value))
}

/// The holder of a lock, on one node or on a majority of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    pub(crate) owner: Option<Label>,
    /// How long until the key expires, and with it the lock unless it is extended; for a majority,
    /// how long until fewer nodes than a majority have the key. `None` on a node where the ttl of a
    /// lock's key was removed.
    ///
    /// `None` on ZooKeeper: only the holder's own client knows when it ends. If that client is
    /// gone, the lock ends with its session, which the ensemble counts anew from the client's last
    /// sign of life and tells nobody.
    pub remaining: Option<Duration>,
    /// The slot of its [permit](crate::LockRequest::one_of). `None` for a reader, and for the
    /// holder of the exclusive lock.
    pub slot: Option<u32>,
    /// When its znode was created, by the clock of ZooKeeper's leader: of a share, when it was
    /// granted; of the exclusive lock, when its holder began to wait for it. `None` on Redis.
    pub since: Option<WallTime>,
    /// The other program that holds the exclusive lock, if the value of the key is not one that
    /// this library sets. `None` on ZooKeeper.
    pub other_program: Option<OtherProgram>,
}

impl Holder {
    /// The owner's [label](crate::LockRequest::owner), if there is one: the bytes that follow the
    /// token in the key's value. `None` if [another program](Self::other_program) has set that.
    #[must_use]
    pub fn owner(&self) -> Option<Name<'_>> {
        self.owner.as_ref().map(Label::name)
    }
}

/// The bytes of an owner's label.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Label(pub(crate) Vec<u8>);

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
    /// The holder of the exclusive lock on this node, if there is one, or why that is not known.
    pub holder: Result<Option<Holder>, NodeError>,
    /// Who has a share of the lock on this node, as a [reader](crate::LockRequest::shared) or with
    /// a [permit](crate::LockRequest::one_of): a hundred at most, those that end first. If there
    /// are any, [`holder`](Self::holder) is `Ok(None)`.
    pub shares: Vec<Holder>,
    /// Whether it reserves the lock for a waiter in its queue. Then it has no holder.
    pub is_reserved: bool,
    /// Why the data that it has under the lock's key is not a lock, if it has such data. Then it
    /// has no holder.
    pub not_a_lock: Option<NotALock>,
    /// For how long its grants do not count, because it was started recently: see
    /// [`restart_guard`](crate::Builder::restart_guard). `None` if they count, or it did not
    /// answer.
    pub quarantine: Option<Duration>,
    /// The first digits of an earlier reign's name, if it is a replicated group of which one is
    /// known: see [`NodeReport`].
    pub former_reign: Option<String>,
    /// Whether it has the value that a majority has. If a majority has the lock shared: whether it
    /// is shared on this node too, whoever has the [shares](Self::shares) there.
    pub agrees: bool,
}

impl Inspection {
    /// Is the lock held exclusively by the same grant as in this earlier inspection? An extension
    /// leaves a grant the same; a lock that was released meanwhile and acquired again, by whomever,
    /// has another.
    ///
    /// Redis nodes do not know since when a lock is held. Who looks again and again, as a monitor
    /// does, finds by this for how long at least.
    #[must_use]
    pub fn is_same_grant(&self, earlier: &Self) -> bool {
        let seen = &self.seen;
        let before = &earlier.seen;
        seen.held.is_some() && (&seen.key, &seen.held) == (&before.key, &before.held)
    }

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
        for snapshot in snapshots.iter().flatten() {
            let kind = NotALock::of(snapshot);
            let may_be_held = matches!(kind, None | Some(NotALock::NoTtl));
            if let Some(value) = &snapshot.value {
                if may_be_held && !is_reserved(snapshot) {
                    values.entry(value).or_default().push(snapshot);
                }
            }
        }
        let most = values.iter().find(|(value, holders)| {
            // A lock whose key has lost its ttl on a minority is one anyway.
            let is_lock = **value == SHARED || remaining_of_majority(holders, needed).is_some();
            is_lock && holders.len() >= needed
        });
        let answered = snapshots.iter().flatten();
        let free = answered
            .clone()
            .filter(|snapshot| snapshot.value.is_none())
            .count();
        let reserved = answered
            .clone()
            .filter(|snapshot| is_reserved(snapshot))
            .count();
        let others: Vec<NotALock> = answered.filter_map(NotALock::of).collect();
        let left = snapshots.iter().filter_map(|snapshot| match snapshot {
            Some(snapshot) => snapshot.quarantine,
            None => Some(Duration::MAX), // It may be down for ever.
        });
        let quarantine = until_quorum(snapshots.len(), left);
        // Those that have no key may have forgotten a lock that is held.
        let is_doubtful = quarantine.is_some() && !values.is_empty();
        let state = match most {
            Some((value, _)) if *value == SHARED => shares::state(snapshots, needed),
            Some((value, holders)) => {
                LockState::Held(exclusive(value, remaining_of_majority(holders, needed)))
            }
            None if free >= needed && !is_doubtful => LockState::Free,
            None if others.len() > snapshots.len() - needed => LockState::NotALock(others[0]),
            None if free + reserved >= needed && !is_doubtful => LockState::Reserved,
            None => LockState::Undecided,
        };
        let value = most.map(|(value, _)| value.to_vec());
        let held = value
            .clone()
            .filter(|_| matches!(state, LockState::Held(_)));
        let seen = Seen::of(key, snapshots, &reports, held);
        let views = reports.into_iter().zip(snapshots);
        let nodes = views.map(|(report, snapshot)| view(report, snapshot.as_ref(), &value));
        let waiters = waiters_of(snapshots);
        Ok(Self {
            nodes: nodes.collect(),
            quarantine,
            holder_count: shares::count(snapshots, &state),
            waiter_count: count_waiters(snapshots).max(waiters.len()),
            state,
            waiters,
            own_threads: OwnThreads::default(),
            seen,
        })
    }
}

fn view(report: NodeReport, snapshot: Option<&KeySnapshot>, value: &Option<Vec<u8>>) -> NodeView {
    let holder = match (snapshot, report.answer) {
        (Some(snapshot), _) => Ok(holder(snapshot)),
        (None, NodeAnswer::Failed(error)) => Err(error),
        (None, _) => Err(NodeError::TimedOut(crate::node::Phase::Answering)),
    };
    let agrees = value.is_some() && snapshot.is_some_and(|snapshot| snapshot.value == *value);
    // What agrees with a lock is one, even without a ttl.
    let not_a_lock = snapshot.and_then(NotALock::of).filter(|_| !agrees);
    NodeView {
        url: report.url,
        holder: holder.map(|holder| holder.filter(|_| not_a_lock.is_none())),
        shares: snapshot.map(shares::on_node).unwrap_or_default(),
        is_reserved: snapshot.is_some_and(is_reserved),
        not_a_lock,
        quarantine: snapshot.and_then(|snapshot| snapshot.quarantine),
        former_reign: report.former_reign,
        agrees,
    }
}

fn holder(snapshot: &KeySnapshot) -> Option<Holder> {
    let is_single = !is_reserved(snapshot) && !shares::is_shared(snapshot);
    let value = snapshot.value.as_ref().filter(|_| is_single)?;
    Some(exclusive(value, remaining(snapshot)))
}

fn exclusive(value: &[u8], remaining: Option<Duration>) -> Holder {
    let other_program = OtherProgram::of(value);
    let owner = label(value).filter(|_| other_program.is_none());
    Holder {
        owner,
        remaining,
        slot: None,
        since: None,
        other_program,
    }
}

fn label(value: &[u8]) -> Option<Label> {
    value
        .get(Token::LEN..)
        .filter(|label| !label.is_empty())
        .map(|label| Label(label.to_vec()))
}

fn remaining(snapshot: &KeySnapshot) -> Option<Duration> {
    lock_left(snapshot, snapshot.left)
}

/// How long a lock lasts whose key, or whose share, is kept for so many milliseconds. `None` for
/// one without a ttl.
fn lock_left(snapshot: &KeySnapshot, key_left: i64) -> Option<Duration> {
    let kept = Duration::from_millis(u64::try_from(key_left).ok()?);
    // A key of another program lives no longer than its lock.
    let value = snapshot.value.as_deref().unwrap_or_default();
    let is_other = !shares::is_shared(snapshot) && OtherProgram::of(value).is_some();
    let skew = if is_other {
        Duration::ZERO
    } else {
        snapshot.skew
    };
    Some(kept.saturating_sub(skew))
}

/// How long until fewer than `needed` of these keys are left.
fn remaining_of_majority(holders: &[&KeySnapshot], needed: usize) -> Option<Duration> {
    // A key without a ttl outlives all others.
    let mut left: Vec<Duration> = holders
        .iter()
        .map(|holder| remaining(holder).unwrap_or(Duration::MAX))
        .collect();
    left.sort_unstable_by(|one, other| other.cmp(one));
    left.get(needed - 1)
        .copied()
        .filter(|left| *left < Duration::MAX)
}

/// Whether a lock is free or held, as a majority of the nodes reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// A majority has no key for it: an attempt would have been granted, but for a
    /// [quarantine](Inspection::quarantine).
    Free,
    /// A majority holds the same value.
    Held(Holder),
    /// A majority has it shared, by [readers](crate::LockRequest::shared) or
    /// [permits](crate::LockRequest::one_of): those that a majority has, readers first and then
    /// permits by their slots. Each node reports a hundred holders at most, those that end first.
    Shared(Vec<Holder>),
    /// No client holds it, and nodes reserve it for a waiter in their queue: a majority has a
    /// reservation or no key, and no majority is without a key. As long as the first waiter is
    /// alive, it acquires the lock within about a round, or after a
    /// [quarantine](Inspection::quarantine); other attempts are refused.
    Reserved,
    /// Too many nodes have data under the lock's key that is not a lock: no majority can grant it.
    /// It is other data of this name, and a [key prefix](crate::Builder::key_prefix) keeps the two
    /// apart. [`NodeView::not_a_lock`](NodeView::not_a_lock) tells which nodes have it.
    NotALock(NotALock),
    /// Neither: it is just being acquired or released, or keys of a failed attempt have yet to be
    /// removed or to expire. In a [quarantine](Inspection::quarantine), also if only a
    /// minority has a lock: the others may have forgotten it.
    Undecided,
}

impl LockState {
    /// Is the lock held so that nobody else can have it, or such a share of it, at the same time?
    pub(crate) fn keeps_out(&self, share: Option<Share>) -> bool {
        let Self::Shared(holders) = self else {
            return matches!(self, Self::Held(_));
        };
        let are_readers = holders.iter().any(|holder| holder.slot.is_none());
        match share.map(Share::permits) {
            None => true,
            Some(0) => !are_readers,
            Some(permits) => are_readers || holders.len() >= permits as usize,
        }
    }
}

/// The values that a release by force removes: those that were seen, and no others.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) key: Arc<[u8]>,
    /// The values that are locks, each once. On ZooKeeper, the paths of the holders' znodes.
    pub(crate) locks: Arc<[Vec<u8>]>,
    /// The nodes whose value is not a lock, and why.
    pub(crate) others: Vec<(Arc<str>, NotALock)>,
    /// The value of the exclusive lock that a majority has. On ZooKeeper, the path of its znode.
    pub(crate) held: Option<Vec<u8>>,
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
    fn of(
        key: Arc<[u8]>,
        snapshots: &[Option<KeySnapshot>],
        reports: &[NodeReport],
        held: Option<Vec<u8>>,
    ) -> Self {
        let mut locks = BTreeSet::new();
        let mut others = Vec::new();
        for (snapshot, report) in snapshots.iter().zip(reports) {
            match snapshot {
                Some(snapshot) if is_reserved(snapshot) => {}
                Some(snapshot) if shares::is_shared(snapshot) => {
                    locks.extend(shares::members(snapshot));
                }
                Some(snapshot) => match NotALock::of(snapshot) {
                    Some(reason) => others.push((Arc::clone(&report.url), reason)),
                    None => locks.extend(snapshot.value.clone()),
                },
                None => {}
            }
        }
        Self {
            key,
            locks: locks.into_iter().collect(),
            others,
            held,
        }
    }
}

#[cfg(test)]
mod tests;
