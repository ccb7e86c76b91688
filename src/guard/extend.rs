//! Extending a lock by a call.

use super::LockGuard;
use crate::clock;
use crate::engine::{Extend, Extended, Rules, Ttl};
use crate::error::{Error, NoQuorum};
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
    /// ```no_run
    /// # use redlatch::LockClient;
    /// # use std::time::Duration;
    /// # fn first_half() {}
    /// # fn second_half() {}
    /// # fn example(client: &LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// let ttl = Duration::from_secs(10);
    /// let mut lock = client.lock("orders:42", ttl)?;
    /// first_half();
    /// lock.extend(ttl)?; // ten seconds from here
    /// second_half();
    /// lock.release()?;
    /// # Ok(())
    /// # }
    /// ```
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
        let began = self.core.now_if_listened();
        let result = self.extend_held(ttl);
        self.emit_extended(began, &result);
        result
    }

    fn extend_held(&mut self, ttl: Duration) -> Result<(), Error> {
        let rules = self.extension_rules();
        let ttl = self.core.ttl(ttl, rules.min_validity).map_err(Error::Ttl)?;
        let (extend, is_sent) = self.begin_extension(&rules, ttl)?;
        let (outcome, last) = self.core.run(extend);
        let error = match &outcome {
            Extended::HeldTooLong(held) => {
                let max_hold = rules.hold_max.unwrap_or(Duration::MAX);
                Some(Error::HeldTooLong { held: *held, max_hold })
            }
            // Too late for this extension to be confirmed is not lost, if the watchdog has extended
            // the lock meanwhile.
            Extended::Unanswered(_) | Extended::Lost(_) => {
                Some(Error::NoQuorum(NoQuorum::new(last.reports)))
            }
            Extended::Confirmed(_) => None,
        };
        let now = clock::now();
        let held_until =
            if is_sent { self.held.finish_extension(now, outcome) } else { self.held.check(now) };
        if let Some(head) = &self.head {
            head.set_key_expiry(match held_until {
                Ok(_) => self.held.key_expires_at(&rules),
                // The next waiter need not wait for this guard to be dropped.
                Err(_) => self.held.valid_until(),
            });
        }
        if let Err(reason) = held_until {
            // The notifier would find it only when the validity would have passed.
            self.core.watch_for_loss(Arc::clone(&self.held));
            return Err(Error::Lost(self.loss(reason)));
        }
        error.map_or(Ok(()), Err)
    }

    /// Begins an extension, and says whether it has a request to send.
    fn begin_extension(&self, rules: &Arc<Rules>, ttl: Ttl) -> Result<(Extend, bool), Error> {
        let now = clock::now();
        let mut begun = None;
        let begin = |held| {
            let extend = Extend::new(Arc::clone(rules), held, ttl, now);
            let is_sent = !extend.is_over();
            begun = Some((extend, is_sent));
            is_sent
        };
        let lost = |reason| Error::Lost(self.loss(reason));
        self.held.begin_extension(now, ttl, begin).map_err(lost)?;
        Ok(begun.expect("an extension that began without an error is there"))
    }

    /// The client's rules, with the limit of this lock.
    fn extension_rules(&self) -> Arc<Rules> {
        let rules = &self.core.rules;
        if self.max_hold == rules.hold_max {
            return Arc::clone(rules);
        }
        Arc::new(Rules { hold_max: self.max_hold, ..(**rules).clone() })
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
        let builder =
            Builder::new().nodes(["redis://127.0.0.1:1"]).max_ttl(Duration::from_secs(900));
        let core = Arc::new(Core::new(builder.check().unwrap()).unwrap());
        LockGuard::new(core, held_lock(1), None, Some(Duration::from_secs(60)))
    }

    #[test]
    fn an_extension_that_is_refused_before_anything_is_sent_changes_nothing() {
        let mut guard = guard();
        let before = guard.held.granted().clone();
        let refused = guard.extend(Duration::from_secs(900));
        assert!(matches!(refused, Err(Error::HeldTooLong { .. })), "{refused:?}");
        assert!(guard.ensure_held().is_ok());
        let held = guard.close();
        assert_eq!((held.ttl_longest, held.nodes), (before.ttl_longest, NodeSet::EMPTY));
        assert_eq!((held.valid_until, held.ttl), (before.valid_until, before.ttl));
    }
}
