//! What an operator asks of those who keep the locks, and what no lock needs.

use crate::error::Error;
use crate::inspect::Seen;
#[cfg(feature = "groups")]
use crate::node::NodeReport;
#[cfg(feature = "groups")]
use crate::node::script::MarkerChange;
use crate::node::{NodeError, NodeStatus, Standards};
use std::sync::Arc;

/// The operator's side of a [`Backend`](super::Backend).
pub(crate) trait Operator: Send + Sync {
    /// Releases the holders that were seen. Returns whether any was still there.
    fn force_release(&self, seen: &Seen) -> Result<bool, Error>;

    /// Lists the keys that match a pattern: of locks, or of what has no ttl.
    fn list(&self, pattern: Arc<[u8]>, of_registers: bool) -> Box<dyn KeyListing + '_>;

    /// Asks each node about its state.
    fn statuses(&self) -> Vec<NodeStatus>;

    /// Changes the markers of those nodes that are replicated groups, whose reports it returns.
    #[cfg(feature = "groups")]
    fn change_markers(&self, _change: MarkerChange) -> Vec<NodeReport> {
        Vec::new()
    }

    /// The statuses where no node can be asked, for this reason.
    fn unreachable(&self, error: &NodeError) -> Vec<NodeStatus>;

    /// What the warnings about nodes depend on.
    fn standards(&self) -> Standards;

    /// Who keeps registers, or why nobody does: an ensemble keeps none.
    #[cfg(feature = "registers")]
    fn quorum(&self) -> Result<&dyn super::Quorum, crate::error::RegisterError> {
        Err(crate::error::RegisterError::ZooKeeper)
    }
}

/// A listing of keys that goes on step by step.
pub(crate) trait KeyListing: Send + Sync {
    /// The next keys, perhaps none, and perhaps some that were there before. `None` at the end.
    fn next_keys(&mut self) -> Result<Option<Vec<Vec<u8>>>, Error>;

    /// The caller keeps names that take this many bytes.
    fn keep(&mut self, bytes: usize) {
        let _ = bytes;
    }
}
