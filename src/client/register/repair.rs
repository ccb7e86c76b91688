//! Nodes that have forgotten what they promised, and nodes that are replaced.

use super::Register;
use crate::client::LockClient;
use crate::core::Repair;
use crate::engine::register::{Epoch, GROUP_REGISTER, RegisterKeys};
use crate::error::RegisterError;
use std::sync::Arc;

impl LockClient {
    /// Gives each node that answers and has no vote its vote: one that was emptied, or was started
    /// again and may have forgotten something, and a server that takes the place of another. For
    /// that, the other nodes must be a majority of the group. Returns the URLs of the nodes that
    /// have a vote now and had none.
    ///
    /// To replace a server, name the new one in the URLs of this client, in the place of the old
    /// one, and call this. Then give the other clients these URLs; until then they ask the old
    /// server in vain, which has no vote any more, and need all others for a majority.
    ///
    /// The node gets all registers from a majority of the others; what it had of this group before
    /// is removed. That takes two rounds for each register; meanwhile registers can be used. The
    /// others decide first, in a register of their own, that a new epoch begins, and enter it: so
    /// votes that the node gave before it forgot count no more. It may be called at any time. If
    /// two clients repair one node at a time, one of them fails.
    ///
    /// # Errors
    ///
    /// No majority votes, or the members keep what they answer
    /// ([`form_registers`](Self::form_registers)) and the node does not. Or the node
    /// belongs to another group: if it is to be this group's, remove its mark first, with `DEL` of
    /// the key `:redlatch:member` behind the [prefix](crate::Builder::key_prefix). Or a node could
    /// not be repaired: see [`NotRepaired`](RegisterError::NotRepaired). Nodes that were repaired
    /// before it stay so.
    pub fn repair_registers(&self) -> Result<Vec<Arc<str>>, RegisterError> {
        let redlock = self.core.register_nodes()?;
        let prefix = &self.core.key_prefix[..];
        let keys = RegisterKeys::new(prefix, GROUP_REGISTER);
        let register = Register { client: self.clone(), keys, lock: Arc::from(prefix) };
        let mut repaired = Vec::new();
        // An epoch that another client has decided comes before.
        for _ in 0..ATTEMPTS_PER_NODE * self.core.rules.nodes {
            let Some(repair) = self.core.begin_repair(redlock)? else { break };
            let decided = register.decide(&repair)?;
            repaired.extend(self.core.end_repair(redlock, &repair, &decided)?);
        }
        Ok(repaired)
    }

    /// Gives a node its vote that was started again and may have forgotten something, as it is.
    /// `url` is the node's as [`nodes`](Self::nodes) tells it.
    ///
    /// This is for a person who knows that the node has kept all that it answered: for example if a
    /// majority was started again without being durable, after an orderly stop that saved all. If
    /// that is wrong, registers may lose changes. With a majority of the others,
    /// [`repair_registers`](Self::repair_registers) is the way without that danger.
    ///
    /// # Errors
    ///
    /// The node has no mark of a member of the group, or does not answer.
    pub fn trust_registers(&self, url: &str) -> Result<(), RegisterError> {
        self.core.trust(url)
    }
}

/// How many epochs are begun for each node at most: another client may repair nodes as well.
const ATTEMPTS_PER_NODE: usize = 3;

impl Register {
    /// The epoch that follows, as the group decides it in the epoch before: once.
    fn decide(&self, repair: &Repair) -> Result<Epoch, RegisterError> {
        let decided = self.run_alone(|draft| {
            let decided = draft.current().map(|value| Epoch::read(value.bytes()));
            match decided {
                Some(None) => Err(RegisterError::OtherFormat { format: None }),
                Some(Some(decided)) if decided.group.epoch > repair.before.group.epoch => {
                    Ok(decided)
                }
                _ => {
                    draft.put(repair.proposed.to_bytes(), None);
                    Ok(repair.proposed.clone())
                }
            }
        })?;
        Ok(decided.0)
    }
}
