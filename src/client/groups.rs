//! What an operator says of replicated groups.

use super::LockClient;
use crate::entropy::draw;
use crate::error::Error;
use crate::node::NodeReport;
use crate::node::script::MarkerChange;

#[cfg_attr(docsrs, doc(cfg(feature = "groups")))]
impl LockClient {
    /// Vouches for the nodes that are [replicated groups](crate::guide::groups): each is used for
    /// the first time, so no lock may be held that it does not know. So their grants count at once,
    /// for all clients. Returns the answer of each group:
    /// [`Answered`](crate::error::NodeAnswer::Answered) if it is done,
    /// [`Refused`](crate::error::NodeAnswer::Refused) if an
    /// [earlier reign](crate::error::NodeReport::former_reign) of the group is known, or it has
    /// another master by now. Of none if no node is a group.
    ///
    /// After a failover, a restart or a loss of all keys, a lock that the master has not got may
    /// still be held. The group's marker knows of it, or the server, or a client that has seen the
    /// group before. Then nothing shortens the wait, which ends
    /// [`max_ttl`](crate::Builder::max_ttl) and
    /// [`failover_bound`](crate::Builder::failover_bound) after the first greeting. Still dangerous
    /// where all of them have forgotten: a master that lost its keys with its process, or all
    /// servers of a group, when no client is left.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn adopt_groups(&self) -> Result<Vec<NodeReport>, Error> {
        let seed = draw().ok_or(Error::NoEntropy)?.seed;
        self.change_markers(MarkerChange::adopt(seed))
    }

    /// Has the grants of those nodes that are [replicated groups](crate::guide::groups) wait as
    /// after a failover; locks that are kept alive go on. Returns the answer of each group, as
    /// [`adopt_groups`](Self::adopt_groups) does.
    ///
    /// For a master that was replaced and has become master again, without a restart and without
    /// having been told: neither it nor its clients know of it, and it may lack locks.
    ///
    /// # Errors
    ///
    /// None but that of a forked child.
    pub fn renew_groups(&self) -> Result<Vec<NodeReport>, Error> {
        self.change_markers(MarkerChange::renew())
    }

    fn change_markers(&self, change: MarkerChange) -> Result<Vec<NodeReport>, Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        Ok(self.core.backend.operator().change_markers(change))
    }
}
