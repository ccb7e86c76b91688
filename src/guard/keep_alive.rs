//! Locks that are extended automatically.

use super::LockGuard;
use crate::clock;
use crate::core::draw;
use crate::error::LockError;
use crate::event::Event;
use crate::name::Name;
use crate::watchdog::{KeptLock, MAX_HOLD, Plan, SharedLease};
use std::sync::Arc;

impl LockGuard {
    /// Extends the lock automatically from now on.
    ///
    /// # Errors
    ///
    /// The watchdog has no capacity left, or there is no thread to be had. The guard is dropped,
    /// which gives the lock up.
    pub(crate) fn keep_alive(mut self) -> Result<Self, LockError> {
        // If there are no random numbers now, extensions are less spread out.
        let seed = draw().map_or(0, |draw| draw.seed);
        let longest = self.max_hold.unwrap_or(MAX_HOLD);
        let (core, since, ttl) = (Arc::clone(&self.core), self.lease.since, self.lease.ttl);
        let plan = Plan::new(&core.rules, ttl, since, longest, seed);
        let load = core.watchdog.load();
        // From the first byte to the answer that decided it, or a little longer.
        load.took(clock::now().since(since));
        let hold = Arc::new(SharedLease::new(self.lease.clone(), None));
        let share = Arc::new(load.keep(core.demand(ttl, hold.key_bytes()))?);
        self.hold = Arc::clone(&hold).into();
        self.share = Some(Arc::clone(&share));
        let is_told = core.has_listener();
        if is_told {
            self.emit_when_lost()?;
        }
        let tenure = self.head.as_ref().map(|head| head.handle().clone());
        let kept = KeptLock { hold, plan: Box::new(plan), share, tenure, is_told };
        core.watchdog.keep(kept).map_err(LockError::Spawn)?;
        Ok(self)
    }

    /// Has the notifier emit the loss of this lock when it happens, and not only when a call on the
    /// guard finds it.
    fn emit_when_lost(&mut self) -> Result<(), LockError> {
        let Some(listener) = self.core.listener.clone() else { return Ok(()) };
        let (resource, since) = (self.resource().as_bytes().to_vec(), self.lease.since);
        let emit = move |lost| {
            let held = clock::now().since(since);
            listener.emit(&Event::Lost { resource: Name::new(&resource), held, lost });
        };
        self.on_lost(emit).map_err(LockError::Spawn)?;
        self.is_loss_told = true;
        Ok(())
    }
}
