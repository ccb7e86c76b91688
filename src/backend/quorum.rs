//! Who keeps registers: the door between them and the nodes. No lock goes through it.

mod memory;

pub(crate) use memory::{
    CombinedRegister, Combiner, CombinerMessage, CombiningRole, Committed, Contribution,
    RegisterMemory, ReportedVotes,
};

use crate::engine::{Node, NodeSet, QueueWait, Token};
use crate::net::RoundOutcome;
use crate::node::{NodeReport, NodeStatus};
use redlatch_registers::RegisterRequest;
use std::sync::Arc;

/// The nodes of a client that keep its registers, a majority of which decides. They are asked by
/// the programs in `registers`, which know no connection.
pub(crate) trait Quorum: Send + Sync {
    /// What this client remembers of them.
    fn memory(&self) -> &RegisterMemory;

    /// Asks these nodes, and waits until their answers decide or are late.
    fn ask(&self, request: RegisterRequest, nodes: NodeSet) -> RoundOutcome;

    /// Asks all nodes, and waits for nothing. Does nothing in a child that a callback has forked.
    fn tell(&self, request: RegisterRequest);

    /// Waits until a majority tells the watcher that what it has read has changed, or until the end
    /// of the wait.
    fn wait(&self, wait: QueueWait);

    /// Forgets a watcher. Does nothing in a child that a callback has forked.
    fn leave(&self, watcher: Token);

    /// The state of the servers of these nodes.
    fn servers(&self, nodes: NodeSet) -> Vec<NodeStatus>;

    /// The names of the registers that a node has keys of, or the report of one that was not read.
    fn names(&self, node: Node) -> Result<Vec<Arc<[u8]>>, NodeReport>;
}
