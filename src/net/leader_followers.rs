//! Whose turn it is to drive.
//!
//! Unless the client has a [thread for it](super::service), the callers do this themselves. All
//! threads of a client share one driver, which has the sockets; whoever needs an answer and finds
//! the driver free takes it and drives, for everybody: it opens the rounds that others have left in
//! the inbox, writes and reads for all of them, and hands out what they came to. Whoever finds the
//! driver taken leaves its request in the inbox, wakes the driver if it sleeps, and parks on its
//! seat. When the one who drives has its own outcome, it puts the driver down and calls one of
//! those who still wait.
//!
//! ```text
//!   submit ──▶ driver free? ── yes ──▶ drive until my outcome is there ──▶ put down, call the next
//!                   │ no                        ▲
//!                   ▼                           │ called, and the driver is free
//!              inbox, wake ──▶ park on my seat ─┴──▶ outcome handed to me
//! ```
//!
//! Two things must stay true. What a thread leaves in the inbox is sent before what it sends later:
//! a removal must not be overtaken by the same thread's next attempt, so whoever takes the driver
//! clears the inbox first. And whoever puts the driver down looks at the inbox and at those who
//! wait *afterwards*, and whoever leaves something in the inbox tries to take the driver
//! *afterwards*. One of the two then sees the other, and nothing is left lying.
//!
//! Where there is a thread for it, that one takes the driver once and for all, and the callers
//! never do: they leave their requests in the inbox and park. A driver cannot be taken away from a
//! thread that is stopped, by a signal handler say, and then nobody is served; so they wait no
//! longer than their request says, and leave without an outcome.
//!
//! A driver that panics, which only a mistake in this crate can make it do, may have lost count of
//! what was asked and answered. It is never used again: whoever waits for it or comes later panics
//! as well, as with a poisoned mutex, and nobody is left waiting.

pub(super) use super::drive::{Drive, Wake};
use super::follower::{Follower, Followers};
use super::inbox::Inbox;
use super::leader::Leader;
use super::sync::fence;
use super::sync::{
    AtomicBool, LeaderLock, LeaderLockGuard, Mutex, MutexGuard, Ordering, PoisonError,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) enum Job<D: Drive> {
    Open(D::Request, Arc<Follower<D::Outcome>>),
    Post(D::Request),
    /// The thread that drives is to end.
    Close,
}

/// The driver, and those who want it.
pub(super) struct LeaderFollowers<D: Drive, W> {
    driver: LeaderLock<D>,
    pub(super) inbox: Inbox<Job<D>>,
    seats: Mutex<Followers<D::Outcome>>,
    waker: W,
    /// Does a thread of its own drive?
    is_served: bool,
    is_closed: AtomicBool,
    /// Is the driver asleep, or about to be?
    pub(super) is_asleep: AtomicBool,
    /// Has the driver panicked?
    pub(super) is_broken: AtomicBool,
}

impl<D: Drive, W: Wake> LeaderFollowers<D, W> {
    /// A driver for those who call, or if it `is_served` for the thread that
    /// [serves](Self::serve) them.
    pub(super) fn new(driver: D, waker: W, is_served: bool) -> Self {
        Self {
            driver: LeaderLock::new(driver),
            inbox: Inbox::new(),
            seats: Mutex::new(Followers::new()),
            waker,
            is_served,
            is_closed: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Drives for all, until [told](Self::close) to end.
    pub(super) fn serve(&self) {
        if let Some(driving) = self.begin() {
            self.drive(driving, &mut || self.is_closed.load(Ordering::SeqCst).then_some(()));
        }
    }

    /// Tells the thread that [serves](Self::serve) to do what has been left for it, and to end.
    pub(super) fn close(&self) {
        self.leave(Job::Close);
    }

    /// Puts a request to the nodes and waits for what it comes to; where a thread of its own
    /// drives, for no longer than `limit`, after which there is no outcome.
    ///
    /// # Panics
    ///
    /// The driver panicked, in this thread or in another.
    pub(super) fn submit(&self, request: D::Request, limit: Duration) -> Option<D::Outcome> {
        self.expect_sound();
        let seat = self.lock_seats().take();
        let outcome = self.submit_from(request, &seat, limit);
        let mut seats = self.lock_seats();
        if outcome.is_some() {
            seats.give_back(seat);
        } else {
            seats.remove(&seat);
        }
        outcome
    }

    fn submit_from(
        &self,
        request: D::Request,
        seat: &Arc<Follower<D::Outcome>>,
        limit: Duration,
    ) -> Option<D::Outcome> {
        if let Some(mut driving) = self.take_turn() {
            self.clear_inbox(&mut driving);
            driving.look();
            driving.open(request, Arc::clone(seat));
            return Some(self.drive(driving, &mut || seat.take()));
        }
        self.leave(Job::Open(request, Arc::clone(seat)));
        self.wait(seat, limit, &mut || seat.take())
    }

    /// Leaves a request for whoever drives next. Its outcome goes to `seat`, and whoever wants it
    /// must [`attend`](Self::attend) without delay: it may be the one who is called to drive for
    /// all.
    pub(super) fn open(&self, request: D::Request, seat: Arc<Follower<D::Outcome>>) {
        self.leave(Job::Open(request, seat));
    }

    /// Drives, or waits to be called at `seat`, until `done` has what was left requests for; where
    /// a thread of its own drives, for no longer than `limit` after the last call.
    ///
    /// # Panics
    ///
    /// The driver panicked, in this thread or in another.
    pub(super) fn attend<T>(
        &self,
        seat: &Follower<D::Outcome>,
        limit: Duration,
        done: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(mut driving) = self.take_turn() {
            driving.look();
            return Some(self.drive(driving, done));
        }
        self.wait(seat, limit, done)
    }

    fn wait<T>(
        &self,
        seat: &Follower<D::Outcome>,
        limit: Duration,
        done: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        // Whoever may be called to drive must be there when that happens.
        let limit = self.is_served.then_some(limit);
        loop {
            if let Some(driving) = self.take_turn() {
                return Some(self.drive(driving, done));
            }
            // Whoever breaks the driver says so first, and calls every seat afterwards.
            self.expect_sound();
            let is_called = seat.wait(limit);
            let result = done();
            if result.is_some() || !is_called {
                return result;
            }
        }
    }

    pub(super) fn expect_sound(&self) {
        let is_broken = self.is_broken.load(Ordering::SeqCst);
        assert!(!is_broken, "the thread that drove for all threads of this client panicked");
    }

    pub(super) fn lock_seats(&self) -> MutexGuard<'_, Followers<D::Outcome>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request that nobody waits for. Does not wait for the driver either, and does nothing
    /// if that has panicked.
    pub(super) fn post(&self, request: D::Request) {
        match self.take_turn() {
            Some(mut driving) => {
                self.clear_inbox(&mut driving);
                driving.post(request);
                driving.flush();
            }
            None if self.is_broken.load(Ordering::SeqCst) => {}
            None => {
                self.leave(Job::Post(request));
                // If the driver has been put down meanwhile, taking it up and putting it down again
                // clears the inbox.
                drop(self.take_turn());
            }
        }
    }

    fn drive<T>(&self, mut driving: Leader<'_, D, W>, done: &mut impl FnMut() -> Option<T>) -> T {
        loop {
            // Clearing the inbox may decide rounds at once, our own among them, and then there is
            // nothing to wait for: only now is it certain that the outcome is still to come.
            self.clear_inbox(&mut driving);
            if let Some(result) = done() {
                return result;
            }
            driving.step(|| {
                self.is_asleep.store(true, Ordering::SeqCst);
                // Either this sees what was left in the inbox, or the one who leaves something
                // there sees that the driver is asleep.
                fence(Ordering::SeqCst);
                self.inbox.is_empty()
            });
            self.is_asleep.store(false, Ordering::SeqCst);
        }
    }

    fn leave(&self, job: Job<D>) {
        self.inbox.push(job);
        fence(Ordering::SeqCst);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    pub(super) fn clear_inbox(&self, driver: &mut D) {
        while let Some(job) = self.inbox.pop() {
            match job {
                Job::Open(request, seat) => driver.open(request, seat),
                Job::Post(request) => driver.post(request),
                Job::Close => self.is_closed.store(true, Ordering::SeqCst),
            }
        }
    }

    /// The driver, for one of the callers.
    fn take_turn(&self) -> Option<Leader<'_, D, W>> {
        if self.is_served { None } else { self.begin() }
    }

    fn begin(&self) -> Option<Leader<'_, D, W>> {
        let driver = self.take_driver()?;
        Some(Leader::new(self, driver))
    }

    pub(super) fn take_driver(&self) -> Option<LeaderLockGuard<'_, D>> {
        let driver = self.driver.try_take()?;
        // Only now: what breaks while somebody has it is known before it can be taken.
        if self.is_broken.load(Ordering::SeqCst) { None } else { Some(driver) }
    }
}

impl<D: Drive, W> fmt::Debug for LeaderFollowers<D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderFollowers").finish_non_exhaustive()
    }
}
