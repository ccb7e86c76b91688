//! Being told that a lock was lost, and what a guard shares with the watchdog for that.

use super::LockGuard;
use crate::clock::{self, Time};
use crate::engine::{Extend, Extended, Rules, Ttl};
use crate::error::{ExtendError, Lost, NoQuorum, NoThread};
use crate::watchdog::Hold;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

impl LockGuard {
    /// Has `callback` called when the lock is lost: exactly once, within milliseconds after its
    /// validity has ended, or as soon as the nodes say that it is gone. At once if it is lost
    /// already. Never if the lock is released, dropped or passed on before that.
    ///
    /// It runs on a thread of its own, so it may block, panic, or take the same lock. If the system
    /// has no thread to give then, it is asked again every 100 ms. With several callbacks, each is
    /// called.
    ///
    /// The lock is watched for this by the client's one background thread, and not kept alive by
    /// it: that is [`keep_alive`](crate::LockRequest::keep_alive). The alarm goes by a clock that
    /// stands still while the machine is suspended; after that the call may come late, by as long
    /// as the machine slept at most, but [`ensure_held`](Self::ensure_held) knows at once. If
    /// renewals of other locks are under way at nodes that do not answer when this is called, and
    /// this lock ends meanwhile, the call waits for the end of their round: a
    /// [`node_timeout`](crate::Builder::node_timeout) at most.
    ///
    /// # Errors
    ///
    /// There was no thread to watch with, and `callback` will not be called. Not for a lock that is
    /// kept alive, except in a forked child, which has none.
    pub fn on_lost(&self, callback: impl FnOnce(Lost) + Send + 'static) -> Result<(), NoThread> {
        if self.client.is_foreign() {
            return Err(NoThread::elsewhere());
        }
        let hold = self.hold()?;
        hold.tell(Box::new(callback));
        if hold.check(clock::now()).is_err() {
            // Its alarm may have come and gone.
            self.client.watch(Arc::clone(hold))?;
        }
        Ok(())
    }

    /// Waits until the lock is lost, for up to `timeout`. `None` if it is still held then.
    ///
    /// Needs no thread but the caller's. If that overslept, `Some` says so.
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<Lost> {
        if self.client.is_foreign() {
            return Some(Lost::OtherProcess);
        }
        if let Some(hold) = self.hold.get() {
            return hold.wait(clock::now, timeout);
        }
        // Nobody can extend it meanwhile: that takes the guard for oneself.
        let deadline = clock::now().after(timeout);
        loop {
            if let Err(lost) = self.ensure_held() {
                return Some(lost);
            }
            let now = clock::now();
            if now >= deadline {
                return None;
            }
            thread::sleep(self.lease.valid_until.min(deadline).since(now));
        }
    }

    /// The guard of a lock that the watchdog knows of.
    pub(crate) fn sharing(mut self, hold: Arc<Hold>) -> Self {
        self.hold = hold.into();
        self
    }

    /// When the lock was asked for.
    pub(crate) fn since(&self) -> Time {
        self.lease.since
    }

    /// How long ago that was.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.lease.since)
    }

    fn hold(&self) -> Result<&Arc<Hold>, NoThread> {
        self.client.start_watchdog()?;
        Ok(self.hold.get_or_init(|| {
            let gone = self.is_gone.then_some(Lost::Gone);
            let hold = Arc::new(Hold::new(self.lease.clone(), gone));
            // The thread runs, so this does not fail.
            let _ = self.client.watch(Arc::clone(&hold));
            hold
        }))
    }

    /// Extends a lock that the watchdog knows of, and may be extending as well.
    pub(super) fn extend_shared(
        &self,
        hold: &Arc<Hold>,
        rules: &Arc<Rules>,
        ttl: Ttl,
    ) -> Result<(), ExtendError> {
        let now = clock::now();
        let mut lease = None;
        hold.begin(now, ttl, |held| lease = Some(held)).map_err(ExtendError::Lost)?;
        let lease = lease.expect("what has begun has a lease");
        let (outcome, last) = self.client.run(Extend::new(Arc::clone(rules), lease, ttl, now));
        let error = match &outcome {
            Extended::HeldTooLong(held) => {
                let max_hold = rules.hold_max.unwrap_or(Duration::MAX);
                Some(ExtendError::HeldTooLong { held: *held, max_hold })
            }
            // A lock that was lost for this extension only, too late to be confirmed, may have been
            // renewed by another.
            Extended::Unanswered(_) | Extended::Lost(_) => {
                Some(ExtendError::NoQuorum(NoQuorum::new(last.reports)))
            }
            Extended::Confirmed(_) => None,
        };
        let settled = hold.settle(clock::now(), outcome);
        if let Some(place) = &self.place {
            place.hold(match settled {
                Ok(_) => hold.expires_at(rules),
                // Those in line need not wait for the guard.
                Err(_) => hold.valid_until(),
            });
        }
        if let Err(lost) = settled {
            // Its alarm would come only when the validity is over. If there is no thread, then it
            // was not watched.
            let _ = self.client.watch(Arc::clone(hold));
            return Err(ExtendError::Lost(lost));
        }
        error.map_or(Ok(()), Err)
    }
}
