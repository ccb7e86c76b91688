//! What is asked of the nodes: one request, the same to every node.

use super::{LockAttributes, LockId, NodeSet, Predecessor, Rules, Ttl};
use crate::clock::Time;
use std::sync::Arc;

/// The kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Set the key if there is none.
    Acquire,
    /// Give the key of the lock before to this one, also where nobody holds it.
    Handoff,
    /// Lengthen the key's life if it is ours.
    Extend,
    /// Delete the key if it is ours, and say whether it was.
    Release,
    /// The same, for an attempt that failed or a guard that was dropped: nobody waits for it.
    Undo,
    /// Set the key again on a node that lost it, while a majority is known to hold it.
    Restore,
    /// Raise the counters to the fencing token if the key is ours.
    Fence,
    /// Look at the key, whosever it is.
    Inspect,
    /// Delete the key, whosever it is, if it holds one of the values that were seen there.
    Remove,
    /// Answer, nothing more.
    Ping,
}

impl Verb {
    /// Is somebody waiting for the nodes' answers?
    #[must_use]
    pub fn is_answered(self) -> bool {
        !matches!(self, Self::Undo | Self::Restore)
    }

    /// Does it take the lock for a new token?
    #[must_use]
    pub fn is_acquisition(self) -> bool {
        matches!(self, Self::Acquire | Self::Handoff)
    }

    /// Does it take the key away?
    #[must_use]
    pub fn is_removal(self) -> bool {
        matches!(self, Self::Release | Self::Undo)
    }
}

/// Taking a lock for a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever encodes a request must know all of it")]
pub struct Acquisition {
    /// The lock.
    pub lock: LockId,
    /// For how long.
    pub ttl: Ttl,
    /// What the counters of a fenced lock are at least.
    pub fence: u64,
}

/// Taking a lock away from its own token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever encodes a request must know all of it")]
pub struct Removal {
    /// The lock.
    pub lock: LockId,
    /// How long the key may live if the removal does not arrive, which is how long the removal
    /// stays worth sending.
    pub ttl: Ttl,
    /// For how long from now on the key stays, if it still holds the token, instead of being
    /// removed at once.
    pub linger: Option<Ttl>,
}

/// What to do, with what is needed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever encodes a request must know all kinds")]
pub enum Action {
    /// [`Verb::Acquire`].
    Acquire(Acquisition),
    /// [`Verb::Handoff`].
    Handoff {
        /// The lock that is taken.
        new: Acquisition,
        /// The lock before.
        predecessor: Predecessor,
        /// The longest ttl of the two: so long the key of the lock before may live where the
        /// handoff does not arrive.
        ttl_longest: Ttl,
    },
    /// [`Verb::Extend`].
    Extend {
        /// The lock.
        lock: LockId,
        /// For how long from now on.
        ttl: Ttl,
    },
    /// [`Verb::Release`].
    Release(Removal),
    /// [`Verb::Undo`].
    Undo(Removal),
    /// [`Verb::Restore`].
    Restore {
        /// The lock.
        lock: LockId,
        /// For how long: what is left of the extension's ttl.
        ttl: Ttl,
    },
    /// [`Verb::Fence`].
    Fence {
        /// The lock.
        lock: LockId,
        /// The fencing token.
        fence: u64,
    },
    /// [`Verb::Inspect`].
    Inspect {
        /// The lock's first key.
        key: Arc<[u8]>,
    },
    /// [`Verb::Remove`].
    Remove {
        /// The lock's first key.
        key: Arc<[u8]>,
        /// The values that were seen under the key.
        seen: Arc<[Vec<u8>]>,
    },
    /// [`Verb::Ping`].
    Ping,
}

/// One request, the same to every node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// What to do.
    pub action: Action,
    /// When the operation began: before anything was written.
    pub started: Time,
    /// When the round ends, whoever has answered.
    pub deadline: Time,
    /// The nodes that matter: a removal is of no use where nothing was ever written.
    pub nodes: NodeSet,
}

impl Request {
    /// Asks all nodes for this, from now on for as long as a round may take.
    #[must_use]
    pub fn to_all(rules: &Rules, now: Time, action: Action) -> Self {
        let (deadline, nodes) = (now.after(rules.node_timeout), NodeSet::all(rules.nodes));
        Self { action, started: now, deadline, nodes }
    }

    /// Asks all nodes for a sign of life.
    #[must_use]
    pub fn ping(rules: &Rules, now: Time) -> Self {
        Self::to_all(rules, now, Action::Ping)
    }

    /// The kind of request.
    #[must_use]
    pub fn verb(&self) -> Verb {
        match &self.action {
            Action::Acquire(_) => Verb::Acquire,
            Action::Handoff { .. } => Verb::Handoff,
            Action::Extend { .. } => Verb::Extend,
            Action::Release(_) => Verb::Release,
            Action::Undo(_) => Verb::Undo,
            Action::Restore { .. } => Verb::Restore,
            Action::Fence { .. } => Verb::Fence,
            Action::Inspect { .. } => Verb::Inspect,
            Action::Remove { .. } => Verb::Remove,
            Action::Ping => Verb::Ping,
        }
    }

    /// The lock that the request is about, if it names a token.
    #[must_use]
    pub fn lock(&self) -> Option<&LockId> {
        match &self.action {
            Action::Acquire(Acquisition { lock, .. })
            | Action::Handoff { new: Acquisition { lock, .. }, .. }
            | Action::Extend { lock, .. }
            | Action::Release(Removal { lock, .. })
            | Action::Undo(Removal { lock, .. })
            | Action::Restore { lock, .. }
            | Action::Fence { lock, .. } => Some(lock),
            Action::Inspect { .. } | Action::Remove { .. } | Action::Ping => None,
        }
    }

    /// The ttl of a lock that is taken or extended; for a removal, how long it stays worth sending.
    #[must_use]
    pub fn ttl(&self) -> Option<Ttl> {
        match &self.action {
            Action::Acquire(Acquisition { ttl, .. })
            | Action::Handoff { new: Acquisition { ttl, .. }, .. }
            | Action::Extend { ttl, .. }
            | Action::Release(Removal { ttl, .. })
            | Action::Undo(Removal { ttl, .. })
            | Action::Restore { ttl, .. } => Some(*ttl),
            Action::Fence { .. } | Action::Inspect { .. } | Action::Remove { .. } => None,
            Action::Ping => None,
        }
    }

    /// The lock before, if the request hands it over.
    #[must_use]
    pub fn predecessor(&self) -> Option<&Predecessor> {
        match &self.action {
            Action::Handoff { predecessor, .. } => Some(predecessor),
            _ => None,
        }
    }

    /// What the counters of a fenced lock are to be at least, if the request says so.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        match &self.action {
            Action::Acquire(new) | Action::Handoff { new, .. } => Some(new.fence),
            Action::Fence { fence, .. } => Some(*fence),
            _ => None,
        }
    }

    /// The first key that the request is about. Empty for a ping.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.action {
            Action::Inspect { key } | Action::Remove { key, .. } => key,
            _ => self.lock().map_or(&[], |lock| &lock.key),
        }
    }

    /// What the lock has beyond a key and a token.
    fn attributes(&self) -> Option<&LockAttributes> {
        self.lock()?.attributes.as_deref()
    }

    /// How many bytes all keys have.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        let more = self.attributes().into_iter().flat_map(|attributes| &attributes.more_keys);
        self.key().len() + more.map(|key| key.len()).sum::<usize>()
    }

    /// Are there several keys?
    #[must_use]
    pub fn has_more_keys(&self) -> bool {
        self.lock().is_some_and(LockId::has_more_keys)
    }
}
