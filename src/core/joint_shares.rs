//! Shares that threads of one client have together: a hundred threads that read at the same time
//! cost one round and not a hundred.
//!
//! ```text
//!   enter ──▶ wanted ── publish ──▶ granted ── the last member leaves ──▶ released by it
//! ```
//!
//! The first thread that enters asks the nodes. Those that enter meanwhile wait in a
//! [queue](WaitQueues) of their own, and have the share with the first; those that enter later have
//! it at once. If the first gives up, the next one asks.
//!
//! What must stay true:
//!
//! * A thread is a member from when it enters until its guard has gone, also while it waits. So the
//!   share is not released before those that it was taken for have had it, and whoever finds that
//!   no member is left is the only one that may release it. Nobody enters after that.
//! * Newcomers enter only for [`WINDOW`] after the share was asked for. A reader overtakes a writer
//!   in the nodes' queue by no more than that: afterwards a thread asks the nodes for a share of
//!   its own, and that stands behind the writer.
//! * A member has the share's validity, and no validity of its own.

use super::Core;
use crate::clock::{self, Time};
use crate::engine::{HeldLock, NodeSet, Ttl};
use crate::wait_queue::WaitQueues;
use crate::watchdog::{GuardedLock, ReservedCapacity};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For how long after it was asked for a share takes in more threads. As for
/// [handoffs](crate::wait_queue::HandoffLimit), which let others wait for as long.
const WINDOW: Duration = Duration::from_millis(10);

/// How much of its first validity may have passed when a newcomer enters, as a divisor: what it
/// gets is nearly what a round of its own would have given.
const PASSED_MAX: u32 = 10;

/// The number of the member that took the share from the nodes: its guard is older than its part.
pub(crate) const PUBLISHER: usize = 0;

/// The shares of a client that threads may have together.
pub(crate) struct JointShares {
    /// The latest of each kind. Two requests for the same lock with the same settings are of one.
    latest: Mutex<HashMap<Arc<[u8]>, Arc<JointShare>>>,
    /// Where threads wait for the one that asks the nodes.
    pub(crate) queues: Arc<WaitQueues>,
}

/// One share.
struct JointShare {
    kind: Arc<[u8]>,
    /// Its name in the wait queues, which no other share has: its number, and its kind.
    name: Arc<[u8]>,
    /// When its first member entered.
    began: Time,
    state: Mutex<State>,
}

struct State {
    /// How many threads have it, or wait for it.
    members: usize,
    /// How many have entered so far.
    entered: usize,
    granted: Option<Granted>,
    /// Until when the nodes keep it, even if all members leave earlier.
    stays_until: Time,
}

/// A share that the nodes have granted.
#[derive(Clone)]
pub(crate) struct Granted {
    pub(crate) held: Arc<GuardedLock>,
    /// The watchdog's capacity that is reserved for it, if it is extended automatically.
    pub(crate) capacity: Option<Arc<ReservedCapacity>>,
}

/// A thread's part in a share. Dropping it leaves the share.
pub(crate) struct ShareMember {
    core: Arc<Core>,
    share: Arc<JointShare>,
    number: usize,
    has_left: bool,
}

impl JointShares {
    pub(super) fn new(queues: Arc<WaitQueues>) -> Self {
        Self {
            latest: Mutex::default(),
            queues,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<[u8]>, Arc<JointShare>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a thread enter the latest share of a kind if that takes in more, and a new one if not.
    fn enter(&self, kind: &Arc<[u8]>, now: Time, least: Duration) -> (Arc<JointShare>, usize) {
        let mut latest = self.lock();
        let open = latest
            .get(kind)
            .and_then(|share| Some((share, share.let_in(now, least)?)));
        if let Some((share, number)) = open {
            return (Arc::clone(share), number);
        }
        let share = Arc::new(JointShare::new(kind, now));
        latest.insert(Arc::clone(kind), Arc::clone(&share));
        (share, PUBLISHER + 1)
    }

    /// Since when threads wait for a share of the lock with this key. The kind of each begins with
    /// its key.
    pub(super) fn waiting_since(&self, key: &[u8]) -> Vec<Time> {
        self.queues.waiting_since(|name| {
            let kind = name.get(size_of::<usize>()..).unwrap_or_default();
            kind.strip_prefix(&key.len().to_le_bytes())
                .is_some_and(|rest| rest.starts_with(key))
        })
    }

    /// Forgets a share that has no members.
    fn forget(&self, share: &Arc<JointShare>) {
        let mut latest = self.lock();
        if latest
            .get(&share.kind)
            .is_some_and(|latest| Arc::ptr_eq(latest, share))
        {
            latest.remove(&share.kind);
        }
    }
}

impl JointShare {
    /// A share that its first member wants.
    fn new(kind: &Arc<[u8]>, now: Time) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let name = number.iter().chain(&**kind).copied().collect();
        let state = State {
            members: 1,
            entered: 1,
            granted: None,
            stays_until: Time::ZERO,
        };
        Self {
            kind: Arc::clone(kind),
            name,
            began: now,
            state: Mutex::new(state),
        }
    }

    /// One more member, if newcomers may still enter. Returns its number.
    fn let_in(&self, now: Time, least: Duration) -> Option<usize> {
        let mut state = self.lock();
        let since = match &state.granted {
            None => Some(self.began),
            Some(granted) => granted.open_since(now, least),
        };
        if state.members == 0 || since.is_none_or(|since| now >= since.after(WINDOW)) {
            return None;
        }
        state.members += 1;
        state.entered += 1;
        Some(PUBLISHER + state.entered)
    }

    /// As [`ShareMember::leave`].
    fn leave(&self, stays_until: Time) -> Option<Time> {
        let mut state = self.lock();
        state.members -= 1;
        state.stays_until = state.stays_until.max(stays_until);
        (state.members == 0).then_some(state.stays_until)
    }

    fn granted(&self) -> Option<Granted> {
        self.lock().granted.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Granted {
    /// When it was asked for, if most of its validity is left: then a thread that comes later gets
    /// nearly what a round of its own would give.
    fn open_since(&self, now: Time, least: Duration) -> Option<Time> {
        let HeldLock {
            since, valid_until, ..
        } = *self.held.granted();
        let is_fresh = now.since(since) <= valid_until.since(since) / PASSED_MAX;
        (is_fresh && self.has_left(now, least)).then_some(since)
    }

    /// Is it held, and is `least` of its validity left?
    fn has_left(&self, now: Time, least: Duration) -> bool {
        let left = self
            .held
            .check(now)
            .map_or(Duration::ZERO, |until| until.since(now));
        left >= least && !left.is_zero()
    }
}

impl ShareMember {
    /// Enters a share of this kind for the calling thread, which needs `least` of its validity.
    pub(crate) fn enter(core: &Arc<Core>, kind: &Arc<[u8]>, now: Time, least: Duration) -> Self {
        let (share, number) = core.joint_shares.enter(kind, now, least);
        Self {
            core: Arc::clone(core),
            share,
            number,
            has_left: false,
        }
    }

    /// The name of the share in the wait queues.
    pub(crate) fn queue_name(&self) -> &Arc<[u8]> {
        &self.share.name
    }

    /// Which of the share's members it is. No two have the same number.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Have the nodes granted the share?
    pub(crate) fn is_granted(&self) -> bool {
        self.share.granted().is_some()
    }

    /// The share, if it is held and `least` of its validity is left. A thread that has waited for
    /// it needs no more: it would have waited as long for a round of its own.
    pub(crate) fn usable(&self, now: Time, least: Duration) -> Option<Granted> {
        self.share
            .granted()
            .filter(|granted| granted.has_left(now, least))
    }

    /// All members have the share from now on. Only the member that asked the nodes calls this.
    pub(crate) fn publish(&mut self, granted: Granted) {
        self.number = PUBLISHER;
        self.share.lock().granted = Some(granted);
    }

    /// Leaves the share, which the nodes are to keep until this time. If no other is left, returns
    /// until when they are to keep it, and the caller must release it.
    pub(crate) fn leave(&mut self, stays_until: Time) -> Option<Time> {
        self.has_left = true;
        let kept_until = self.share.leave(stays_until)?;
        self.core.joint_shares.forget(&self.share);
        Some(kept_until)
    }
}

impl Drop for ShareMember {
    fn drop(&mut self) {
        if self.has_left || self.core.is_forked() {
            return;
        }
        let Some(stays_until) = self.leave(Time::ZERO) else {
            return;
        };
        let Some(Granted { held, capacity }) = self.share.granted() else {
            return;
        };
        capacity.iter().for_each(|capacity| capacity.free());
        let now = clock::now();
        let rules = &self.core.rules;
        let keep_for = Ttl::from_duration(stays_until.since(now));
        let held = held.close(now, NodeSet::all(rules.nodes));
        self.core.backend.give_up(&held, keep_for);
    }
}

#[cfg(test)]
mod tests;
