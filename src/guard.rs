//! The guard of a lock that is held: how long it is valid, extending it, giving it up.

mod events;
mod extend;
mod joint;
mod keep_alive;
mod loss;
mod release;
mod reused_lock;
mod token;

use crate::clock::{self, Time};
use crate::core::{Core, Member};
use crate::engine::HeldLock;
use crate::error::{Error, LockLost, LossReason};
use crate::fencing::FencingToken;
use crate::name::Name;
use crate::wait_queue::QueueHead;
use crate::watchdog::ReservedCapacity;
use reused_lock::ReusedLock;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
pub use token::LockToken;

/// A lock that is held until it is released, until its guard is dropped, or until its validity has
/// passed.
///
/// When [`remaining`](Self::remaining) is zero, another client may hold the lock, whatever this
/// process is doing. Nothing can stop a thread that was just about to write; see the guarantees at
/// the top of the crate's documentation for what to do about that.
///
/// It is not extended automatically unless the request [says so](crate::LockRequest::keep_alive). A
/// leaked guard does not release its lock: the lock ends with its validity, or, if it is extended
/// automatically, with its [`max_hold`](crate::LockRequest::max_hold).
///
/// A guard belongs to the process that took the lock. A forked child has a copy, which
/// [does not hold](LossReason::OtherProcess) the lock; dropping that copy does nothing.
///
/// A lock whose request sets [`hold_at_least`](crate::LockRequest::hold_at_least) stays taken for
/// that time, even if it is released or its guard is dropped earlier.
///
/// Dropping a guard releases the lock as [`release`](Self::release) does, but waits for nothing:
/// the lock is handed to the next waiting thread of this client, or the release is written to the
/// nodes at once, and to nodes that are unreachable now with the next call that reaches them. While
/// other threads of the client wait for answers, one of these may have to write it: a process that
/// ends in the same millisecond leaves the key to its ttl. `release` returns when nodes have
/// answered.
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    core: Arc<Core>,
    held: ReusedLock,
    /// When the lock was asked for.
    since: Time,
    /// Its part in a share that other threads of this client may have too.
    member: Option<Member>,
    /// The watchdog's capacity that is reserved for it, if it is extended automatically.
    capacity: Option<Arc<ReservedCapacity>>,
    /// For how long extensions may keep the lock.
    max_hold: Option<Duration>,
    /// For how long after the request the lock stays taken, even if it is given up earlier.
    hold_at_least: Duration,
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
        granted: HeldLock,
        head: Option<QueueHead>,
        max_hold: Option<Duration>,
    ) -> Self {
        let since = granted.since;
        Self {
            core,
            held: ReusedLock::new(granted),
            since,
            member: None,
            capacity: None,
            max_hold,
            hold_at_least: Duration::ZERO,
            is_given_up: false,
            is_loss_emitted: false,
            head,
        }
    }

    /// From now on its loss is noticed.
    pub(crate) fn watch(&self) {
        self.core.backend.watch(&self.held, self.head.as_ref());
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
        Name::new(&self.held.granted().key[self.core.key_prefix.len()..])
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
        self.held.granted().keys().map(|key| Name::new(&key[self.core.key_prefix.len()..]))
    }

    /// The number that grows with every grant of the lock, if the request asked for
    /// [one](crate::LockRequest::fenced). Extending the lock keeps it. A
    /// [reader](crate::LockRequest::shared) gets a number that is at least that of the last grant
    /// to a writer, and less than that of the next.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # fn write(order: u64, fence: i64) {}
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let lock = client.request("orders:42").fenced().lock()?;
    /// let fence = lock.fencing_token().expect("the request asked for one");
    /// write(42, fence.into()); // the database refuses a number below the last one it has seen
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.held.granted().fence.map(FencingToken::new)
    }

    /// Which of the [permits](crate::LockRequest::one_of) it is: a number from 0 to one below their
    /// count. No other holder has this slot as long as [`remaining`](Self::remaining) is above
    /// zero, and extending the lock keeps it. `None` for a reader and for the exclusive lock.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, Error};
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let licence = client.request("licence").one_of(3).lock()?;
    /// assert!(licence.slot().is_some_and(|slot| slot < 3));
    /// # drop(licence);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn slot(&self) -> Option<u32> {
        self.held.granted().attributes.as_ref()?.share?.permit()
    }

    /// The time left in which work under the lock may go on: zero when the lock is lost.
    ///
    /// It is measured by the clock of this machine, which also counts suspended time. Clock drift
    /// is already subtracted. On ZooKeeper it is not more than what is left of the [proven
    /// validity](crate::guide::guarantees#until-when-a-session-may-be-relied-on) of the session.
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
        self.held.check(now).map_or(Duration::ZERO, |valid_until| valid_until.since(now))
    }

    /// Checks that the lock is still held: for the line before the one that must not run twice.
    ///
    /// It asks no node: the answer is what this client knows.
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockGuard};
    /// # fn orders() -> Vec<u32> { Vec::new() }
    /// # fn charge(order: u32) {}
    /// # fn example(lock: LockGuard) -> Result<(), Error> {
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
    /// [`Error::Lost`], with how it was lost. A lock that was lost does not come back.
    pub fn ensure_held(&self) -> Result<(), Error> {
        self.check().map_err(Error::Lost)
    }

    pub(crate) fn check(&self) -> Result<(), LockLost> {
        if self.core.is_forked() {
            return Err(self.loss(LossReason::OtherProcess));
        }
        self.held.check(clock::now()).map(drop).map_err(|reason| self.loss(reason))
    }

    /// The loss of this lock.
    fn loss(&self, reason: LossReason) -> LockLost {
        LockLost::new(self.resource().as_bytes(), reason)
    }

    /// How long ago the lock was asked for.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// This thread gives the lock up after the work that it is about to do, and no other thread
    /// can.
    pub(crate) fn bind_to_this_thread(&self) {
        if let Some(head) = &self.head {
            head.handle().bind_to_this_thread();
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
