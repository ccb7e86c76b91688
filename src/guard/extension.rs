//! Extending a lock: by a call, or automatically.

use super::LockGuard;
use crate::clock::{self, Time};
use crate::core::Core;
use crate::driver::Driven;
use crate::engine::{Extended, Ttl};
use crate::entropy::draw;
use crate::error::{Error, LockLost, LossReason, NoQuorum};
use crate::event::Event;
use crate::node::NodeReport;
use crate::pending::{Call, Pending};
use crate::wait_queue::HeadHandle;
use crate::watchdog::{GuardedLock, KeptLock, MAX_HOLD, Plan, Watchdog};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

impl LockGuard {
    /// Extends the lock to `ttl` from now, if a majority of the nodes confirms it. Never shortens
    /// it: with a `ttl` below the time that is left, the lock stays as it is.
    ///
    /// Nodes that have lost the key, by a restart for instance, get it back once a majority has
    /// confirmed that the lock is held. So a lock that is held for long outlives the restart of one
    /// node after another. On ZooKeeper, the ensemble is asked whether the lock is still there.
    ///
    /// # Errors
    ///
    /// The ttl cannot be used, the lock was lost, too few nodes confirmed the extension, or the
    /// lock would be held for longer than [`max_hold`](crate::Builder::max_hold). Unless it was
    /// lost, it stays valid until its validity has passed, and may be extended again.
    pub fn extend(&mut self, ttl: Duration) -> Result<(), Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        let began = self.core.events.now_if_listened();
        let result = Extender::of(self).extend(ttl);
        self.emit_extended(began, &result);
        result
    }

    /// As [`extend`](Self::extend), without a thread that waits for the answers.
    ///
    /// It begins when it is first polled. Dropped before that, it does nothing. Dropped later, it
    /// may still extend the lock, unless that is given up first, and nobody is told its result.
    ///
    /// # Errors
    ///
    /// As [`extend`](Self::extend). [`Error::Spawn`]: the thread that goes on with such calls could
    /// not be started, and the lock is as it was.
    pub fn extend_async(&mut self, ttl: Duration) -> Extending<'_> {
        let extender = Extender::of(self);
        let call = Box::new(move |driven| {
            let call: Call<()> = Box::pin(extender.extend_started(ttl, driven));
            call
        });
        Extending {
            call: Pending::new(&self.core, call, Box::new(Ok)),
            guard: self,
            began: None,
        }
    }

    /// Extends the lock automatically from now on. With an error, the watchdog has no capacity left
    /// or its thread cannot be started, and the guard is dropped, which releases the lock.
    pub(crate) fn keep_alive(self) -> Result<Self, Error> {
        let core = Arc::clone(&self.core);
        match core.backend.watchdog() {
            Some(watchdog) => self.extended_by(watchdog),
            // It lives as long as the client's session.
            None => self.kept_by_others(),
        }
    }

    fn extended_by(mut self, watchdog: &Watchdog) -> Result<Self, Error> {
        // If there are no random numbers now, extensions are less spread out.
        let seed = draw().map_or(0, |draw| draw.seed);
        let longest = self.max_hold.unwrap_or(MAX_HOLD);
        let core = Arc::clone(&self.core);
        let since = self.held.granted().since;
        let ttl = self.held.granted().ttl;
        let plan = Plan::new(&core.rules, ttl, since, longest, seed);
        let load = watchdog.load();
        // From the first byte to the answer that decided it, or a little longer.
        load.record_round(clock::now().since(since));
        let capacity = Arc::new(load.reserve(core.demand(ttl, self.held.key_bytes()))?);
        self.capacity = Some(Arc::clone(&capacity));
        let is_emitted = self.emit_when_lost()?;
        let head = self.head.as_ref().map(|head| head.handle().clone());
        let held = Arc::clone(&self.held);
        let kept = KeptLock {
            held,
            plan: Box::new(plan),
            capacity,
            head,
            is_emitted,
        };
        watchdog.keep(kept).map_err(Error::Spawn)?;
        Ok(self)
    }

    /// Has the notifier emit the loss of this lock when it happens, and not only when a call on the
    /// guard finds it, if there is a listener. Returns whether there is.
    pub(super) fn emit_when_lost(&mut self) -> Result<bool, Error> {
        let Some(listener) = self.core.events.listener().cloned() else {
            return Ok(false);
        };
        let since = self.since;
        self.on_lost(move |lost| {
            listener.emit(&Event::Lost {
                resource: lost.resource(),
                held: clock::now().since(since),
                reason: lost.reason(),
            });
        })?;
        self.is_loss_emitted = true;
        Ok(true)
    }
}

/// An extension that takes no thread: see [`LockGuard::extend_async`].
#[must_use = "it does nothing until it is polled"]
pub struct Extending<'a> {
    guard: &'a mut LockGuard,
    call: Pending<()>,
    /// Since when it is under way, if there was a listener then.
    began: Option<Time>,
}

impl Future for Extending<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { guard, call, began } = &mut *self;
        if !call.has_begun() {
            *began = guard.core.events.now_if_listened();
        }
        let Poll::Ready(result) = Pin::new(call).poll(context) else {
            return Poll::Pending;
        };
        guard.emit_extended(*began, &result);
        Poll::Ready(result)
    }
}

impl fmt::Debug for Extending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extending")
            .field("guard", self.guard)
            .finish_non_exhaustive()
    }
}

/// What an extension uses of a guard. One that was started has it, and not the guard, which may be
/// gone before the nodes have answered.
struct Extender {
    core: Arc<Core>,
    held: Arc<GuardedLock>,
    head: Option<HeadHandle>,
    max_hold: Option<Duration>,
}

impl Extender {
    fn of(guard: &LockGuard) -> Self {
        Self {
            core: Arc::clone(&guard.core),
            held: Arc::clone(&guard.held),
            head: guard.head.as_ref().map(|head| head.handle().clone()),
            max_hold: guard.max_hold,
        }
    }

    fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let now = clock::now();
        let ttl = self.checked(ttl, now)?;
        let begun = self.held.extension(now, ttl);
        let extension = begun.map_err(|reason| self.lost(reason))?;
        let (outcome, reports) = self.core.backend.extend(extension);
        self.conclude(outcome, reports)
    }

    /// The same, in whichever thread polls it.
    async fn extend_started(self, ttl: Duration, driven: Driven) -> Result<(), Error> {
        let ttl = self.checked(ttl, clock::now())?;
        let backend = &self.core.backend;
        let ended = backend.start_extension(&driven, &self.held, ttl).await;
        let (outcome, reports) = ended.map_err(|reason| self.lost(reason))?;
        self.conclude(outcome, reports)
    }

    /// The ttl, if an extension that begins now may have it.
    fn checked(&self, ttl: Duration, now: Time) -> Result<Ttl, Error> {
        let least = self.core.rules.min_validity;
        let ttl = self.core.ttl(ttl, least).map_err(Error::Ttl)?;
        let held = now
            .after(ttl.as_duration())
            .since(self.held.granted().since);
        match self.max_hold.filter(|most| held > *most) {
            Some(max_hold) => {
                self.held.check(now).map_err(|reason| self.lost(reason))?;
                Err(Error::HeldTooLong { held, max_hold })
            }
            None => Ok(ttl),
        }
    }

    fn conclude(&self, outcome: Extended, reports: Vec<NodeReport>) -> Result<(), Error> {
        let result = match outcome {
            Extended::Confirmed(_) => Ok(()),
            Extended::HeldTooLong(held) => {
                let max_hold = self.core.rules.hold_max.unwrap_or(held);
                Err(Error::HeldTooLong { held, max_hold })
            }
            Extended::Unanswered(_) | Extended::Lost(_) => {
                Err(Error::NoQuorum(NoQuorum::new(reports)))
            }
        };
        let held_until = self.held.finish_extension(clock::now(), outcome);
        if let Some(head) = &self.head {
            head.set_key_expiry(match held_until {
                Ok(_) => self.held.key_expires_at(&self.core.rules),
                // The next waiter need not wait for this guard to be dropped.
                Err(_) => self.held.valid_until(),
            });
        }
        if let Err(reason) = held_until {
            // The notifier would find it only when the validity would have passed.
            self.core.notifier.watch_for_loss(Arc::clone(&self.held));
            return Err(self.lost(reason));
        }
        // Too late for this extension to be confirmed is not lost, if the watchdog has extended the
        // lock meanwhile.
        result
    }

    fn lost(&self, reason: LossReason) -> Error {
        let resource = &self.held.granted().key[self.core.key_prefix.len()..];
        Error::Lost(LockLost::new(resource, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Builder;
    use crate::core::Core;
    use crate::engine::NodeSet;
    use crate::guard::fixture::held_lock;

    /// A lock that may not be held for longer than a minute. Its node is down.
    fn guard() -> LockGuard {
        let builder = Builder::new()
            .nodes(["redis://127.0.0.1:1"])
            .max_ttl(Duration::from_secs(900));
        let core = Arc::new(Core::new(builder.check().unwrap()).unwrap());
        LockGuard::new(core, held_lock(1), None, Some(Duration::from_secs(60)))
    }

    #[test]
    fn an_extension_that_is_refused_before_anything_is_sent_changes_nothing() {
        let mut guard = guard();
        let before = guard.held.granted().clone();
        let refused = guard.extend(Duration::from_secs(900));
        assert!(
            matches!(refused, Err(Error::HeldTooLong { .. })),
            "{refused:?}"
        );
        assert!(guard.ensure_held().is_ok());
        let held = guard.close();
        assert_eq!(
            (held.ttl_longest, held.nodes),
            (before.ttl_longest, NodeSet::EMPTY)
        );
        assert_eq!(
            (held.valid_until, held.ttl),
            (before.valid_until, before.ttl)
        );
    }
}
