//! Being told that a lock was lost, and what a guard shares with the watchdog for that.

use super::LockGuard;
use crate::clock::{self, Time};
use crate::engine::{Extend, Extended, Rules, Ttl};
use crate::error::{ExtendError, LockLost, NoQuorum, SpawnError};
use crate::watchdog::SharedLease;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

impl LockGuard {
    /// Has `callback` called when the lock is lost: exactly once, within milliseconds after its
    /// validity has ended, or as soon as the nodes say that it is gone. At once if it is lost
    /// already. Never if the lock is released, dropped or passed on before that.
    ///
    /// The callbacks of all locks of a client run one after another on one thread, the notifier,
    /// which starts with the first and ends with the client. It is the one that tells
    /// [events](crate::Builder::on_event) that belong to no call. So a callback that blocks delays
    /// the others, and nothing else: locks are renewed by another thread, and
    /// [`ensure_held`](Self::ensure_held) and [`wait_lost`](Self::wait_lost) need none. It may
    /// panic, drop the guard or the client, and use the client; but it must not wait for another
    /// callback. What takes long, such as taking the same lock again, is better left to a thread of
    /// the program. With several callbacks, each is called.
    ///
    /// The lock is watched for this, and not kept alive: that is
    /// [`keep_alive`](crate::LockRequest::keep_alive). The alarm goes by a clock that stands still
    /// while the machine is suspended; after that the call may come late, by as long as the machine
    /// slept at most, but [`ensure_held`](Self::ensure_held) knows at once.
    ///
    /// # Errors
    ///
    /// There was no thread to call it, and `callback` will not be called. A forked child has none.
    pub fn on_lost(
        &self,
        callback: impl FnOnce(LockLost) + Send + 'static,
    ) -> Result<(), SpawnError> {
        if self.core.is_forked() {
            return Err(SpawnError::elsewhere());
        }
        self.core.start_notifier()?;
        let hold = self.hold.get_or_init(|| {
            let gone = self.is_gone.then_some(LockLost::Gone);
            Arc::new(SharedLease::new(self.lease.clone(), gone))
        });
        if hold.tell(Box::new(callback)) {
            self.core.watch_for_loss(Arc::clone(hold));
        }
        Ok(())
    }

    /// Waits until the lock is lost, for up to `timeout`. `None` if it is still held then.
    ///
    /// Needs no thread but the caller's. If that overslept, `Some` says so.
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<LockLost> {
        if self.core.is_forked() {
            return Some(LockLost::OtherProcess);
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

    /// How long ago the lock was asked for.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(self.lease.since)
    }

    /// This thread gives the lock up when it has done something, and no other can.
    pub(crate) fn bind_to_this_thread(&self) {
        if let Some(head) = &self.head {
            head.handle().bind_to_this_thread();
        }
    }

    /// Extends a lock that the watchdog knows of, and may be extending as well.
    pub(super) fn extend_shared(
        &self,
        hold: &Arc<SharedLease>,
        rules: &Arc<Rules>,
        ttl: Ttl,
    ) -> Result<(), ExtendError> {
        let now = clock::now();
        let mut begun = None;
        let begin = |lease| {
            let extend = Extend::new(Arc::clone(rules), lease, ttl, now);
            let is_sent = !extend.is_over();
            begun = Some((extend, is_sent));
            is_sent
        };
        hold.begin(now, ttl, begin).map_err(ExtendError::Lost)?;
        let (extend, is_sent) = begun.expect("what has begun is there");
        let (outcome, last) = self.core.run(extend);
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
        let settled =
            if is_sent { hold.settle(clock::now(), outcome) } else { hold.check(clock::now()) };
        if let Some(head) = &self.head {
            head.set_key_expiry(match settled {
                Ok(_) => hold.expires_at(rules),
                // Those in line need not wait for the guard.
                Err(_) => hold.valid_until(),
            });
        }
        if let Err(lost) = settled {
            // It would do so by itself only when the validity is over.
            self.core.watch_for_loss(Arc::clone(hold));
            return Err(ExtendError::Lost(lost));
        }
        error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Builder;
    use crate::core::Core;
    use crate::engine::{Lease, NodeSet, Token};

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_duration(Duration::from_millis(millis)).unwrap()
    }

    /// A lock of a minute that the watchdog shares, and that may not be held for longer. Its node
    /// is not there, so nothing is ever sent.
    fn guard() -> LockGuard {
        let settings = Builder::new().node("redis://127.0.0.1:1").check().unwrap();
        let core = Arc::new(Core::new(settings).unwrap());
        let (now, ttl) = (clock::now(), ttl(60_000));
        let lease = Lease {
            key: Arc::from(*b"key"),
            token: Token::new([1; Token::LEN]),
            extras: None,
            fence: None,
            valid_until: now.after(Duration::from_secs(50)),
            since: now,
            ttl,
            ttl_longest: ttl,
            nodes: NodeSet::EMPTY,
        };
        let hold = Arc::new(SharedLease::new(lease.clone(), None));
        let mut guard = LockGuard::new(core, lease, None, Some(Duration::from_secs(60)));
        guard.hold = hold.into();
        guard
    }

    #[test]
    fn an_extension_that_is_refused_before_anything_is_sent_changes_nothing() {
        let mut guard = guard();
        let rules = Arc::new(Rules { hold_max: guard.max_hold, ..(*guard.core.rules).clone() });
        let hold = Arc::clone(guard.hold.get().unwrap());
        let refused = guard.extend_shared(&hold, &rules, ttl(1_000_000));
        assert!(matches!(refused, Err(ExtendError::HeldTooLong { .. })), "{refused:?}");
        let lease = guard.close();
        assert_eq!((lease.ttl_longest, lease.nodes), (ttl(60_000), NodeSet::EMPTY));
        guard.is_released = true;
    }
}
