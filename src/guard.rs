//! The guard of a lock that is held: how long it is valid, extending it, giving it up.

mod events;
mod extend;
mod keep_alive;
mod loss;
mod reused_lease;

use crate::callback;
use crate::clock::{self, Time};
use crate::core::Core;
use crate::engine::{Lease, NodeSet, Release, ReleaseOutcome};
use crate::error::{LockLost, NoQuorum, ReleaseError};
use crate::fencing::FencingToken;
use crate::name::Name;
use crate::released::Released;
use crate::wait_queue::QueueHead;
use crate::watchdog::CapacityShare;
use reused_lease::ReusedLease;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A lock that is held until it is released, until its guard is dropped, or until its validity has
/// passed.
///
/// It is a lease: when [`remaining`](Self::remaining) is zero, another client may hold the lock,
/// whatever this process is doing. Nothing can stop a thread that was just about to write; see the
/// guarantees at the top of the crate's documentation for what to do about that.
///
/// It is not extended automatically unless the request [says so](crate::LockRequest::keep_alive). A
/// leaked guard does not release its lock: the lock ends with its validity, or, if it is extended
/// automatically, with its [`max_hold`](crate::LockRequest::max_hold).
///
/// A guard belongs to the process that took the lock. A forked child has a copy, which
/// [does not hold](LockLost::OtherProcess) the lock; dropping that copy does nothing.
///
/// Dropping a guard releases the lock as [`release`](Self::release) does, but waits for nothing:
/// the lock is handed to the next waiting thread of this client, or the release is written to the
/// nodes at once, and to nodes that are unreachable now with the next call that reaches them.
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    core: Arc<Core>,
    lease: ReusedLease,
    /// Its share of the watchdog's capacity, if it is extended automatically.
    share: Option<Arc<CapacityShare>>,
    /// For how long extensions may keep the lock.
    max_hold: Option<Duration>,
    is_given_up: bool,
    /// Was the loss of the lock emitted, or will the notifier emit it?
    is_loss_emitted: bool,
    /// The place at the head of the wait queue. Dropped last: that promotes the next waiter, which
    /// must come after the release was written.
    head: Option<QueueHead>,
}

impl LockGuard {
    pub(crate) fn new(
        core: Arc<Core>,
        granted: Lease,
        head: Option<QueueHead>,
        max_hold: Option<Duration>,
    ) -> Self {
        let (lease, share) = (ReusedLease::new(granted), None);
        Self { core, lease, share, max_hold, is_given_up: false, is_loss_emitted: false, head }
    }

    /// The name of the locked resource; the first of them, if there are
    /// [several](Self::resources).
    ///
    /// ```no_run
    /// # fn example(lock: redlatch::LockGuard) {
    /// eprintln!("working on {}", lock.resource());
    /// # }
    /// ```
    #[must_use]
    pub fn resource(&self) -> Name<'_> {
        Name::new(&self.lease.granted().key[self.core.key_prefix.len()..])
    }

    /// The names of the locked resources, in the order of their bytes: more than one if they were
    /// [requested together](crate::LockClient::request_all).
    ///
    /// ```no_run
    /// # fn example(lock: redlatch::LockGuard) {
    /// for resource in lock.resources() {
    ///     eprintln!("locked {resource}");
    /// }
    /// # }
    /// ```
    pub fn resources(&self) -> impl Iterator<Item = Name<'_>> {
        self.lease.granted().keys().map(|key| Name::new(&key[self.core.key_prefix.len()..]))
    }

    /// The number that grows with every grant of the lock, if the request asked for
    /// [one](crate::LockRequest::fenced). Extending the lock keeps it.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError};
    /// # fn write(order: u64, fence: i64) {}
    /// # fn example(client: &LockClient) -> Result<(), LockError> {
    /// let lock = client.request("orders:42").fenced().lock()?;
    /// let fence = lock.fencing_token().expect("the request asked for one");
    /// write(42, fence.into()); // the database refuses a number below the last one it has seen
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.lease.granted().fence.map(FencingToken::new)
    }

    /// The time left in which work under the lock may go on: zero when the lock is lost.
    ///
    /// It is measured by the clock of this machine, which also counts suspended time. Clock drift
    /// is already subtracted.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn charge_the_card() {}
    /// # fn example(lock: redlatch::LockGuard) {
    /// if lock.remaining() > Duration::from_secs(2) {
    ///     charge_the_card(); // takes a second at most
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.core.is_forked() {
            return Duration::ZERO;
        }
        let now = clock::now();
        self.lease.check(now).map_or(Duration::ZERO, |valid_until| valid_until.since(now))
    }

    /// Checks that the lock is still held: for the line before the one that must not run twice.
    ///
    /// It asks no node: the answer is what this client knows.
    ///
    /// ```no_run
    /// # use redlatch::{LockGuard, LockLost};
    /// # fn orders() -> Vec<u32> { Vec::new() }
    /// # fn charge(order: u32) {}
    /// # fn example(lock: LockGuard) -> Result<(), LockLost> {
    /// for order in orders() {
    ///     lock.ensure_held()?;
    ///     charge(order);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// How it was lost. A lock that was lost does not come back.
    pub fn ensure_held(&self) -> Result<(), LockLost> {
        if self.core.is_forked() {
            return Err(LockLost::OtherProcess);
        }
        self.lease.check(clock::now()).map(|_| ())
    }

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
        if self.hand_off(&lease) {
            return Ok(Released::InTime);
        }
        let release = Release::new(&self.core.rules, &lease, clock::now());
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
    fn close(&mut self) -> Lease {
        self.is_given_up = true;
        self.share.iter().for_each(|share| share.give_back());
        self.lease.close(clock::now(), NodeSet::all(self.core.rules.nodes))
    }

    /// Hands the lock to the next waiter of this process, if there is one.
    fn hand_off(&self, lease: &Lease) -> bool {
        self.head.as_ref().is_some_and(|head| head.hand_off(lease.clone()).is_ok())
    }

    /// How long ago the lock was asked for.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.lease.granted().since)
    }

    /// This thread gives the lock up after the work that it is about to do, and no other thread
    /// can.
    pub(crate) fn bind_to_this_thread(&self) {
        if let Some(head) = &self.head {
            head.handle().bind_to_this_thread();
        }
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.is_given_up || self.core.is_forked() {
            return;
        }
        let lease = self.close();
        let outcome = if self.hand_off(&lease) {
            Some(Released::InTime)
        } else {
            let now = clock::now();
            self.core.post(lease.undo(now, &self.core.rules));
            // The clock is all there is to go by: no answer is waited for.
            (now >= lease.valid_until).then_some(Released::TooLate)
        };
        if self.core.has_listener() {
            // This may run because the thread panics, and a second panic would end the process.
            callback::contain(|| self.emit_released(outcome));
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("resource", &self.resource())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod fixture;
