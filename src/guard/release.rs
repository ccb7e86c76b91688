//! Giving a lock up: releasing it, leaving it to its ttl, or dropping the guard.

use super::LockGuard;
use crate::callback;
use crate::clock::{self, Time};
use crate::engine::{HeldLock, NodeSet, Release, Ttl};
use crate::error::{Error, LockLost, LossReason, NoQuorum};
use crate::event::Released;
use std::ops::ControlFlow;
use std::time::Duration;

/// What has become of a lock that a guard gives up.
pub(super) enum Withdrawal {
    /// Other guards have it. This was known about it when this guard left.
    OthersStay(Released),
    /// This guard is alone with it, and gives it up, but not before this time.
    WasLast(Time),
}

/// A lock for which nothing is sent any more but its release.
pub(super) struct Closed {
    held: HeldLock,
    /// For how long the nodes are to keep it.
    keep_for: Option<Ttl>,
}

impl Closed {
    /// The release that begins now.
    pub(super) fn release(&self) -> Release<'_> {
        Release {
            held: &self.held,
            keep_for: self.keep_for,
            began: clock::now(),
        }
    }
}

impl LockGuard {
    /// Releases the lock, and waits for the answers of a majority. `Ok` means that the lock was
    /// held to the end.
    ///
    /// If another thread of this client waits for the lock and its validity has not passed, the
    /// lock is handed to that thread, which replaces the token on the nodes. Then this waits for
    /// nothing, and the result goes by the clock alone. So it does if other threads of this client
    /// have the same [share](crate::LockRequest::shared).
    ///
    /// ```no_run
    /// # use redlatch::{LockGuard, Error};
    /// # fn example(lock: LockGuard) -> Result<(), Error> {
    /// match lock.release() {
    ///     Err(Error::Lost(lost)) => eprintln!("{lost}: others may have worked too"),
    ///     other => other?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::Lost`]: the lock's validity had passed, or no majority of the nodes still
    ///   had its key. Another client may have held the lock while this one still worked.
    /// * [`Error::NoQuorum`]: too few nodes answered. The release is sent to the others when
    ///   they are reachable again; their key expires with its ttl in any case, or on ZooKeeper with
    ///   the session.
    pub fn release(mut self) -> Result<(), Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        self.release_and_report()
    }

    /// Releases the lock when the work under it has ended. An error if it was lost before that, as
    /// far as the nodes say. If too few of them answer, the clock decides.
    pub(crate) fn release_after_work(mut self) -> Result<(), LockLost> {
        self.check()?;
        match self.release_and_report() {
            Err(Error::Lost(lost)) => Err(lost),
            _ => Ok(()),
        }
    }

    /// Leaves the lock to the other guards that have it, if there are any. The nodes are to keep it
    /// until `stays_until`.
    pub(super) fn withdraw(&mut self, stays_until: Time) -> Withdrawal {
        match self.member.take() {
            Some(member) => self.leave(member, stays_until),
            None => Withdrawal::WasLast(Time::ZERO),
        }
    }

    fn release_and_report(&mut self) -> Result<(), Error> {
        let result = match self.leave_or_hand_off() {
            ControlFlow::Break(released) => Ok(released),
            ControlFlow::Continue(closed) => self.core.backend.release(closed.release()),
        };
        self.report(result)
    }

    /// Gives the lock up as far as this asks nobody. If it goes to no other guard or thread, the
    /// caller must have it released.
    pub(super) fn leave_or_hand_off(&mut self) -> ControlFlow<Released, Closed> {
        let stays_until = match self.withdraw(Time::ZERO) {
            Withdrawal::OthersStay(released) => return ControlFlow::Break(released),
            Withdrawal::WasLast(stays_until) => stays_until,
        };
        let held = self.close();
        let keep_for = self.keep_for(clock::now(), stays_until);
        if keep_for.is_none() && self.hand_off(&held) {
            return ControlFlow::Break(Released::InTime);
        }
        ControlFlow::Continue(Closed { held, keep_for })
    }

    /// What the caller of a release is told, and the listener.
    pub(super) fn report(&mut self, result: Result<Released, NoQuorum>) -> Result<(), Error> {
        let is_late = matches!(result, Ok(Released::TooLate));
        let lost = is_late.then(|| self.loss(self.late_reason()));
        self.emit_released(result.as_ref().ok().copied());
        match lost {
            Some(lost) => Err(Error::Lost(lost)),
            None => result.map(drop).map_err(Error::NoQuorum),
        }
    }

    /// Leaves the lock to its ttl: it stays taken until the ttl of the last extension, or of the
    /// request, has passed. The nodes are told when it ends, and not waited for: whoever waits
    /// first gets the lock then, before others that ask at that moment.
    ///
    /// That makes work rare rather than exclusive. A job that runs on several machines at the same
    /// minute, by clocks that differ a little, must not run again a second later because the first
    /// was quick:
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn send_the_report() {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// // Started by cron at 03:00 on each of five machines.
    /// if let Some(lock) = client.try_lock("nightly-report", Duration::from_secs(50))? {
    ///     send_the_report();
    ///     lock.let_expire(); // no other machine gets it before 03:00:50
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// On ZooKeeper this client ends the lock when its ttl has passed. If the client or the process
    /// is gone by then, the lock [ends with the
    /// session](crate::guide::limits#what-locks-on-zookeeper-do-not-do), earlier or later.
    /// Automatic extension stops; one that is under way may still be carried out. Threads of this
    /// client that wait for the lock ask the nodes. The listener gets
    /// [`Event::LetExpire`](crate::Event::LetExpire).
    pub fn let_expire(mut self) {
        if self.core.is_forked() {
            return;
        }
        let stays_until = self.held.stays_until(clock::now(), &self.core.rules);
        if let Withdrawal::OthersStay(_) = self.withdraw(stays_until) {
            return self.emit_let_expire();
        }
        let held = self.close();
        let now = clock::now();
        let left = held.stays_until(now, &self.core.rules).since(now);
        if let Some(left) = Ttl::from_duration(left) {
            self.core.backend.give_up(&held, Some(left));
        }
        self.emit_let_expire();
    }

    /// Nothing was done under the lock, because a program could not be started for instance: giving
    /// it up removes it at once, also before the time for which the request wants it to be [held at
    /// least](crate::LockRequest::hold_at_least). Others need not wait for a job that did not
    /// start.
    pub fn waive_hold_at_least(&mut self) {
        self.hold_at_least = Duration::ZERO;
    }

    /// Gives the lock up without waiting for anything. Returns what is known about it.
    fn drop_lock(&mut self, stays_until: Time) -> Option<Released> {
        let held = self.close();
        let keep_for = self.keep_for(clock::now(), stays_until);
        if keep_for.is_none() && self.hand_off(&held) {
            return Some(Released::InTime);
        }
        let now = clock::now();
        self.core.backend.give_up(&held, keep_for);
        // The clock is all there is to go by: no answer is waited for.
        (now >= held.valid_until).then_some(Released::TooLate)
    }

    /// Ends the use of the lock: from here on nothing is sent for it but its release.
    pub(super) fn close(&mut self) -> HeldLock {
        self.is_given_up = true;
        self.capacity.iter().for_each(|capacity| capacity.free());
        self.held
            .close(clock::now(), NodeSet::all(self.core.rules.nodes))
    }

    /// How the lock was lost of which a release says that it came too late.
    pub(super) fn late_reason(&self) -> LossReason {
        let now = clock::now();
        match self.held.check(now) {
            Err(reason) => reason,
            Ok(valid_until) if now >= valid_until => LossReason::Expired,
            Ok(_) => LossReason::Gone,
        }
    }

    fn hand_off(&self, held: &HeldLock) -> bool {
        // The fencing token of a session is that of a place in the queue, and each grant has a
        // larger one.
        let may = held.session.is_none() || held.fence.is_none();
        let head = self.head.as_ref().filter(|_| may);
        head.is_some_and(|head| head.hand_off(held.clone()).is_ok())
    }

    /// From now on, giving the lock up before so much time has passed since the request lets it
    /// stay taken until then. Not before the caller gets the guard: what fails removes the lock.
    pub(crate) fn set_hold_at_least(&mut self, least: Duration) {
        self.hold_at_least = least;
    }

    /// For how long the nodes keep the lock if it is given up now: because the request asks for it,
    /// or until this time, because a member of a joint share did.
    fn keep_for(&self, now: Time, stays_until: Time) -> Option<Ttl> {
        let asked = self.held.granted().keep_for(self.hold_at_least, now);
        asked.max(Ttl::from_duration(stays_until.since(now)))
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.is_given_up || self.core.is_forked() {
            return;
        }
        let outcome = match self.withdraw(Time::ZERO) {
            Withdrawal::OthersStay(released) => Some(released),
            Withdrawal::WasLast(stays_until) => self.drop_lock(stays_until),
        };
        if self.core.events.has_listener() {
            // This may run because the thread panics, and a second panic would end the process.
            callback::contain(|| self.emit_released(outcome));
        }
    }
}
