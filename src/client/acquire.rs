//! Taking a lock: the four ways are one.

use super::request::Terms;
use super::{LockClient, draw};
use crate::clock::{self, Time};
use crate::engine::{Acquire, Acquired, Jitter, Patience};
use crate::error::{LockError, NoQuorum};
use crate::guard::LockGuard;
use crate::line::{Joined, Place};
use std::sync::Arc;
use std::time::Duration;

/// How long a thread at the head of its line pauses at most before it asks the nodes again, when
/// the lock has gone from thread to thread for as long as it may: other processes ask now and then,
/// and should find it free once.
const PAUSE_AFTER_LIMIT: Duration = Duration::from_millis(20);

impl LockClient {
    /// All ways to take a lock.
    pub(super) fn acquire(
        &self,
        key: &Arc<[u8]>,
        terms: &Terms,
    ) -> Result<Option<LockGuard>, LockError> {
        let rules = &self.shared.rules;
        let least = terms.min_validity.unwrap_or(rules.min_validity);
        let ttl = self.ttl(terms.ttl, least).map_err(LockError::Ttl)?;
        self.prepare_keeping(terms, ttl)?;
        let patience = terms.wait.patience();
        let acquire = Acquire::new(Arc::clone(rules), Arc::clone(key), ttl, patience);
        let acquire = acquire.leaving(least);
        let Some((place, acquire)) = self.stand_in_line(key, patience, acquire) else {
            return Ok(None);
        };
        let (outcome, last) = self.run(acquire);
        match outcome {
            Acquired::Held(lease) => {
                if let Some(place) = &place {
                    place.hold(lease.expires_at(rules));
                }
                self.guard(lease, place, terms).map(Some)
            }
            Acquired::Contended => Ok(None),
            Acquired::Unanswered => Err(LockError::NoQuorum(NoQuorum::new(last.reports))),
            Acquired::TooLate(took) => Err(LockError::TooLate { took, ttl: ttl.as_duration() }),
            Acquired::NoEntropy => Err(LockError::NoEntropy),
            Acquired::SameServer => {
                let (first, second) = last.twins.unwrap_or_else(|| ("?".into(), "?".into()));
                Err(LockError::SameServer { first, second })
            }
        }
    }

    /// Waits until no other thread of this client is before this one, and prepares to take the lock
    /// over if it is handed on. `None` if time was over before that, with another thread holding
    /// the lock.
    fn stand_in_line(
        &self,
        key: &Arc<[u8]>,
        patience: Patience,
        mut acquire: Acquire,
    ) -> Option<(Option<Place>, Acquire)> {
        let deadline = match patience {
            Patience::Once => Some(Time::ZERO),
            Patience::Until(deadline) => Some(deadline),
            Patience::Forever => None,
        };
        let node_timeout = self.shared.rules.node_timeout;
        let (place, lease) = match self.shared.lines.join(key, deadline, node_timeout) {
            Joined::Head(place, lease) => (place, lease),
            Joined::Outside => return Some((None, acquire)),
            Joined::TimedOut => return None,
        };
        if let Some(lease) = lease {
            let now = clock::now();
            if deadline.is_none_or(|deadline| now < deadline) {
                acquire = acquire.succeeding(lease);
            } else {
                if let Err(lease) = place.pass(lease) {
                    self.post(lease.undo(now, &self.shared.rules));
                }
                return None;
            }
        } else if place.is_after_limit() {
            let now = clock::now();
            let seed = draw().map_or(0, |draw| draw.seed);
            let pause = Jitter::from_seed(seed).below(PAUSE_AFTER_LIMIT);
            // An attempt must fit in before the caller's deadline.
            let left = deadline.map_or(Duration::MAX, |deadline| deadline.since(now));
            let pause = pause.min(left / 2);
            acquire = acquire.pausing(now.after(pause));
        }
        Some((Some(place), acquire))
    }
}
