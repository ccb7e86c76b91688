//! Giving a lock up: releasing it, leaving it to its ttl, or dropping the guard.

use super::LockGuard;
use crate::callback;
use crate::clock::{self, Time};
use crate::engine::{Lease, NodeSet, Release, ReleaseOutcome, Ttl};
use crate::error::{NoQuorum, ReleaseError};
use crate::released::Released;
use std::time::Duration;

impl LockGuard {
    /// Releases the lock, waits for the answers of a majority, and says whether the lock was held
    /// to the end.
    ///
    /// If another thread of this client waits for the lock and its validity has not passed, the
    /// lock is handed to that thread, which replaces the token on the nodes. Then this waits for
    /// nothing, and the result goes by the clock alone.
    ///
    /// ```no_run
    /// # use redlatch::{LockGuard, Released};
    /// # fn example(lock: LockGuard) -> Result<(), Box<dyn std::error::Error>> {
    /// if lock.release()? == Released::TooLate {
    ///     eprintln!("another client may have worked at the same time");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Too few nodes answered. The release is sent to the others when they are reachable again;
    /// their key expires with its ttl in any case.
    pub fn release(mut self) -> Result<Released, ReleaseError> {
        if self.core.is_forked() {
            return Err(ReleaseError::OtherProcess);
        }
        let result = self.release_or_hand_off();
        self.emit_released(result.as_ref().ok().copied());
        result
    }

    fn release_or_hand_off(&mut self) -> Result<Released, ReleaseError> {
        let lease = self.close();
        let linger = self.linger(clock::now());
        if linger.is_none() && self.hand_off(&lease) {
            return Ok(Released::InTime);
        }
        let release = Release::after(linger, &self.core.rules, &lease, clock::now());
        match self.core.run(release) {
            (ReleaseOutcome::InTime, _) => Ok(Released::InTime),
            (ReleaseOutcome::TooLate, _) => Ok(Released::TooLate),
            (ReleaseOutcome::Unanswered, last) => {
                Err(ReleaseError::NoQuorum(NoQuorum::new(last.reports)))
            }
        }
    }

    /// Leaves the lock to its ttl: nothing is sent, and the lock stays taken until the ttl of the
    /// last extension, or of the request, has passed.
    ///
    /// That makes work rare rather than exclusive. A job that runs on several machines at the same
    /// minute, by clocks that differ a little, must not run again a second later because the first
    /// was quick:
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # use std::time::Duration;
    /// # fn send_the_report() {}
    /// # fn example(client: &LockClient) -> Result<(), LockError> {
    /// // Started by cron at 03:00 on each of five machines.
    /// if let Some(lock) = client.try_lock("nightly-report", Duration::from_secs(50))? {
    ///     send_the_report();
    ///     lock.leave(); // no other machine gets it before 03:00:50
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Automatic extension stops; one that is under way may still be carried out. Threads of this
    /// client that wait for the lock go on waiting, and ask the nodes. The listener gets
    /// [`Event::Left`](crate::Event::Left).
    pub fn leave(mut self) {
        if !self.core.is_forked() {
            self.close();
            self.emit_left();
        }
    }

    /// Ends the use of the lock: from here on nothing is sent for it but its release.
    pub(super) fn close(&mut self) -> Lease {
        self.is_given_up = true;
        self.share.iter().for_each(|share| share.free());
        self.lease.close(clock::now(), NodeSet::all(self.core.rules.nodes))
    }

    /// Hands the lock to the next waiter of this process, if there is one.
    fn hand_off(&self, lease: &Lease) -> bool {
        self.head.as_ref().is_some_and(|head| head.hand_off(lease.clone()).is_ok())
    }

    /// From now on, giving the lock up before so much time has passed since the request lets it
    /// stay taken until then. Not before the caller gets the guard: what fails removes the lock.
    pub(crate) fn set_hold_at_least(&mut self, least: Duration) {
        self.hold_at_least = least;
    }

    /// For how long the nodes keep the lock if it is given up now, because the request asks for it.
    fn linger(&self, now: Time) -> Option<Ttl> {
        self.lease.granted().linger(self.hold_at_least, now)
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.is_given_up || self.core.is_forked() {
            return;
        }
        let lease = self.close();
        let linger = self.linger(clock::now());
        let outcome = if linger.is_none() && self.hand_off(&lease) {
            Some(Released::InTime)
        } else {
            let now = clock::now();
            self.core.post(lease.undo_after(linger, now, &self.core.rules));
            // The clock is all there is to go by: no answer is waited for.
            (now >= lease.valid_until).then_some(Released::TooLate)
        };
        if self.core.has_listener() {
            // This may run because the thread panics, and a second panic would end the process.
            callback::contain(|| self.emit_released(outcome));
        }
    }
}
