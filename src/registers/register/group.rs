//! The nodes as a group that keeps registers: formed, mended after some have forgotten what they
//! promised, and with one node in the place of another.

use super::Register;
use crate::backend::at_once;
use crate::client::LockClient;
use crate::error::RegisterError;
use crate::node_url::NodeUrl;
use redlatch_registers::{GROUP_REGISTER, MemberAddress, RegisterKeys};
use std::pin::pin;
use std::sync::Arc;

/// The registers of a client's nodes as a whole: see [`LockClient::registers`].
#[derive(Clone, Copy, Debug)]
pub struct Registers<'a> {
    pub(super) client: &'a LockClient,
}

impl Registers<'_> {
    /// Makes the nodes of this client a group that keeps registers. This is done once, before the
    /// first register is used: all nodes must answer, and none may belong to a group.
    ///
    /// Nodes must keep what they have answered: `appendonly yes`, `appendfsync always`, no
    /// `allkeys-*` policy, and no replicas. With `in_memory`, nodes without these settings become
    /// members as well. Each of them loses its vote when it is started again, and with a majority
    /// of them all registers are lost.
    ///
    /// # Errors
    ///
    /// A node did not answer, belongs to a group, or does not keep what it answers. If all nodes
    /// are members of one group, that is [`AlreadyFormed`](RegisterError::AlreadyFormed). After any
    /// other error some nodes may be members: see [the guide](crate::guide::registers#the-nodes).
    pub fn form(&self, in_memory: bool) -> Result<(), RegisterError> {
        let nodes = self.client.core.register_nodes()?;
        at_once(pin!(nodes.form(in_memory)))
    }

    /// Gives each member that answers and has no vote [its
    /// vote](crate::guide::registers#the-nodes): one that was emptied, or was started again and may
    /// have forgotten something. For that, the other nodes must be a majority of the group. Returns
    /// the URLs of the nodes that have a vote now and had none.
    ///
    /// An emptied node is known by its address: its host and port in the URLs of the client that
    /// made it a member. A node that shows neither a mark of a member nor the address of one gets
    /// no place: see [`replace`](Self::replace).
    ///
    /// That takes two rounds for each register; meanwhile registers can be used. It may be called
    /// at any time. If two clients repair one node at a time, one of them fails.
    ///
    /// # Errors
    ///
    /// No majority votes, or the members keep what they answer ([`form`](Self::form)) and the node
    /// does not. Or the node belongs to another group: if it is to be this group's, remove its mark
    /// first, with `DEL` of the key `:redlatch:member` behind the
    /// [prefix](crate::Builder::key_prefix). Or a node could not be repaired: see
    /// [`PlaceTaken`](RegisterError::PlaceTaken) and [`NotRepaired`](RegisterError::NotRepaired).
    /// Nodes that were repaired before it stay so.
    pub fn repair(&self) -> Result<Vec<Arc<str>>, RegisterError> {
        self.repair_with(None)
    }

    /// As [`repair`](Self::repair), and a node of this client that is not a member takes the place
    /// of the member at `old`, a URL or an address as [`PlaceTaken`](RegisterError::PlaceTaken)
    /// names it, whether that one is still there or not. It has no vote from then on. If all nodes
    /// of this client have votes, there is not an error, and nothing is replaced.
    ///
    /// Name the new server in the URLs of this client, in the place of the old one. Then give the
    /// other clients these URLs; until then they ask the old server in vain, and need all others
    /// for a majority.
    pub fn replace(&self, old: &str) -> Result<Vec<Arc<str>>, RegisterError> {
        let url = NodeUrl::parse(old).map_or_else(|_| old.to_owned(), |url| url.to_string());
        self.repair_with(Some(MemberAddress::address(&url)))
    }

    fn repair_with(&self, replaced: Option<&str>) -> Result<Vec<Arc<str>>, RegisterError> {
        let prefix = &self.client.core.key_prefix[..];
        let keys = RegisterKeys::new(prefix, GROUP_REGISTER);
        let register = Register {
            client: self.client.clone(),
            keys,
            lock: Arc::from(prefix),
        };
        at_once(pin!(register.repair(replaced)))
    }

    /// Gives a node its vote that was started again and may have forgotten something, as it is.
    /// `url` is the node's as [`nodes`](LockClient::nodes) tells it. This is for a person who knows
    /// that the node has kept all that it answered. If that is wrong, registers may lose changes.
    /// With a majority of the others, [`repair`](Self::repair) is the way without that danger.
    ///
    /// # Errors
    ///
    /// The node has no mark of a member of the group, or does not answer.
    pub fn trust(&self, url: &str) -> Result<(), RegisterError> {
        let nodes = self.client.core.register_nodes()?;
        // As it is told, which is without a password.
        let url = NodeUrl::parse(url).map_or_else(|_| "the URL".to_owned(), |url| url.to_string());
        at_once(pin!(nodes.trust(&url)))
    }
}
