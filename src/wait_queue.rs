//! Who waits for a lock inside this process: first come, first served.
//!
//! Threads of one client that want the same lock stand in line, and only its head asks the nodes;
//! the others would only get in its way. Whoever has done with the lock gives it to the next in
//! line together with the lease, and the next one has the nodes exchange the tokens in one round
//! ([`Acquire::succeeding`](crate::engine::Acquire::succeeding)).
//!
//! ```text
//!           nobody else                     held                      passed on
//!   join ───────────────▶ at the head, ───────────▶ at the head, ─────────────────▶ next in line
//!     │                   asking the nodes          holding the lock
//!     └── others ──▶ in line ──▶ called, with or without the lease ──▶ at the head
//! ```
//!
//! What must stay true: a line with somebody in it has a head, and one that is called, or the first
//! in line watches the clock, so that a head which never comes back (a guard leaked, a thread that
//! hangs) keeps nobody beyond the time at which its key has expired. Tokens are still what makes
//! the lock safe; the line only saves asking.

mod head_handle;
mod waiter;

use crate::clock::{self, Time};
use crate::engine::Lease;
use crate::owner_process::OwnerProcess;
pub(crate) use head_handle::HeadHandle;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;
use waiter::{Promotion, Waiter};

/// How long a lock may go from thread to thread before other processes get their chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandoffLimit {
    pub(crate) count: u32,
    pub(crate) time: Duration,
}

/// All lines of a client, by key.
pub(crate) struct WaitQueues {
    lines: Mutex<HashMap<Arc<[u8]>, WaitQueue>>,
    limit: HandoffLimit,
    owner_process: Arc<OwnerProcess>,
}

#[derive(Default)]
struct WaitQueue {
    head: Option<HeadEntry>,
    waiting: VecDeque<Arc<Waiter>>,
    /// Handoffs since the lock was last taken from the nodes, and when that was.
    handed_off: u32,
    taken_at: Time,
    /// How many heads there have been.
    heads: u64,
}

struct HeadEntry {
    number: u64,
    /// When it came there.
    since: Time,
    /// When its key will have expired. `None` as long as it holds no lock.
    until: Option<Time>,
    /// The thread without which it cannot give the lock up.
    bound_to: Option<ThreadId>,
}

/// The place at the head of a line. Dropping it calls the next.
#[derive(Debug)]
pub(crate) struct QueueHead {
    handle: HeadHandle,
    is_after_limit: bool,
}

/// How joining a line ended.
pub(crate) enum Joined {
    /// At its head, perhaps with a lock to take over.
    Head(QueueHead, Option<Lease>),
    /// Not in it: whoever does not wait has no need of a line, and whose time is nearly over must
    /// see for itself what the nodes say.
    NotQueued,
    /// Time is over, and another thread holds the lock.
    TimedOut,
    /// Not in it: this thread would wait for itself.
    HeldByThisThread,
}

impl WaitQueues {
    pub(crate) fn new(limit: HandoffLimit, owner_process: Arc<OwnerProcess>) -> Self {
        Self { lines: Mutex::new(HashMap::new()), limit, owner_process }
    }

    /// Stands in line until its head is reached. `deadline` is `None` for a caller who waits for
    /// ever, and passed for one who does not wait. `round` is how long it takes at most to ask the
    /// nodes.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: &Arc<[u8]>,
        deadline: Option<Time>,
        round: Duration,
    ) -> Joined {
        let mut lines = self.lock();
        let line = lines.entry(Arc::clone(key)).or_default();
        if line.head.is_none() && line.waiting.is_empty() {
            return Joined::Head(self.place(key, line.begin(), false), None);
        }
        if deadline.is_some_and(|deadline| deadline <= clock::now()) {
            return Joined::NotQueued;
        }
        if line.is_bound_to_this_thread() {
            return Joined::HeldByThisThread;
        }
        // Whoever leaves the line to ask the nodes needs time for that: a round, or of a short wait
        // a quarter.
        let wait = deadline.map_or(Duration::MAX, |deadline| deadline.since(clock::now()));
        let waiter = Arc::new(Waiter::default());
        line.waiting.push_back(Arc::clone(&waiter));
        let latest = deadline.map(|deadline| deadline.before(round.min(wait / 4)));
        self.wait(lines, key, &waiter, (deadline, latest), round)
    }

    fn wait(
        self: &Arc<Self>,
        mut lines: MutexGuard<'_, HashMap<Arc<[u8]>, WaitQueue>>,
        key: &Arc<[u8]>,
        waiter: &Arc<Waiter>,
        (deadline, latest): (Option<Time>, Option<Time>),
        round: Duration,
    ) -> Joined {
        loop {
            if let Some(call) = waiter.take_call() {
                let place = self.place(key, call.number, call.is_after_limit);
                return Joined::Head(place, call.lease);
            }
            let now = clock::now();
            let line = lines.entry(Arc::clone(key)).or_default();
            let until = line.head.as_ref().and_then(|head| head.until);
            let is_first = line.waiting.front().is_some_and(|first| Arc::ptr_eq(first, waiter));
            if is_first && until.is_some_and(|until| until <= now) {
                // The head has not come back, and its key has expired.
                line.waiting.pop_front();
                return Joined::Head(self.place(key, line.begin(), false), None);
            }
            // As long as another thread holds the lock, that is all there is to know. If it has
            // been asking for a whole round, the nodes may be down, and then this caller must be
            // able to say so. Before that, to leave would be to give up a place for nothing.
            let early = deadline.map(|deadline| deadline.before(round));
            let asked = line.head.as_ref().map(|head| head.since.after(round));
            let leave_at = match until {
                Some(_) => deadline,
                None => early.max(asked).min(latest),
            };
            if leave_at.is_some_and(|leave_at| leave_at <= now) {
                line.leave(waiter);
                return if until.is_some() { Joined::TimedOut } else { Joined::NotQueued };
            }
            let early = early.filter(|early| *early > now);
            let expiry = until.filter(|_| is_first);
            let wake_at = [leave_at, early, expiry].into_iter().flatten().min();
            lines = waiter.sleep(lines, wake_at.map(|time| time.since(now)));
        }
    }

    fn place(self: &Arc<Self>, key: &Arc<[u8]>, number: u64, is_after_limit: bool) -> QueueHead {
        let handle = HeadHandle { lines: Arc::clone(self), key: Arc::clone(key), number };
        QueueHead { handle, is_after_limit }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<[u8]>, WaitQueue>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitQueue {
    /// Somebody comes to the head who asks the nodes.
    fn begin(&mut self) -> u64 {
        self.handed_off = 0;
        self.advance()
    }

    fn advance(&mut self) -> u64 {
        self.heads += 1;
        self.head = Some(HeadEntry {
            number: self.heads,
            since: clock::now(),
            until: None,
            bound_to: None,
        });
        self.heads
    }

    /// Is the lock held, and to be given up by this thread and no other?
    fn is_bound_to_this_thread(&self) -> bool {
        self.head.as_ref().is_some_and(|head| {
            head.bound_to == Some(thread::current().id())
                && head.until.is_some_and(|until| until > clock::now())
        })
    }

    fn is_head(&self, number: u64) -> bool {
        self.head.as_ref().is_some_and(|head| head.number == number)
    }

    /// Has the lock been held since the nodes were last asked for it as if it were free?
    fn was_taken(&self) -> bool {
        self.handed_off > 0 || self.head.as_ref().is_some_and(|head| head.until.is_some())
    }

    /// Has it been in this process for as often or as long as it may?
    fn is_after(&self, limit: HandoffLimit, now: Time) -> bool {
        self.handed_off >= limit.count || now.since(self.taken_at) >= limit.time
    }

    /// Calls the next in line to its head.
    fn call(&mut self, lease: Option<Lease>, is_after_limit: bool) {
        match self.waiting.pop_front() {
            Some(next) => {
                let number = if lease.is_some() { self.advance() } else { self.begin() };
                next.call(Promotion { number, lease, is_after_limit });
            }
            None => self.head = None,
        }
    }

    /// Somebody has waited long enough.
    fn leave(&mut self, waiter: &Arc<Waiter>) {
        self.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
        self.alert();
    }

    /// Lets the first in line look at the clock anew.
    fn alert(&self) {
        if let Some(first) = self.waiting.front() {
            first.alert();
        }
    }
}

impl QueueHead {
    /// Have other processes had to wait for so long that they should get their chance first?
    pub(crate) fn is_after_limit(&self) -> bool {
        self.is_after_limit
    }

    /// The lock is held; `until` is when its key will have expired.
    pub(crate) fn set_key_expiry(&self, until: Time) {
        self.handle.set_key_expiry(until);
    }

    pub(crate) fn handle(&self) -> &HeadHandle {
        &self.handle
    }

    /// Gives the lock to the next in line. The lease comes back, to be released at the nodes, if
    /// there is nobody, or it is somebody else's turn.
    pub(crate) fn hand_off(&self, lease: Lease) -> Result<(), Lease> {
        let HeadHandle { lines, key, number } = &self.handle;
        let (limit, mut lines) = (lines.limit, lines.lock());
        let Some(line) = lines.get_mut(key).filter(|line| line.is_head(*number)) else {
            return Err(lease);
        };
        let now = clock::now();
        let is_over = line.is_after(limit, now) || now >= lease.valid_until;
        if line.waiting.is_empty() || is_over {
            return Err(lease);
        }
        line.handed_off += 1;
        line.call(Some(lease), false);
        Ok(())
    }
}

impl Drop for QueueHead {
    fn drop(&mut self) {
        let HeadHandle { lines, key, number } = &self.handle;
        if lines.owner_process.is_known_forked() {
            return; // A thread that is not in this forked child may have the lock.
        }
        let (limit, mut lines) = (lines.limit, lines.lock());
        let Some(line) = lines.get_mut(key) else { return };
        if line.is_head(*number) {
            let is_after_limit = line.was_taken() && line.is_after(limit, clock::now());
            line.call(None, is_after_limit);
        }
        if line.head.is_none() && line.waiting.is_empty() {
            lines.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
