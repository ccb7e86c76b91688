//! Looking at locks, and taking them away by force.

use super::LockClient;
use crate::clock;
use crate::engine::{Request, Verb, Verdict};
use crate::error::{InspectError, NoQuorum};
use crate::inspect::Inspection;
use crate::net::Delivery;

impl LockClient {
    /// Looks at what the nodes hold for `resource`, without taking part: free or held, for how much
    /// longer, and by whom if the holder [said so](crate::LockRequest::owner).
    ///
    /// It takes as long as the slowest node, up to [`node_timeout`](crate::Builder::node_timeout).
    /// The nodes' user needs the right to `PTTL` beyond what locking takes.
    ///
    /// # Errors
    ///
    /// The resource's name cannot be used, or fewer nodes than a majority answered.
    pub fn inspect(&self, resource: impl AsRef<[u8]>) -> Result<Inspection, InspectError> {
        let delivery = self.look(resource.as_ref(), Verb::Inspect)?;
        let returns = delivery.returns;
        Inspection::of(&returns.sightings, returns.reports)
            .map_err(|reports| InspectError::NoQuorum(NoQuorum::new(reports)))
    }

    /// Deletes the lock's key on all nodes, **whoever holds it**, and says whether there was one on
    /// any of them.
    ///
    /// Dangerous: the holder, if it is alive, works on and is told nothing before its next
    /// extension or release, while the next one gets the lock. It is for operators who *know* that
    /// the holder is gone, and cannot wait for the ttl. Fencing counters stay as they are. A node
    /// that cannot be reached now keeps its key, and is not told later.
    ///
    /// # Errors
    ///
    /// The resource's name cannot be used, or fewer nodes than a majority answered: the lock may
    /// still be held.
    pub fn force_release(&self, resource: impl AsRef<[u8]>) -> Result<bool, InspectError> {
        let returns = self.look(resource.as_ref(), Verb::Remove)?.returns;
        let tally = &returns.ballot.tally;
        if tally.answered_by_majority() != Verdict::Won {
            return Err(InspectError::NoQuorum(NoQuorum::new(returns.reports)));
        }
        Ok(!tally.granted.is_empty())
    }

    fn look(&self, resource: &[u8], verb: Verb) -> Result<Delivery, InspectError> {
        let key = self.key(resource).map_err(InspectError::Resource)?;
        let ping = Request::ping(&self.shared.rules, clock::now());
        Ok(self.shared.net.submit(Request { verb, key, ..ping }))
    }
}
