//! What a release by force removes.

use super::{NotALock, is_reserved, shares};
use crate::node::NodeReport;
use redlatch_protocol::inspect::KeySnapshot;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The values that a release by force removes: those that were seen, and no others.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The lock's key.
    pub(crate) key: Arc<[u8]>,
    /// The values that are locks, each once. On ZooKeeper, the paths of the holders' znodes.
    pub(crate) locks: Arc<[Vec<u8>]>,
    /// The nodes whose value is no lock.
    pub(crate) others: Vec<Arc<str>>,
    /// The value of the exclusive lock that a majority has. On ZooKeeper, the path of its znode.
    pub(super) held: Option<Vec<u8>>,
}

/// Without the values: a token in them is enough to release the lock.
impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen")
            .field("key", &self.key.escape_ascii().to_string())
            .field("locks", &self.locks.len())
            .field("others", &self.others)
            .finish()
    }
}

impl Seen {
    pub(super) fn of(
        key: Arc<[u8]>,
        snapshots: &[Option<KeySnapshot>],
        reports: &[NodeReport],
        held: Option<Vec<u8>>,
    ) -> Self {
        let mut locks = BTreeSet::new();
        let mut others = Vec::new();
        for (snapshot, report) in snapshots.iter().zip(reports) {
            match snapshot {
                Some(snapshot) if is_reserved(snapshot) => {}
                Some(snapshot) if shares::is_shared(snapshot) => {
                    locks.extend(shares::members(snapshot));
                }
                Some(snapshot) if NotALock::of(snapshot).is_some() => {
                    others.push(Arc::clone(&report.url));
                }
                Some(snapshot) => locks.extend(snapshot.value.clone()),
                None => {}
            }
        }
        Self { key, locks: locks.into_iter().collect(), others, held }
    }
}
