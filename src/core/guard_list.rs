//! The guards of this client whose lock has no wait queue of its own: those of shares, of sets, and
//! of locks that were taken without waiting in this process. All others are the heads of their
//! queues, which know the threads that took them.

use super::Core;
use crate::clock::{self, Time};
use crate::engine::Share;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::Taker;
use crate::watchdog::GuardedLock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// By key. A guard of a set is there under each of its keys.
type Guards = HashMap<Arc<[u8]>, Vec<Entry>>;

#[derive(Default)]
pub(crate) struct GuardList {
    guards: Mutex<Guards>,
    /// How many there have been.
    entered: AtomicUsize,
}

struct Entry {
    number: usize,
    taker: Taker,
    held: Arc<GuardedLock>,
}

/// A guard's place in the list. Dropping it takes the guard off the list.
pub(crate) struct ListedGuard {
    list: Arc<GuardList>,
    owner_process: Arc<OwnerProcess>,
    keys: Vec<Arc<[u8]>>,
    number: usize,
}

impl GuardList {
    /// The threads that have a lock of this key, which `thread` cannot have such a share of at the
    /// same time. Of permits one has to be given back, and none if there are more: so one of these
    /// threads counts, and it is another one if it can be.
    pub(super) fn holders(
        &self,
        key: &[u8],
        share: Option<Share>,
        thread: Option<ThreadId>,
    ) -> Vec<Taker> {
        if !self.is_used() {
            return Vec::new();
        }
        let now = clock::now();
        let guards = self.lock();
        let of_key = guards.get(key).into_iter().flatten();
        let held = of_key.filter(|entry| entry.is_held(now));
        let Some(Share::Permit { of, .. }) = share else {
            let conflicting = held.filter(|entry| share.is_none() || entry.share() != share);
            return conflicting.map(|entry| entry.taker).collect();
        };
        let (permits, others): (Vec<_>, Vec<_>) = held.partition(|entry| entry.is_permit());
        let mut takers: Vec<Taker> = others.iter().map(|entry| entry.taker).collect();
        let in_use = permits.iter().filter(|entry| entry.is_one_of(of));
        if in_use.clone().count() >= of as usize {
            let in_use = in_use.map(|entry| entry.taker);
            takers.extend(in_use.min_by_key(|taker| (taker.thread == thread, taker.is_bound)));
        }
        takers
    }

    /// Has there been any guard? Most programs have none, and it costs them nothing.
    pub(crate) fn is_used(&self) -> bool {
        self.entered.load(Ordering::Relaxed) > 0
    }

    fn lock(&self) -> MutexGuard<'_, Guards> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is_held(&self, now: Time) -> bool {
        self.held
            .check(now)
            .is_ok_and(|valid_until| now < valid_until)
    }

    fn share(&self) -> Option<Share> {
        self.held.granted().attributes.as_ref()?.share
    }

    fn is_permit(&self) -> bool {
        matches!(self.share(), Some(Share::Permit { .. }))
    }

    /// Is it a permit that keeps others from one of the first `count`? One without a number may.
    fn is_one_of(&self, count: u32) -> bool {
        let number = self.share().and_then(Share::permit);
        number.is_none_or(|number| number < count)
    }
}

impl ListedGuard {
    pub(crate) fn new(core: &Core, held: &Arc<GuardedLock>, taker: Taker) -> Self {
        let list = Arc::clone(&core.guard_list);
        let granted = held.granted();
        let more = granted
            .attributes
            .iter()
            .flat_map(|attributes| &attributes.more_keys);
        let keys: Vec<Arc<[u8]>> = std::iter::once(&granted.key).chain(more).cloned().collect();
        let number = list.entered.fetch_add(1, Ordering::Relaxed);
        let mut guards = list.lock();
        for key in &keys {
            let entry = Entry {
                number,
                taker,
                held: Arc::clone(held),
            };
            guards.entry(Arc::clone(key)).or_default().push(entry);
        }
        drop(guards);
        Self {
            owner_process: Arc::clone(&core.owner_process),
            list,
            keys,
            number,
        }
    }

    /// Only this thread gives it up, and not before the work that it is about to do has ended.
    pub(crate) fn bind_to_this_thread(&self) {
        let mut guards = self.list.lock();
        for key in &self.keys {
            let entries = guards.get_mut(key).into_iter().flatten();
            let own = entries.filter(|entry| entry.number == self.number);
            own.for_each(|entry| entry.taker = Taker::bound_to_this_thread());
        }
    }
}

impl Drop for ListedGuard {
    fn drop(&mut self) {
        if self.owner_process.is_known_forked() {
            return; // A thread that does not exist in this forked child may hold the mutex.
        }
        let mut guards = self.list.lock();
        for key in &self.keys {
            let Some(entries) = guards.get_mut(key) else {
                continue;
            };
            entries.retain(|entry| entry.number != self.number);
            if entries.is_empty() {
                guards.remove(key);
            }
        }
    }
}
