//! Keys that have data which is not a lock: a refusal does not tell them from locks that are held,
//! and nobody is ever granted a lock there.
//!
//! So after a refusal the nodes are asked what they have, in a round of its own. What is found to
//! be a lock is believed for five seconds: in that time no other call of this client asks for that
//! name. A call that goes on waiting asks once more when other data may have taken the lock's
//! place, five seconds after it asked last: if its renewals in the nodes' queue say that the key
//! has no ttl, which is so of hardly any lock, and always if it does not queue, as nothing else
//! tells it.
//!
//! That costs locks that are free nothing, and those that are held one round a call at most, and
//! one in five seconds.

use super::call::{Call, NodesCaller};
use super::{look, snapshot};
use crate::clock::{self, Time};
use crate::engine::{Acquire, Acquired, Step, Wait};
use crate::error::Error;
use crate::inspect::{NotALock, OtherData};
use crate::node::NodeReport;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// For how long a key is believed to have a lock, and a call that waits does not ask again.
const BELIEVED: Duration = Duration::from_secs(5);

/// How many names are remembered. Beyond that all are forgotten, and asked about once more.
const NAMES_MAX: usize = 4096;

/// What the nodes had under names that were refused, by hashes of their keys: of two names with one
/// hash, one may be asked about later than it would be.
#[derive(Default)]
pub(super) struct LastLooks(Mutex<BTreeMap<u64, Look>>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It may be a lock, and is believed to be one until this time.
    LockUntil(Time),
    /// It is not. The caller asks each time, and has told the listener.
    Other(NotALock),
}

impl LastLooks {
    fn is_due(&self, key: &[u8], now: Time) -> bool {
        let looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(looks.get(&hash(key)), Some(Look::LockUntil(until)) if now < *until)
    }

    /// Why the data under this key is not a lock, as a call that was refused found last.
    pub(super) fn other_data(&self, key: &[u8]) -> Option<NotALock> {
        let looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match looks.get(&hash(key)) {
            Some(Look::Other(reason)) => Some(*reason),
            _ => None,
        }
    }

    /// Returns whether this is another result than before.
    fn note(&self, key: &[u8], look: Look) -> bool {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.len() >= NAMES_MAX {
            looks.clear();
        }
        looks.insert(hash(key), look) != Some(look)
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl<C: NodesCaller> Call<'_, '_, C> {
    /// May a call that was refused ask, before this step, why? One that waits has its place in the
    /// queue by then; one that does not is over.
    pub(super) fn may_look(&self, acquire: &Acquire, step: &Step) -> bool {
        let is_time = match (step, self.looked) {
            (Step::Done(Acquired::Contended), None) => true,
            (Step::Wait(_) | Step::Pause(_), None) => self.spec.wait != Wait::No,
            (Step::Wait(_) | Step::Pause(_), Some(looked)) => {
                acquire.may_last() && clock::now() >= looked.after(BELIEVED)
            }
            (Step::Send(_) | Step::Done(_), _) => false,
        };
        is_time && !self.spec.call.is_cancelled() && !self.owner_process.is_known_forked()
    }

    /// Is it no lock what keeps this call from its own? The listener is told, once for each name;
    /// the error is for data that never ends by itself.
    pub(super) async fn find_other_data(&mut self) -> Option<Error> {
        for key in self.spec.keys() {
            let now = clock::now();
            if !self.last_looks.is_due(key, now) {
                continue;
            }
            self.looked = Some(now);
            let outcome = self.ask(look(self.rules, key)).await;
            let snapshots: Vec<_> = outcome.said.iter().map(snapshot).collect();
            let Some(found) = OtherData::of(&snapshots) else {
                self.last_looks
                    .note(key, Look::LockUntil(now.after(BELIEVED)));
                continue;
            };
            let is_news = self.last_looks.note(key, Look::Other(found.reason));
            if let Some(recorder) = self.recorder.as_mut().filter(|_| is_news) {
                recorder.note_other_data(key, self.spec.key.len(), found.reason);
            }
            if found.is_lasting {
                let urls = urls(&found, outcome.reports);
                return Some(Error::NotALock {
                    key: Arc::clone(key),
                    reason: found.reason,
                    urls,
                });
            }
        }
        None
    }
}

fn urls(found: &OtherData, reports: Vec<NodeReport>) -> Vec<Arc<str>> {
    let mut urls = Vec::new();
    for (index, report) in reports.into_iter().enumerate() {
        if found.nodes.contains(&index) {
            urls.push(report.url);
        }
    }
    urls
}
