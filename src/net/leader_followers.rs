//! The Leader/Followers pattern: which thread runs the event loop.
//!
//! All threads of a client share one event loop, which has the sockets of all nodes. One thread at
//! a time is the *leader* and runs the loop on behalf of all; the others are *followers*, which
//! wait. A thread that needs a reply becomes the leader if there is none. Otherwise it puts its
//! request into the inbox, wakes the leader if that sleeps, and waits as a follower. The leader
//! takes the requests out of the inbox, writes and reads for everybody, and delivers each outcome
//! to its follower. When it has its own outcome, it *promotes* one of the remaining followers and
//! returns to its caller. It leaves to that one what is to be written, which then goes to each node
//! in one write with what other threads have asked for meanwhile.
//!
//! No thread besides the callers is needed, and an uncontended request is written and its replies
//! are read by the thread that makes it, without a switch to another thread.
//!
//! ```text
//!                 is there a leader?
//!   submit ──▶ no ───────────────────▶ LEADER: run the event loop until my outcome is there
//!                 │ yes                   ▲                          │
//!                 ▼                       │ promoted                 ▼
//!              inbox, wake the leader ──▶ FOLLOWER: wait    release the leader lock,
//!                                         │                 promote a follower, return
//!                                         ▼
//!                                      outcome delivered, return
//! ```
//!
//! Source: D. C. Schmidt, C. O'Ryan, M. Kircher, I. Pyarali, F. Buschmann, "Leader/Followers: A
//! Design Pattern for Efficient Multi-threaded Event Demultiplexing and Dispatching", in D. C.
//! Schmidt, M. Stal, H. Rohnert, F. Buschmann, *Pattern-Oriented Software Architecture, Volume 2*
//! (POSA2), Wiley, 2000. There, each thread of a pool processes the event that it has received and
//! promotes a follower first. Here, the leader processes the events of all requests and promotes a
//! follower when its own request is decided.
//!
//! Four invariants:
//!
//! - A request is sent before later requests of the same thread: a removal must not be overtaken by
//!   the next attempt of its thread. So a new leader empties the inbox before it opens a request of
//!   its own.
//! - No request stays in the inbox, and no follower waits, while there is no leader. So a leader
//!   looks at the inbox and at the followers *after* it has released the leader lock, and a thread
//!   tries to become the leader *after* it has put something into the inbox. At least one of the
//!   two sees the other.
//!
//! - A thread with several orders works between two waits, perhaps for long: it calls users' code.
//!   So a leader does not leave the event loop to one that works if another thread waits.
//!
//! - No output is left while there is no leader and no follower to promote. A leader flushes before
//!   it sleeps, and one that steps down flushes if it promotes nobody.
//!
//! With an I/O thread, that thread is the leader until the client is dropped,
//! and callers are always followers. The event loop cannot be taken away from an I/O thread that is
//! stopped, for example by a signal handler, and then no caller gets an outcome. So these followers
//! wait no longer than the time limit of their request, and return without an outcome after that.
//!
//! A panic of the event loop, which only a bug of this crate can cause, poisons it as a panic
//! poisons a mutex: the state of requests and replies may be wrong, so the loop is never used
//! again. Each thread that waits for it or calls it later panics as well, so no thread waits for
//! ever.

use super::follower::{Follower, Followers};
use super::sync::{
    AtomicBool, Inbox, LeaderLock, LeaderLockGuard, Mutex, MutexGuard, Ordering, PoisonError,
    fence, panicking,
};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// What the leader runs, an event loop that sends requests and delivers their outcomes: a trait, so
/// that a test can run a model instead of sockets.
pub(super) trait EventLoop {
    /// What a caller waits for.
    type Order;
    /// What is done without an outcome.
    type Message;
    type Outcome;

    /// The thread has just become the leader. The former one may have left output to it: bytes that
    /// have arrived since then are read before that is written.
    fn take_over(&mut self) {}

    /// Processes what happened while there was no leader, such as connections that were closed.
    fn catch_up(&mut self) {}

    /// Begins what this order asks for. Its outcome is delivered to `follower`.
    fn open(&mut self, order: Self::Order, follower: Arc<Follower<Self::Outcome>>);

    /// Processes a message, which has no outcome.
    fn post(&mut self, message: Self::Message);

    /// Writes all pending output and delivers the outcomes that this has decided. Returns whether
    /// there were any.
    fn flush(&mut self) -> bool;

    /// One turn of the loop: waits for an event, processes it and delivers outcomes. It does not
    /// wait if `may_sleep`, which is called immediately before, returns `false`.
    fn run_once(&mut self, may_sleep: impl FnOnce() -> bool);

    /// The event loop has panicked: only its drop follows, and that must not do any I/O.
    fn set_poisoned(&mut self);

    /// A follower whose order is not fulfilled yet.
    fn next_follower(&self) -> Option<&Arc<Follower<Self::Outcome>>>;
}

/// Wakes a leader that sleeps in [`EventLoop::run_once`].
pub(super) type Wake = Box<dyn Fn() + Send + Sync>;

/// A message to the leader.
pub(super) enum Job<E: EventLoop> {
    /// Fulfil this order and deliver its outcome to the follower.
    Open(E::Order, Arc<Follower<E::Outcome>>),
    /// Process this message, without an outcome.
    Post(E::Message),
    /// Wake the thread that waits there for its orders. It may be the leader.
    Nudge(Arc<Follower<E::Outcome>>),
    /// End the I/O thread.
    Close,
}

/// The event loop, and the threads that share it.
pub(super) struct LeaderFollowers<E: EventLoop> {
    /// Held by the leader.
    event_loop: LeaderLock<E>,
    pub(super) inbox: Inbox<Job<E>>,
    followers: Mutex<Followers<E::Outcome>>,
    wake: Wake,
    /// Is an I/O thread the leader?
    pub(super) has_io_thread: bool,
    is_closed: AtomicBool,
    /// Is the leader asleep, or about to sleep?
    pub(super) is_asleep: AtomicBool,
    pub(super) is_poisoned: AtomicBool,
}

impl<E: EventLoop> LeaderFollowers<E> {
    /// An event loop that the callers run themselves, or, with `has_io_thread`, one that a thread
    /// runs which calls [`run`](Self::run).
    pub(super) fn new(event_loop: E, wake: Wake, has_io_thread: bool) -> Self {
        Self {
            event_loop: LeaderLock::new(event_loop),
            inbox: Inbox::new(),
            followers: Mutex::new(Followers::new()),
            wake,
            has_io_thread,
            is_closed: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            is_poisoned: AtomicBool::new(false),
        }
    }

    /// Runs the event loop in the I/O thread until [`close`](Self::close) is called.
    pub(super) fn run(&self) {
        if let Some(leader) = self.try_become_leader() {
            self.lead(leader, &mut || {
                self.is_closed.load(Ordering::SeqCst).then_some(())
            });
        }
    }

    /// Ends [`run`](Self::run), after it has processed everything in the inbox.
    pub(super) fn close(&self) {
        self.send_to_leader(Job::Close);
    }

    /// Gives the leader an order and waits for its outcome. With an I/O thread, it waits for at
    /// most `limit`, and returns `None` after that.
    ///
    /// # Panics
    ///
    /// The event loop panicked, in this thread or in another.
    pub(super) fn submit(&self, order: E::Order, limit: Duration) -> Option<E::Outcome> {
        self.expect_not_poisoned();
        let follower = self.lock_followers().join();
        let outcome = match self.try_lead() {
            Some(mut leader) => {
                self.empty_inbox(&mut leader);
                leader.catch_up();
                leader.open(order, Arc::clone(&follower));
                Some(self.lead(leader, &mut || follower.take_outcome()))
            }
            None => {
                self.send_to_leader(Job::Open(order, Arc::clone(&follower)));
                self.follow(&follower, limit, &mut || follower.take_outcome())
            }
        };
        let mut followers = self.lock_followers();
        if outcome.is_some() {
            followers.reuse(follower);
        } else {
            followers.remove(&follower);
        }
        outcome
    }

    /// Leads, or waits as `follower`, until `done` returns a result. With an I/O thread, it returns
    /// `None` when nothing has been delivered for `limit`.
    ///
    /// # Panics
    ///
    /// The event loop panicked, in this thread or in another.
    pub(super) fn lead_or_follow<T>(
        &self,
        follower: &Follower<E::Outcome>,
        limit: Duration,
        done: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(mut leader) = self.try_lead() {
            leader.catch_up();
            return Some(self.lead(leader, done));
        }
        self.follow(follower, limit, done)
    }

    fn follow<T>(
        &self,
        follower: &Follower<E::Outcome>,
        limit: Duration,
        done: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        // A follower that may be promoted must still be waiting when that happens: no limit.
        let limit = self.has_io_thread.then_some(limit);
        loop {
            if let Some(leader) = self.try_lead() {
                return Some(self.lead(leader, done));
            }
            // A panicking leader sets the flag first and wakes all followers afterwards.
            self.expect_not_poisoned();
            let is_woken = follower.wait(limit);
            let result = done();
            if result.is_some() || !is_woken {
                return result;
            }
        }
    }

    pub(super) fn expect_not_poisoned(&self) {
        let is_poisoned = self.is_poisoned.load(Ordering::SeqCst);
        assert!(
            !is_poisoned,
            "the thread that led all threads of this client panicked"
        );
    }

    pub(super) fn lock_followers(&self) -> MutexGuard<'_, Followers<E::Outcome>> {
        self.followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the leader a message, which has no outcome. Does not wait for the leader, and does
    /// nothing if the event loop panicked.
    pub(super) fn post(&self, message: E::Message) {
        match self.try_lead() {
            Some(mut leader) => {
                self.empty_inbox(&mut leader);
                leader.post(message);
                leader.flush();
            }
            None if self.is_poisoned.load(Ordering::SeqCst) => {}
            None => {
                self.send_to_leader(Job::Post(message));
                // If the leader has left meanwhile: a leader that steps down empties the inbox.
                drop(self.try_lead());
            }
        }
    }

    /// Leaves a message to whoever leads next, which must not be long: [`flush`](Self::flush)
    /// follows, or an order for which this thread waits. Does nothing if the event loop panicked.
    pub(super) fn post_later(&self, message: E::Message) {
        if !self.is_poisoned.load(Ordering::SeqCst) {
            self.send_to_leader(Job::Post(message));
        }
    }

    /// Processes what is in the inbox and writes it, unless there is a leader, which does.
    pub(super) fn flush(&self) {
        drop(self.try_lead());
    }

    /// Has a thread with several orders, which waits for them there or is about to, look at what it
    /// was told elsewhere before this. Does nothing if the event loop panicked.
    ///
    /// It may be the leader, which looks at the inbox before it sleeps, or a follower. So the
    /// leader tells it, whoever that is. A thread that waits has an order that is not fulfilled:
    /// there is a leader, or it is about to lead, and then it empties the inbox first.
    pub(super) fn nudge(&self, waits_at: &Arc<Follower<E::Outcome>>) {
        self.send_to_leader(Job::Nudge(Arc::clone(waits_at)));
    }

    fn lead<T>(&self, mut leader: Leader<'_, E>, done: &mut impl FnMut() -> Option<T>) -> T {
        loop {
            // Emptying the inbox may decide rounds at once, also the leader's own. So `done` must
            // be asked after it and before `run_once`, which may sleep.
            self.empty_inbox(&mut leader);
            if let Some(result) = done() {
                return result;
            }
            leader.run_once(|| {
                self.is_asleep.store(true, Ordering::SeqCst);
                // Either this thread sees the job in the inbox, or the thread that put it there
                // sees that the leader is asleep.
                fence(Ordering::SeqCst);
                self.inbox.is_empty()
            });
            self.is_asleep.store(false, Ordering::SeqCst);
        }
    }

    /// Puts a job into the inbox. A caller with an order must then call
    /// [`lead_or_follow`](Self::lead_or_follow) without delay, because its follower may be the one
    /// that is promoted.
    pub(super) fn send_to_leader(&self, job: Job<E>) {
        self.inbox.push(job);
        fence(Ordering::SeqCst);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            (self.wake)();
        }
    }

    /// Does what is in the inbox by now, and so all that this thread has put there. Not what comes
    /// meanwhile: on a busy machine, thousands of threads whose rounds are late may fill the inbox
    /// as fast as it is emptied, and then nothing would ever be written.
    fn empty_inbox(&self, event_loop: &mut E) {
        for _ in 0..self.inbox.len() {
            let Some(job) = self.inbox.pop() else { return };
            match job {
                Job::Open(order, follower) => event_loop.open(order, follower),
                Job::Post(message) => event_loop.post(message),
                Job::Nudge(waits_at) => waits_at.nudge(),
                Job::Close => self.is_closed.store(true, Ordering::SeqCst),
            }
        }
    }

    /// Makes a caller the leader, if there is no leader and no I/O thread.
    fn try_lead(&self) -> Option<Leader<'_, E>> {
        let mut leader = if self.has_io_thread {
            None
        } else {
            self.try_become_leader()
        }?;
        leader.take_over();
        Some(leader)
    }

    fn try_become_leader(&self) -> Option<Leader<'_, E>> {
        let event_loop = Some(self.try_lock_event_loop()?);
        let was_panicking = panicking();
        Some(Leader(PanicGuard {
            shared: self,
            event_loop,
            was_panicking,
        }))
    }

    fn try_lock_event_loop(&self) -> Option<LeaderLockGuard<'_, E>> {
        let event_loop = self.event_loop.try_lock()?;
        // After locking: a leader that panics sets the flag before it releases the lock.
        if self.is_poisoned.load(Ordering::SeqCst) {
            None
        } else {
            Some(event_loop)
        }
    }
}

impl<E: EventLoop> fmt::Debug for LeaderFollowers<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderFollowers").finish_non_exhaustive()
    }
}

/// A thread's right to run the event loop. When this is dropped, the thread steps down: it empties
/// the inbox, releases the leader lock and promotes a follower.
pub(super) struct Leader<'a, E: EventLoop>(PanicGuard<'a, E>);

/// Poisons an event loop that panicked, also if it panics while the leader steps down.
struct PanicGuard<'a, E: EventLoop> {
    shared: &'a LeaderFollowers<E>,
    event_loop: Option<LeaderLockGuard<'a, E>>,
    /// Was the thread panicking before it became the leader? Then it drops a lock guard while it
    /// unwinds, and the panic is not the event loop's.
    was_panicking: bool,
}

impl<E: EventLoop> PanicGuard<'_, E> {
    fn has_panicked(&self) -> bool {
        panicking() && !self.was_panicking
    }
}

impl<E: EventLoop> Drop for PanicGuard<'_, E> {
    fn drop(&mut self) {
        if self.has_panicked() {
            // The leader lock is still held, so no thread becomes the leader before the flag is
            // set.
            self.shared.is_poisoned.store(true, Ordering::SeqCst);
            self.event_loop
                .iter_mut()
                .for_each(|event_loop| event_loop.set_poisoned());
            self.shared.lock_followers().promote_all();
        }
    }
}

impl<E: EventLoop> Drop for Leader<'_, E> {
    fn drop(&mut self) {
        if self.0.has_panicked() {
            return;
        }
        let PanicGuard {
            shared,
            event_loop: locked,
            ..
        } = &mut self.0;
        while let Some(event_loop) = locked {
            shared.is_asleep.store(false, Ordering::SeqCst);
            shared.empty_inbox(event_loop);
            let next = event_loop.next_follower().cloned();
            let leads = next.as_ref().is_some_and(|follower| follower.is_at_hand());
            // A follower that is promoted leads next, and writes what is left to it together with
            // what other threads ask for until then. Without one, there may be no other leader for
            // a long time: also what the last replies have caused is written now, such as a key to
            // be restored or a script to be sent by its source.
            if !leads || shared.has_io_thread {
                event_loop.flush();
            }
            *locked = None;
            if let Some(follower) = next {
                follower.promote();
                if !leads {
                    shared.lock_followers().promote_one();
                }
            }
            // A job that was put into the inbox after it was emptied is left to the next leader. If
            // there is none, this thread leads again.
            fence(Ordering::SeqCst);
            if !shared.inbox.is_empty() {
                *locked = shared.try_lock_event_loop();
            }
        }
    }
}

impl<E: EventLoop> Deref for Leader<'_, E> {
    type Target = E;

    fn deref(&self) -> &E {
        self.0
            .event_loop
            .as_deref()
            .expect("only dropping the leader releases the lock")
    }
}

impl<E: EventLoop> DerefMut for Leader<'_, E> {
    fn deref_mut(&mut self) -> &mut E {
        self.0
            .event_loop
            .as_deref_mut()
            .expect("only dropping the leader releases the lock")
    }
}
