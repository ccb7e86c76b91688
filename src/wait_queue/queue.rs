//! The wait queue itself, and when each waiter looks at it. The simulator compiles this file too:
//! its threads do not sleep.

use super::handoff_limit::HandoffLimit;
use super::taker::{Caller, Taker};
use super::waiting_thread::{Promotion, WaitingCaller, WaitingThread};
use crate::cancel_token::{ByToken, CancelToken};
use crate::clock::{self, Time};
use crate::engine::{HeldLock, Wait};
use crate::owner_process::OwnerProcess;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The wait queues, and who waits in them.
#[derive(Default)]
pub(crate) struct Queues {
    pub(super) by_key: HashMap<Arc<[u8]>, WaitQueue>,
    /// How many threads have ever waited.
    joined: usize,
    /// Who waits with a token of its own.
    pub(super) cancellable: ByToken<Arc<WaitingThread>>,
}

/// All wait queues of a client.
pub(crate) struct WaitQueues {
    queues: Mutex<Queues>,
    limit: HandoffLimit,
    /// The token that all waits have.
    pub(super) token: CancelToken,
    owner_process: Arc<OwnerProcess>,
}

#[derive(Default)]
pub(crate) struct WaitQueue {
    pub(super) head: Option<HeadEntry>,
    /// By their numbers: in the order in which they came.
    pub(super) waiters: BTreeMap<usize, Arc<WaitingThread>>,
    /// How many handoffs there were since the nodes last granted the lock, and when that was.
    handoffs: u32,
    pub(super) granted_at: Time,
}

/// How many heads there have been. No two have the same number, not even in two queues of one key,
/// of which the first was removed when it was empty.
static HEADS: AtomicUsize = AtomicUsize::new(0);

pub(super) struct HeadEntry {
    number: usize,
    pub(super) since: Time,
    /// Since when it had waited in the queue before, if it had.
    pub(super) waited_since: Option<Time>,
    /// When its key will have expired. `None` as long as it holds no lock.
    pub(super) key_expiry: Option<Time>,
    /// Until when it counts that another client holds the lock, if the nodes' last answers said so.
    held_elsewhere_until: Option<Time>,
    /// The thread that asks for the lock, or took it.
    pub(super) taker: Taker,
}

impl WaitQueues {
    pub(crate) fn new(
        limit: HandoffLimit,
        token: CancelToken,
        owner_process: Arc<OwnerProcess>,
    ) -> Self {
        Self {
            queues: Mutex::default(),
            limit,
            token,
            owner_process,
        }
    }

    /// Waits in the queue until the caller is its head. Asking the nodes takes `round` at most.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: &Arc<[u8]>,
        wait: Wait,
        round: Duration,
        caller: Caller<'_>,
    ) -> Joined {
        let mut queues = self.lock();
        let mut place = match self.enter(&mut queues, key, wait, round, caller) {
            ControlFlow::Continue(place) => place,
            ControlFlow::Break(joined) => return joined,
        };
        loop {
            match self.look(&mut queues, &mut place) {
                ControlFlow::Continue(until) => queues = place.waiter.sleep(queues, until),
                ControlFlow::Break(joined) => return joined,
            }
        }
    }

    /// Enters the queue, unless the caller is its head or does not wait.
    #[inline(always)]
    pub(crate) fn enter(
        self: &Arc<Self>,
        queues: &mut Queues,
        key: &Arc<[u8]>,
        wait: Wait,
        round: Duration,
        caller: Caller<'_>,
    ) -> ControlFlow<Joined, WaitingCaller> {
        let queue = queues.by_key.entry(Arc::clone(key)).or_default();
        if queue.is_empty() {
            let number = queue.start_head(caller.thread, None);
            return ControlFlow::Break(Joined::Head(self.head(key, number, false), None));
        }
        let deadline = wait.deadline();
        let now = clock::now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return ControlFlow::Break(Joined::NotQueued);
        }
        // A call without a thread does not keep this one from giving the lock up.
        if caller.started.is_none() && queue.is_bound_to_this_thread() {
            return ControlFlow::Break(Joined::HeldByThisThread);
        }
        queues.joined += 1;
        let waiter = Arc::new(WaitingThread::new(queues.joined, caller, now));
        queue.waiters.insert(waiter.number, Arc::clone(&waiter));
        if let Some(own) = &waiter.own {
            queues
                .cancellable
                .insert(own, waiter.number, Arc::clone(&waiter));
        }
        // A caller that leaves the queue to ask the nodes needs time for that: a round, or a
        // quarter of a short wait.
        let latest = deadline.map(|deadline| deadline.before(round.min(deadline.since(now) / 4)));
        ControlFlow::Continue(WaitingCaller {
            key: Arc::clone(key),
            waiter,
            deadline,
            latest,
            round,
            was_held: false,
        })
    }

    /// What has become of a waiter. If nothing, it looks again when it is woken, or at this time.
    pub(crate) fn look(
        self: &Arc<Self>,
        queues: &mut Queues,
        place: &mut WaitingCaller,
    ) -> ControlFlow<Joined, Option<Time>> {
        let found = self.look_into_queue(queues, place);
        let waiter = &place.waiter;
        if let Some(own) = waiter.own.as_ref().filter(|_| found.is_break()) {
            queues.cancellable.remove(own, waiter.number);
        }
        found
    }

    fn look_into_queue(
        self: &Arc<Self>,
        queues: &mut Queues,
        place: &mut WaitingCaller,
    ) -> ControlFlow<Joined, Option<Time>> {
        let WaitingCaller {
            key,
            waiter,
            deadline,
            latest,
            round,
            was_held,
        } = place;
        if let Some(promotion) = waiter.take_promotion() {
            let head = self.head(key, promotion.number, promotion.is_after_limit);
            return ControlFlow::Break(Joined::Head(head, promotion.held));
        }
        let now = clock::now();
        let queue = queues.by_key.entry(Arc::clone(key)).or_default();
        let head = queue.head.as_ref();
        let expiry = head.and_then(|head| head.key_expiry);
        let elsewhere = head.and_then(|head| head.held_elsewhere_until);
        let is_held = expiry.is_some() || elsewhere.is_some_and(|until| until > now);
        if self.token.is_cancelled() || waiter.is_cancelled() {
            queue.remove(waiter);
            return ControlFlow::Break(Joined::Cancelled);
        }
        let is_first = queue.is_first(waiter);
        if is_first && expiry.is_some_and(|expiry| expiry <= now) {
            // The head has not come back, and its key has expired.
            queue.waiters.pop_first();
            let number = queue.start_head(waiter.thread, Some(waiter.since));
            return ControlFlow::Break(Joined::Head(self.head(key, number, false), None));
        }
        // While another thread holds the lock, there is nothing to ask the nodes. If the head has
        // been asking for a whole round, the nodes may be down, and this caller must be able to
        // report that. Before that, leaving would give up a place for nothing.
        let early = deadline.map(|deadline| deadline.before(*round));
        let asked = head.map(|head| head.since.after(*round));
        let leave_at = if is_held {
            *deadline
        } else {
            early.max(asked).min(*latest)
        };
        if leave_at.is_some_and(|leave_at| leave_at <= now) {
            queue.remove(waiter);
            // At the deadline it is too late to ask the nodes because the head was replaced.
            let was_held = *was_held && deadline.is_some_and(|end| end <= now);
            let left = if is_held || was_held {
                Joined::TimedOut
            } else {
                Joined::NotQueued
            };
            return ControlFlow::Break(left);
        }
        *was_held = is_held;
        let early = early.filter(|early| *early > now);
        let own_expiry = expiry.filter(|_| is_first);
        ControlFlow::Continue([leave_at, early, own_expiry].into_iter().flatten().min())
    }

    /// Wakes the waits that this token cancels. It is cancelled before this takes the mutex: a
    /// waiter asks for its tokens under that, so it sees it or is woken.
    pub(crate) fn wake_cancelled(&self, token: &CancelToken) {
        let queues = self.lock();
        if !token.is(&self.token) {
            return queues.cancellable.of(token).for_each(|it| it.wake());
        }
        for queue in queues.by_key.values() {
            queue.waiters.values().for_each(|waiter| waiter.wake());
        }
    }

    fn head(self: &Arc<Self>, key: &Arc<[u8]>, number: usize, is_after_limit: bool) -> QueueHead {
        let handle = HeadHandle {
            queues: Arc::clone(self),
            key: Arc::clone(key),
            number,
        };
        QueueHead {
            handle,
            is_after_limit,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitQueue {
    fn is_empty(&self) -> bool {
        self.head.is_none() && self.waiters.is_empty()
    }

    /// The number of a new head that asks the nodes.
    fn start_head(&mut self, thread: Option<ThreadId>, waited_since: Option<Time>) -> usize {
        self.handoffs = 0;
        self.next_head(thread, waited_since)
    }

    fn next_head(&mut self, thread: Option<ThreadId>, waited_since: Option<Time>) -> usize {
        let number = HEADS.fetch_add(1, Ordering::Relaxed);
        self.head = Some(HeadEntry {
            number,
            since: clock::now(),
            waited_since,
            key_expiry: None,
            held_elsewhere_until: None,
            taker: Taker {
                thread,
                is_bound: false,
            },
        });
        number
    }

    /// Is the lock held, and can no thread but this one give it up?
    pub(super) fn is_bound_to_this_thread(&self) -> bool {
        let this = Some(thread::current().id());
        self.holder()
            .is_some_and(|taker| taker.is_bound && taker.thread == this)
    }

    /// The thread that took the lock, if one of this client holds it.
    pub(super) fn holder(&self) -> Option<Taker> {
        let head = self.head.as_ref()?;
        head.key_expiry.filter(|expiry| *expiry > clock::now())?;
        Some(head.taker)
    }

    fn is_head(&self, number: usize) -> bool {
        self.head.as_ref().is_some_and(|head| head.number == number)
    }

    /// Has this process held the lock since the nodes were last asked for a new grant?
    fn was_granted(&self) -> bool {
        let head = self.head.as_ref();
        self.handoffs > 0 || head.is_some_and(|head| head.key_expiry.is_some())
    }

    /// Has this process kept the lock as often or as long as it may?
    fn is_limit_reached(&self, limit: HandoffLimit, now: Time) -> bool {
        self.handoffs >= limit.count || now.since(self.granted_at) >= limit.time
    }

    fn promote_next(&mut self, held: Option<HeldLock>, is_after_limit: bool) {
        match self.waiters.pop_first() {
            Some((_, next)) => {
                let number = match held {
                    Some(_) => self.next_head(next.thread, Some(next.since)),
                    None => self.start_head(next.thread, Some(next.since)),
                };
                next.promote(Promotion {
                    number,
                    held,
                    is_after_limit,
                });
            }
            None => self.head = None,
        }
    }

    fn is_first(&self, waiter: &WaitingThread) -> bool {
        let first = self.waiters.first_key_value();
        first.is_some_and(|(number, _)| *number == waiter.number)
    }

    /// Removes a waiter whose wait has ended.
    fn remove(&mut self, waiter: &WaitingThread) {
        let was_first = self.is_first(waiter);
        self.waiters.remove(&waiter.number);
        if was_first {
            self.wake_first();
        }
    }

    /// Has the first waiter look at the queue and the clock again.
    fn wake_first(&self) {
        if let Some((_, first)) = self.waiters.first_key_value() {
            first.wake();
        }
    }
}

pub(crate) enum Joined {
    /// The caller is the head, perhaps with a lock to take over.
    Head(QueueHead, Option<HeldLock>),
    /// The caller is not in the queue, and asks the nodes itself: it does not wait at all, or its
    /// deadline leaves just enough time for a round.
    NotQueued,
    /// The deadline has passed, and another thread holds the lock.
    TimedOut,
    /// The caller is not in the queue: this thread would wait for itself.
    HeldByThisThread,
    Cancelled,
}

// Reports about the head of a queue, for code that does not own its place.

/// Refers to one head of one queue. Once another head has replaced it, calls change nothing.
#[derive(Clone)]
pub(crate) struct HeadHandle {
    queues: Arc<WaitQueues>,
    key: Arc<[u8]>,
    number: usize,
}

impl HeadHandle {
    /// The lock is held, and its key will have expired at `expiry`.
    pub(crate) fn set_key_expiry(&self, expiry: Time) {
        self.with_queue(|queue| {
            let Some(head) = self.entry(queue) else {
                return;
            };
            if head.key_expiry.replace(expiry).is_none() && queue.handoffs == 0 {
                queue.granted_at = clock::now();
            }
            queue.wake_first();
        });
    }

    /// A majority of the nodes has answered that another client holds the lock, and that counts
    /// until then: waiters need not ask before they give up. `None` if it does not count any more.
    pub(crate) fn set_held_elsewhere(&self, until: Option<Time>) {
        self.with_queue(|queue| {
            if let Some(head) = self.entry(queue) {
                head.held_elsewhere_until = until;
            }
        });
    }

    /// Only this thread gives the lock up, and not before the work that it is about to do has
    /// ended: if that work waits for the lock, it waits for itself.
    pub(crate) fn bind_to_this_thread(&self) {
        self.with_queue(|queue| {
            if let Some(head) = self.entry(queue) {
                head.taker = Taker::bound_to_this_thread();
            }
        });
    }

    fn with_queue(&self, change: impl FnOnce(&mut WaitQueue)) {
        if let Some(queue) = self.queues.lock().by_key.get_mut(&self.key) {
            change(queue);
        }
    }

    fn entry<'a>(&self, queue: &'a mut WaitQueue) -> Option<&'a mut HeadEntry> {
        queue
            .head
            .as_mut()
            .filter(|head| head.number == self.number)
    }
}

impl fmt::Debug for HeadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadHandle")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

// The head of a wait queue: the only thread that asks the nodes, or that holds the lock.

/// The place at the head of a queue. Dropping it promotes the next waiter.
#[derive(Debug)]
pub(crate) struct QueueHead {
    handle: HeadHandle,
    is_after_limit: bool,
}

impl QueueHead {
    /// Was the handoff limit reached, so that other processes should get a chance first?
    pub(crate) fn is_after_limit(&self) -> bool {
        self.is_after_limit
    }

    /// The lock is held, and its key will have expired at `expiry`.
    pub(crate) fn set_key_expiry(&self, expiry: Time) {
        self.handle.set_key_expiry(expiry);
    }

    pub(crate) fn handle(&self) -> &HeadHandle {
        &self.handle
    }

    /// Hands the lock to the next waiter. Returns the lock, to be released on the nodes, if there
    /// is none, if the handoff limit is reached, or if this is not the head any more.
    #[expect(
        clippy::result_large_err,
        reason = "the lock is given back, and it is not an error"
    )]
    pub(crate) fn hand_off(&self, held: HeldLock) -> Result<(), HeldLock> {
        let HeadHandle {
            queues,
            key,
            number,
        } = &self.handle;
        let limit = queues.limit;
        let mut queues = queues.lock();
        let queue = queues.by_key.get_mut(key);
        let Some(queue) = queue.filter(|queue| queue.is_head(*number)) else {
            return Err(held);
        };
        let now = clock::now();
        // The nodes reserve the lock for that client when it is released.
        let is_over = queue.is_limit_reached(limit, now)
            || now >= held.valid_until
            || held.is_awaited && now.since(queue.granted_at) >= HandoffLimit::CONTENDED_TIME;
        if queue.waiters.is_empty() || is_over {
            return Err(held);
        }
        queue.handoffs += 1;
        queue.promote_next(Some(held), false);
        Ok(())
    }
}

impl Drop for QueueHead {
    fn drop(&mut self) {
        let head = &self.handle;
        if head.queues.owner_process.is_known_forked() {
            return; // A thread that does not exist in this forked child may hold the mutex.
        }
        let limit = head.queues.limit;
        let mut queues = head.queues.lock();
        let Entry::Occupied(mut entry) = queues.by_key.entry(Arc::clone(&head.key)) else {
            return;
        };
        let queue = entry.get_mut();
        if queue.is_head(head.number) {
            let is_after_limit = queue.was_granted() && queue.is_limit_reached(limit, clock::now());
            queue.promote_next(None, is_after_limit);
        }
        if queue.is_empty() {
            entry.remove();
        }
    }
}
