//! A lock that is held.

mod events;
mod keep_alive;
mod watch;

use crate::callback;
use crate::clock;
use crate::core::Core;
use crate::engine::{Extend, Extended, Lease, NodeSet, Release, ReleaseOutcome, Rules};
use crate::error::{ExtendError, LockLost, NoQuorum, ReleaseError};
use crate::fencing::FencingToken;
use crate::name::Name;
use crate::released::Released;
use crate::wait_queue::QueueHead;
use crate::watchdog::{CapacityShare, SharedLease};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A lock that is held, until it is released, dropped, or its validity ends.
///
/// It is a lease: when [`remaining`](Self::remaining) has come to zero, another client may hold the
/// lock, whatever this process is doing. Nothing can stop a thread that was just about to write;
/// see the guarantees at the top of the crate's documentation for what to do about that.
///
/// Nobody renews it unless that was [asked for](crate::LockRequest::keep_alive). A guard that is
/// leaked is not released: its lock ends with its validity, and if it is kept alive, with its
/// [`max_hold`](crate::LockRequest::max_hold).
///
/// It belongs to the process that took the lock. A forked child has a copy of it, to which the lock
/// [is not held](LockLost::OtherProcess), and which it may drop: that does nothing.
///
/// Dropping it releases the lock as [`release`](Self::release) does, but waits for nothing: it is
/// handed to the next thread of this client that waits for it, or the release is written to the
/// nodes at once, and to those that cannot be reached now with the next call after they can be.
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    core: Arc<Core>,
    /// As long as there is no hold, this says until when the lock is held.
    lease: Lease,
    /// What the watchdog shares, if it has to do with this lock.
    hold: OnceLock<Arc<SharedLease>>,
    /// What keeping it alive takes, if it is.
    share: Option<Arc<CapacityShare>>,
    /// For how long extensions may keep the lock.
    max_hold: Option<Duration>,
    /// Did the nodes say that the lock is lost, before its validity ended?
    is_gone: bool,
    is_released: bool,
    /// Has it been told that the lock is lost?
    is_loss_told: bool,
    /// The place at the head of the line of threads that want this lock. Dropped last: the next is
    /// called when the release has been written.
    head: Option<QueueHead>,
}

impl LockGuard {
    pub(crate) fn new(
        core: Arc<Core>,
        lease: Lease,
        head: Option<QueueHead>,
        max_hold: Option<Duration>,
    ) -> Self {
        let (hold, share) = (OnceLock::new(), None);
        let (is_gone, is_released, is_loss_told) = (false, false, false);
        Self { core, lease, hold, share, max_hold, is_gone, is_released, is_loss_told, head }
    }

    /// The name of what is locked; the first of them, if there are [several](Self::resources).
    #[must_use]
    pub fn resource(&self) -> Name<'_> {
        Name::new(&self.lease.key[self.core.key_prefix.len()..])
    }

    /// The names of what is locked: several if they were [asked for together], in the order of
    /// their bytes.
    ///
    /// [asked for together]: crate::LockClient::request_all
    pub fn resources(&self) -> impl Iterator<Item = Name<'_>> {
        self.lease.keys().map(|key| Name::new(&key[self.core.key_prefix.len()..]))
    }

    /// The number that grows with every grant of the lock, if it was
    /// [asked for](crate::LockRequest::fenced). Extending the lock keeps it.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.lease.fence.map(FencingToken::new)
    }

    /// The time left in which the work may go on: zero when the lock is lost.
    ///
    /// By the clock of this machine, which also counts the time it was suspended. Clock drift is
    /// already taken off.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.core.is_forked() { Duration::ZERO } else { self.left() }
    }

    fn left(&self) -> Duration {
        let now = clock::now();
        match self.hold.get() {
            Some(hold) => hold.check(now).map_or(Duration::ZERO, |end| end.since(now)),
            None => self.lease.valid_until.since(now),
        }
    }

    /// Is the lock still held? For the line before the one that must not run twice.
    ///
    /// # Errors
    ///
    /// How it was lost. A lock that was lost does not come back.
    pub fn ensure_held(&self) -> Result<(), LockLost> {
        if self.core.is_forked() {
            Err(LockLost::OtherProcess)
        } else if let Some(hold) = self.hold.get() {
            hold.check(clock::now()).map(|_| ())
        } else if !self.left().is_zero() {
            Ok(())
        } else if self.is_gone {
            Err(LockLost::Gone)
        } else {
            Err(LockLost::Expired)
        }
    }

    /// Lets the lock live on for `ttl` from now, if a majority of the nodes confirms it. Never
    /// shortens it: with a `ttl` below what is left, the lock stays as it is.
    ///
    /// On nodes that have lost the lock's key, by a restart for instance, it is put back once a
    /// majority has confirmed that the lock is ours, so that a lock which is held for long outlives
    /// the restart of one node after another.
    ///
    /// # Errors
    ///
    /// The ttl cannot be used, the lock was lost, too few nodes confirmed it, or it would be held
    /// for longer than [`max_hold`](crate::Builder::max_hold). Unless the lock was lost, it is good
    /// until its validity ends, and extending it may be tried again.
    pub fn extend(&mut self, ttl: Duration) -> Result<(), ExtendError> {
        if self.core.is_forked() {
            return Err(ExtendError::OtherProcess);
        }
        let began = self.core.now_if_listened();
        let result = self.renew(ttl);
        self.tell_extended(began, &result);
        result
    }

    fn renew(&mut self, ttl: Duration) -> Result<(), ExtendError> {
        let rules = self.extension_rules();
        let ttl = self.core.ttl(ttl, rules.min_validity).map_err(ExtendError::Ttl)?;
        self.ensure_held().map_err(ExtendError::Lost)?;
        if let Some(hold) = self.hold.get() {
            return self.extend_shared(hold, &rules, ttl);
        }
        let max_hold = rules.hold_max.unwrap_or(Duration::MAX);
        let extend = Extend::new(rules, self.lease.clone(), ttl, clock::now());
        let (outcome, last) = self.core.run(extend);
        match outcome {
            Extended::Confirmed(lease) => {
                self.lease = lease;
                if let Some(head) = &self.head {
                    head.set_key_expiry(self.lease.expires_at(&self.core.rules));
                }
                Ok(())
            }
            Extended::Unanswered(lease) => {
                self.lease = lease;
                Err(ExtendError::NoQuorum(NoQuorum::new(last.reports)))
            }
            Extended::Lost(lease) => {
                let now = clock::now();
                self.is_gone = now < self.lease.valid_until;
                let valid_until = self.lease.valid_until.min(now);
                self.lease = Lease { valid_until, ..lease };
                if let Some(head) = &self.head {
                    // Those in line need not wait for the guard.
                    head.set_key_expiry(self.lease.valid_until);
                }
                Err(ExtendError::Lost(if self.is_gone {
                    LockLost::Gone
                } else {
                    LockLost::Expired
                }))
            }
            Extended::HeldTooLong(held) => Err(ExtendError::HeldTooLong { held, max_hold }),
        }
    }

    /// Releases the lock, waits for a majority's answer, and says whether it was held to the end.
    ///
    /// If another thread of this client waits for the lock and its validity has not passed, it is
    /// handed to that thread, which has the nodes exchange the tokens. Then nothing is waited for
    /// here, and whether it was in time is said by the clock alone.
    ///
    /// # Errors
    ///
    /// Too few nodes answered. The others are told as soon as they can be reached again; their key
    /// expires with its ttl in any case.
    pub fn release(mut self) -> Result<Released, ReleaseError> {
        if self.core.is_forked() {
            return Err(ReleaseError::OtherProcess);
        }
        let result = self.give_back();
        self.tell_released(result.as_ref().ok().copied());
        result
    }

    fn give_back(&mut self) -> Result<Released, ReleaseError> {
        self.is_released = true;
        let lease = self.close();
        if self.pass_on(&lease) {
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

    /// The lock is given up: from here on nothing is sent for it but its release.
    fn close(&self) -> Lease {
        self.share.iter().for_each(|share| share.end());
        match self.hold.get() {
            Some(hold) => hold.close(clock::now(), NodeSet::all(self.core.rules.nodes)),
            None => self.lease.clone(),
        }
    }

    /// Gives the lock to the next thread in line, if there is one.
    fn pass_on(&self, lease: &Lease) -> bool {
        self.head.as_ref().is_some_and(|head| head.hand_off(lease.clone()).is_ok())
    }

    fn extension_rules(&self) -> Arc<Rules> {
        let rules = &self.core.rules;
        if self.max_hold == rules.hold_max {
            return Arc::clone(rules);
        }
        Arc::new(Rules { hold_max: self.max_hold, ..(**rules).clone() })
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.is_released || self.core.is_forked() {
            return;
        }
        let lease = self.close();
        let outcome = if self.pass_on(&lease) {
            Some(Released::InTime)
        } else {
            let now = clock::now();
            self.core.post(lease.undo(now, &self.core.rules));
            // More than what the clock says is not known: nobody waits for the nodes' answers.
            (now >= lease.valid_until).then_some(Released::TooLate)
        };
        if self.core.has_listener() {
            // This may run because the thread panics, and a second panic would end the process.
            callback::contain(|| self.tell_released(outcome));
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
