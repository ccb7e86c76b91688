//! Resuming a lock that another process holds, or held, by its token.

use super::LockRequest;
use super::request::LockKeys;
use crate::clock;
use crate::engine::{Extend, Extended};
use crate::error::{Error, LockLost, LossReason, NoQuorum, NotResumable};
use crate::event::Event;
use crate::guard::{LockGuard, LockToken};
use crate::name::Name;
use std::sync::Arc;

impl LockRequest<'_> {
    /// Makes a guard of a lock that is held and has none, by its [token](LockGuard::into_token): a
    /// majority of the nodes confirms that they have the lock, and extends it to the
    /// [ttl](Self::ttl) of this request, never shortening it. It does not wait, for there is
    /// nothing to wait for.
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # fn transcode() {}
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// let token = std::env::var("LOCK_TOKEN").unwrap_or_default().parse()?;
    /// let lock = client.request("video:42").keep_alive().resume(&token)?;
    /// transcode();
    /// lock.release()
    /// # }
    /// ```
    ///
    /// The request names the same resources, all of them, as the one that acquired the lock, with
    /// the same
    /// [prefix](crate::Builder::key_prefix). Its settings hold from here on, as if it had been
    /// requested now: [`keep_alive`](Self::keep_alive), [`max_hold`](Self::max_hold),
    /// [`hold_at_least`](Self::hold_at_least), [`min_validity`](Self::min_validity). What the lock
    /// is does not change: its [fencing token](LockGuard::fencing_token), its
    /// [slot](LockGuard::slot), whether it is a reader's and its owner are those of the token.
    ///
    /// The lock is held from when this returns. If it had ended before, this is an error;
    /// [the guarantees](crate::guide::guarantees#locks-that-another-process-resumes) have what is
    /// known of the time in between. The listener gets [`Event::Acquired`], or [`Event::Failed`].
    ///
    /// # Errors
    ///
    /// * [`Error::Lost`]: no majority has the lock. It has ended, or was released or removed; of
    ///   several resources, at least one. What is left of it is released.
    /// * [`Error::NoQuorum`], [`Error::TooSlow`]: too few nodes answered, or too late. The lock is
    ///   as it was, and resuming it may be tried again.
    /// * [`Error::NotResumable`]: on ZooKeeper; or the names are not those of the token.
    /// * What [`lock`](Self::lock) refuses before it asks a node.
    pub fn resume(self, token: &LockToken) -> Result<LockGuard, Error> {
        let core = &self.client.core;
        if core.is_forked() {
            return Err(Error::OtherProcess);
        }
        if core.backend.keeps_locks_in_session() {
            return Err(Error::NotResumable(NotResumable::Session));
        }
        if core.cancellation.call(self.settings.cancelled_by.as_ref()).is_cancelled() {
            return Err(Error::Cancelled);
        }
        let keys = self.keys.as_ref().map_err(|error| Error::Resource(*error))?;
        // Asked with others, the nodes would find that those are not held, and the lock lost.
        if !token.is_of(&keys.first, &keys.more) {
            return Err(Error::NotResumable(NotResumable::OtherNames));
        }
        let began = clock::now();
        let result = self.resumed(keys, token);
        if !matches!(result, Err(Error::Ttl(_))) {
            let resource = Name::new(&keys.first[core.key_prefix.len()..]);
            let (attempts, waited) = (0, clock::now().since(began));
            core.emit(|| match &result {
                Ok(guard) => {
                    Event::Acquired { resource, attempts, waited, validity: guard.remaining() }
                }
                Err(error) => Event::Failed { resource, attempts, waited, error },
            });
        }
        result
    }

    fn resumed(&self, keys: &LockKeys, token: &LockToken) -> Result<LockGuard, Error> {
        let Self { client, settings, .. } = self;
        let (core, rules) = (&client.core, &client.core.rules);
        let least = settings.min_validity.unwrap_or(rules.min_validity);
        let ttl = core.ttl(settings.ttl, least).map_err(Error::Ttl)?;
        client.check_hold_at_least(settings).map_err(Error::Ttl)?;
        client.prepare_keeping(settings, ttl, keys.iter().map(<[u8]>::len).sum())?;
        let began = clock::now();
        let held = token.held((&keys.first, &keys.more), core.fencing_expiry, ttl, began, rules);
        let (outcome, last) = core.run(Extend::new(Arc::clone(rules), held, ttl, began));
        let now = clock::now();
        match outcome {
            Extended::Confirmed(held) if now.after(least) < held.valid_until => {
                client.guard(held, None, settings)
            }
            Extended::Lost(held) if now < held.valid_until => {
                // What a minority still has is nobody's, and was extended.
                core.post(held.undo(now, rules));
                let resource = &keys.first[core.key_prefix.len()..];
                Err(LockLost::new(resource, LossReason::Gone).into())
            }
            Extended::Confirmed(_) | Extended::Lost(_) => {
                Err(Error::TooSlow { took: now.since(began), ttl: ttl.as_duration() })
            }
            Extended::Unanswered(_) => Err(Error::NoQuorum(NoQuorum::new(last.reports))),
            Extended::HeldTooLong(held) => {
                let max_hold = rules.hold_max.unwrap_or(held);
                Err(Error::HeldTooLong { held, max_hold })
            }
        }
    }
}
