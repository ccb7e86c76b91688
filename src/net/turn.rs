//! Whose turn it is to drive.
//!
//! No thread in the background does this. All threads of a client share one driver, which has the
//! sockets; whoever needs an answer and finds the driver free takes it and drives, for everybody:
//! it opens the rounds that others have left in the inbox, writes and reads for all of them, and
//! hands out what they came to. Whoever finds the driver taken leaves its request in the inbox,
//! wakes the driver if it sleeps, and parks on its seat. When the one who drives has its own
//! outcome, it puts the driver down and calls one of those who still wait.
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
//! A driver that panics, which only a mistake in this crate can make it do, may have lost count of
//! what was asked and answered. It is never used again: whoever waits for it or comes later panics
//! as well, as with a poisoned mutex, and nobody is left waiting.

pub(super) use super::drive::{Drive, Wake};
use super::inbox::Inbox;
use super::seat::{Seat, Seats};
use super::sync::{AtomicBool, Baton, Mutex, MutexGuard, Ordering, PoisonError, Taken};
use super::sync::{fence, panicking};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

enum Job<D: Drive> {
    Open(D::Request, Arc<Seat<D::Outcome>>),
    Post(D::Request),
}

/// The driver, and those who want it.
pub(super) struct Turn<D: Drive, W> {
    driver: Baton<D>,
    inbox: Inbox<Job<D>>,
    seats: Mutex<Seats<D::Outcome>>,
    waker: W,
    /// Is the driver asleep, or about to be?
    is_asleep: AtomicBool,
    /// Has the driver panicked?
    is_broken: AtomicBool,
}

impl<D: Drive, W: Wake> Turn<D, W> {
    pub(super) fn new(driver: D, waker: W) -> Self {
        Self {
            driver: Baton::new(driver),
            inbox: Inbox::new(),
            seats: Mutex::new(Seats::new()),
            waker,
            is_asleep: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Puts a request to the nodes and waits for what it comes to.
    ///
    /// # Panics
    ///
    /// The driver panicked, in this thread or in another.
    pub(super) fn submit(&self, request: D::Request) -> D::Outcome {
        self.expect_sound();
        let seat = self.lock_seats().take();
        let outcome = self.submit_from(request, &seat);
        self.lock_seats().give_back(seat);
        outcome
    }

    fn submit_from(&self, request: D::Request, seat: &Arc<Seat<D::Outcome>>) -> D::Outcome {
        if let Some(mut driving) = self.take_turn() {
            self.clear_inbox(&mut driving);
            driving.look();
            driving.open(request, Arc::clone(seat));
            return self.drive(driving, &mut || seat.take());
        }
        self.leave(Job::Open(request, Arc::clone(seat)));
        self.wait(seat, &mut || seat.take())
    }

    /// Leaves a request for whoever drives next. Its outcome goes to `seat`, and whoever wants it
    /// must [`attend`](Self::attend) without delay: it may be the one who is called to drive for
    /// all.
    pub(super) fn open(&self, request: D::Request, seat: Arc<Seat<D::Outcome>>) {
        self.leave(Job::Open(request, seat));
    }

    /// Drives, or waits to be called at `seat`, until `done` has what was left requests for.
    ///
    /// # Panics
    ///
    /// The driver panicked, in this thread or in another.
    pub(super) fn attend<T>(
        &self,
        seat: &Seat<D::Outcome>,
        done: &mut impl FnMut() -> Option<T>,
    ) -> T {
        if let Some(mut driving) = self.take_turn() {
            driving.look();
            return self.drive(driving, done);
        }
        self.wait(seat, done)
    }

    fn wait<T>(&self, seat: &Seat<D::Outcome>, done: &mut impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(driving) = self.take_turn() {
                return self.drive(driving, done);
            }
            // Whoever breaks the driver says so first, and calls every seat afterwards.
            self.expect_sound();
            seat.wait();
            if let Some(result) = done() {
                return result;
            }
        }
    }

    pub(super) fn expect_sound(&self) {
        let is_broken = self.is_broken.load(Ordering::SeqCst);
        assert!(!is_broken, "the thread that drove for all threads of this client panicked");
    }

    pub(super) fn lock_seats(&self) -> MutexGuard<'_, Seats<D::Outcome>> {
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

    fn drive<T>(&self, mut driving: Driving<'_, D, W>, done: &mut impl FnMut() -> Option<T>) -> T {
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

    fn clear_inbox(&self, driver: &mut D) {
        while let Some(job) = self.inbox.pop() {
            match job {
                Job::Open(request, seat) => driver.open(request, seat),
                Job::Post(request) => driver.post(request),
            }
        }
    }

    fn take_turn(&self) -> Option<Driving<'_, D, W>> {
        let driver = self.take_driver()?;
        let hands = Hands { turn: self, driver: Some(driver), was_panicking: panicking() };
        Some(Driving(hands))
    }

    fn take_driver(&self) -> Option<Taken<'_, D>> {
        let driver = self.driver.try_take()?;
        // Only now: what breaks while somebody has it is known before it can be taken.
        if self.is_broken.load(Ordering::SeqCst) { None } else { Some(driver) }
    }
}

/// The driver in the hands of a thread. It is put down properly however the thread leaves.
struct Driving<'a, D: Drive, W: Wake>(Hands<'a, D, W>);

/// What sees to it that a driver which panicked, be it while it was put down, is never taken again.
struct Hands<'a, D: Drive, W: Wake> {
    turn: &'a Turn<D, W>,
    driver: Option<Taken<'a, D>>,
    /// Was the thread panicking already, and is it dropping a guard on its way?
    was_panicking: bool,
}

impl<D: Drive, W: Wake> Hands<'_, D, W> {
    fn is_broken(&self) -> bool {
        panicking() && !self.was_panicking
    }
}

impl<D: Drive, W: Wake> Drop for Hands<'_, D, W> {
    fn drop(&mut self) {
        if self.is_broken() {
            // The driver is still in these hands: nobody takes it before this is known.
            self.turn.is_broken.store(true, Ordering::SeqCst);
            self.driver.iter_mut().for_each(|driver| driver.abandon());
            self.turn.lock_seats().call_all();
        }
    }
}

impl<D: Drive, W: Wake> Drop for Driving<'_, D, W> {
    fn drop(&mut self) {
        if self.0.is_broken() {
            return;
        }
        let Hands { turn, driver: taken, .. } = &mut self.0;
        while let Some(driver) = taken {
            turn.is_asleep.store(false, Ordering::SeqCst);
            turn.clear_inbox(driver);
            // Also what the last answers have called for, such as a key to be put back or a script
            // to be sent by its source: nobody may come for long who would write it.
            driver.flush();
            let next = driver.waiter().cloned();
            *taken = None;
            if let Some(seat) = next {
                seat.call();
            }
            // What was left in the inbox since it was cleared is ours to see to, unless somebody
            // has taken the driver: then it is theirs.
            fence(Ordering::SeqCst);
            if !turn.inbox.is_empty() {
                *taken = turn.take_driver();
            }
        }
    }
}

impl<D: Drive, W: Wake> Deref for Driving<'_, D, W> {
    type Target = D;

    fn deref(&self) -> &D {
        self.0.driver.as_deref().expect("it is put down only when this is dropped")
    }
}

impl<D: Drive, W: Wake> DerefMut for Driving<'_, D, W> {
    fn deref_mut(&mut self) -> &mut D {
        self.0.driver.as_deref_mut().expect("it is put down only when this is dropped")
    }
}

impl<D: Drive, W> fmt::Debug for Turn<D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}
