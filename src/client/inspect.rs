//! Looking at nodes and at locks, and taking locks away by force.

use super::LockClient;
use crate::clock;
use crate::engine::{Action, Request, Verdict};
use crate::error::{ForceReleaseError, InspectError, NoQuorum};
use crate::inspect::{Inspection, Seen};
use crate::node::{NodeError, NodeStatus};
use std::sync::Arc;

impl LockClient {
    /// Asks each node for a sign of life and says how this client stands with it, in the order of
    /// the configuration. Connects to nodes that have no connection; takes no longer than
    /// [`node_timeout`](crate::Builder::node_timeout).
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStatus> {
        if self.core.is_forked() {
            return self.core.net.unknown(&NodeError::OtherProcess);
        }
        let statuses = self.core.net.submit(Request::ping(&self.core.rules, clock::now())).statuses;
        if let Some(listener) = &self.core.listener {
            listener.emit_node_changes();
        }
        statuses
    }

    /// Looks at what the nodes hold for `resource`, without taking part: free or held, for how much
    /// longer, and by whom if the holder [said so](crate::LockRequest::owner).
    ///
    /// It takes as long as the slowest node, up to [`node_timeout`](crate::Builder::node_timeout).
    ///
    /// # Errors
    ///
    /// The resource's name cannot be used, or fewer nodes than a majority answered.
    pub fn inspect(&self, resource: impl AsRef<[u8]>) -> Result<Inspection, InspectError> {
        let key = self.key(resource.as_ref()).map_err(InspectError::Resource)?;
        if self.core.is_forked() {
            return Err(InspectError::OtherProcess);
        }
        let action = Action::Inspect { key: Arc::clone(&key) };
        let request = Request::to_all(&self.core.rules, clock::now(), action);
        let returns = self.core.net.submit(request).returns;
        Inspection::of(key, &returns.snapshots, returns.reports)
            .map_err(|reports| InspectError::NoQuorum(NoQuorum::new(reports)))
    }

    /// Takes a lock away by force from whoever was [seen](Self::inspect) to have it, and says
    /// whether any node still had what was seen there.
    ///
    /// ```no_run
    /// # let client = redlatch::LockClient::new(["redis://10.0.0.1"]).unwrap();
    /// let seen = client.inspect("orders:42")?;
    /// println!("held: {:?}", seen.state); // the moment to think again
    /// client.force_release(&seen)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Only what was seen is removed: a lock that somebody has taken since stays, however late a
    /// node carries this out. Locks of this library have a value that is never used twice; one that
    /// another program took with a value of its own is told apart by that value.
    ///
    /// Dangerous: the holder, if it is alive, works on and is told nothing before its next
    /// extension or release, while the next one gets the lock. It is for operators who *know* that
    /// the holder is gone, and cannot wait for the ttl. Fencing counters stay as they are. A node
    /// that cannot be reached now keeps its key, and is not told later.
    ///
    /// # Errors
    ///
    /// What was seen is no lock: no string, one without a ttl, or one that is too long; it stays.
    /// Or fewer nodes than a majority answered: the lock may still be held.
    pub fn force_release(&self, seen: &Inspection) -> Result<bool, ForceReleaseError> {
        if self.core.is_forked() {
            return Err(ForceReleaseError::OtherProcess);
        }
        let Seen { key, locks, others } = &seen.seen;
        if locks.is_empty() {
            let is_free = others.is_empty();
            let error = || ForceReleaseError::NotALock { urls: others.clone() };
            return if is_free { Ok(false) } else { Err(error()) };
        }
        let action = Action::Remove { key: Arc::clone(key), seen: Arc::clone(locks) };
        let request = Request::to_all(&self.core.rules, clock::now(), action);
        let returns = self.core.net.submit(request).returns;
        let tally = &returns.ballot.tally;
        if tally.answered_by_majority() != Verdict::Won {
            return Err(ForceReleaseError::NoQuorum(NoQuorum::new(returns.reports)));
        }
        Ok(!tally.granted.is_empty())
    }
}
