//! Extending a lock: by a call, or automatically.

use super::LockGuard;
use crate::clock;
use crate::engine::{Extended, Extension};
use crate::entropy::draw;
use crate::error::{Error, NoQuorum};
use crate::event::Event;
use crate::watchdog::{KeptLock, MAX_HOLD, Plan, Watchdog};
use std::sync::Arc;
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
        let result = self.extend_held(ttl);
        self.emit_extended(began, &result);
        result
    }

    fn extend_held(&mut self, ttl: Duration) -> Result<(), Error> {
        let rules = &self.core.rules;
        let ttl = self.core.ttl(ttl, rules.min_validity).map_err(Error::Ttl)?;
        let now = clock::now();
        let held = now
            .after(ttl.as_duration())
            .since(self.held.granted().since);
        if let Some(max_hold) = self.max_hold.filter(|most| held > *most) {
            self.ensure_held()?;
            return Err(Error::HeldTooLong { held, max_hold });
        }
        let mut begun = None;
        let begin = self
            .held
            .begin_extension(now, ttl, |held| begun.replace(held).is_none());
        begin.map_err(|reason| Error::Lost(self.loss(reason)))?;
        let begun = begun.expect("an extension that began without an error is there");
        let (outcome, reports) = self.core.backend.extend(Extension {
            held: begun,
            ttl,
            began: now,
            is_resumed: false,
        });
        let is_confirmed = matches!(outcome, Extended::Confirmed(_));
        let held_until = self.held.finish_extension(clock::now(), outcome);
        if let Some(head) = &self.head {
            head.set_key_expiry(match held_until {
                Ok(_) => self.held.key_expires_at(rules),
                // The next waiter need not wait for this guard to be dropped.
                Err(_) => self.held.valid_until(),
            });
        }
        if let Err(reason) = held_until {
            // The notifier would find it only when the validity would have passed.
            self.core.notifier.watch_for_loss(Arc::clone(&self.held));
            return Err(Error::Lost(self.loss(reason)));
        }
        // Too late for this extension to be confirmed is not lost, if the watchdog has extended the
        // lock meanwhile.
        if is_confirmed {
            Ok(())
        } else {
            Err(Error::NoQuorum(NoQuorum::new(reports)))
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
