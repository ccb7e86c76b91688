//! Locks that are extended automatically.

use super::LockGuard;
use crate::clock;
use crate::core::{Backend, Redlock, draw};
use crate::error::{Error, LockLost};
use crate::event::Event;
use crate::watchdog::{KeptLock, MAX_HOLD, Plan, Watchdog};
use std::sync::Arc;

impl LockGuard {
    /// Extends the lock automatically from now on.
    ///
    /// # Errors
    ///
    /// The watchdog has no capacity left, or its thread cannot be started. The guard is dropped,
    /// which releases the lock.
    pub(crate) fn keep_alive(self) -> Result<Self, Error> {
        let core = Arc::clone(&self.core);
        match &core.backend {
            Backend::Redlock(Redlock { watchdog, .. }) => self.extended_by(watchdog),
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(_) => self.kept_by_its_session(),
        }
    }

    /// Nothing has to be done for a lock that lives as long as the client's session.
    #[cfg(feature = "zookeeper")]
    fn kept_by_its_session(mut self) -> Result<Self, Error> {
        if self.core.has_listener() {
            self.emit_when_lost()?;
        }
        Ok(self)
    }

    fn extended_by(mut self, watchdog: &Watchdog) -> Result<Self, Error> {
        // If there are no random numbers now, extensions are less spread out.
        let seed = draw().map_or(0, |draw| draw.seed);
        let longest = self.max_hold.unwrap_or(MAX_HOLD);
        let core = Arc::clone(&self.core);
        let (since, ttl) = (self.held.granted().since, self.held.granted().ttl);
        let plan = Plan::new(&core.rules, ttl, since, longest, seed);
        let load = watchdog.load();
        // From the first byte to the answer that decided it, or a little longer.
        load.record_round(clock::now().since(since));
        let capacity = Arc::new(load.reserve(core.demand(ttl, self.held.key_bytes()))?);
        self.capacity = Some(Arc::clone(&capacity));
        let is_emitted = core.has_listener();
        if is_emitted {
            self.emit_when_lost()?;
        }
        let head = self.head.as_ref().map(|head| head.handle().clone());
        let held = Arc::clone(&self.held);
        let kept = KeptLock { held, plan: Box::new(plan), capacity, head, is_emitted };
        watchdog.keep(kept).map_err(Error::Spawn)?;
        Ok(self)
    }

    /// Has the notifier emit the loss of this lock when it happens, and not only when a call on the
    /// guard finds it.
    pub(super) fn emit_when_lost(&mut self) -> Result<(), Error> {
        let Some(listener) = self.core.listener.clone() else { return Ok(()) };
        let since = self.since;
        let emit = move |lost: LockLost| {
            let (held, reason) = (clock::now().since(since), lost.reason());
            listener.emit(&Event::Lost { resource: lost.resource(), held, reason });
        };
        self.on_lost(emit)?;
        self.is_loss_emitted = true;
        Ok(())
    }
}
