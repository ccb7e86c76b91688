//! Requests to the nodes: each request is the same for every node.

use super::{
    CustomCommand, LockAttributes, LockId, Node, NodeSet, Predecessor, QueueEntry, Rules, Share,
    Token, Ttl,
};
use crate::time::Time;
use std::sync::Arc;

/// How the key of a lock ends in whose queue those stand who change a register at the same time.
pub const TURN: &[u8] = b":redlatch:turn";

/// The kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Set the key if it does not exist.
    Acquire,
    /// Replace the predecessor's token in the key by the new one; set the key if it does not exist.
    Handoff,
    /// Extend the key's ttl if it holds our token.
    Extend,
    /// Delete the key if it holds our token, and answer whether it did.
    Release,
    /// As `Release`, for a failed attempt or a dropped guard: no caller waits for the answer.
    Undo,
    /// Set the key again on a node that lost it, while a majority is known to hold it.
    Restore,
    /// Raise the counters to the fencing token if the key holds our token.
    Fence,
    /// Answer, and do nothing else.
    Ping,
    /// Report something about the server. It is asked along with a ping.
    Ask,
    /// Enter a waiter into the lock's queue, or renew its entry.
    Queue,
    /// Take the lock in a waiter's turn: if the node reserves it for this waiter, or if it is free
    /// and no other waiter is first.
    Turn,
    /// Have the node tell this connection when it reserves the lock for a waiter.
    Listen,
    /// Carry out a [`CustomCommand`].
    Custom,
}

impl Verb {
    /// Does a caller wait for the nodes' answers?
    pub fn is_answered(self) -> bool {
        !matches!(self, Self::Undo | Self::Restore | Self::Listen | Self::Ask)
    }

    /// Is the node only asked to answer, and not to carry something out that has an effect on a
    /// lock?
    pub fn is_question(self) -> bool {
        matches!(self, Self::Ping | Self::Queue)
    }

    /// Does it take the lock for a new token?
    pub fn is_acquisition(self) -> bool {
        matches!(self, Self::Acquire | Self::Handoff | Self::Turn)
    }

    /// Does it remove the key?
    pub fn is_removal(self) -> bool {
        matches!(self, Self::Release | Self::Undo)
    }
}

/// One request, the same to every node.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kind of request, with its arguments.
    pub action: Action,
    /// When the operation began: before anything was written.
    pub started: Time,
    /// When the round ends, whichever nodes have answered, if it does not wait for connections.
    pub deadline: Time,
    /// When it ends in any case. Nodes that have never answered on their connection are waited for
    /// until then, if no majority has answered.
    pub connect_deadline: Time,
    /// Until when a lock that a majority has granted may wait for the other nodes.
    pub spare_until: Time,
    /// The nodes to ask. A removal goes only to nodes to which the lock was written.
    pub nodes: NodeSet,
}

impl Request {
    /// A request to all nodes, in a round that begins now.
    pub fn to_all(rules: &Rules, now: Time, action: Action) -> Self {
        let deadline = now.after(rules.node_timeout);
        Self {
            action,
            started: now,
            deadline,
            connect_deadline: deadline.max(now.after(rules.connect_timeout)),
            spare_until: now,
            nodes: NodeSet::all(rules.nodes),
        }
    }

    /// The same, in a round that has ended at this time in any case.
    pub fn ending_by(self, time: Time) -> Self {
        let deadline = self.deadline.min(time);
        Self { deadline, connect_deadline: self.connect_deadline.min(time), ..self }
    }

    /// A request to one node, in a round that begins now.
    pub fn to_one(rules: &Rules, now: Time, node: Node, action: Action) -> Self {
        Self { nodes: NodeSet::from_iter([node]), ..Self::to_all(rules, now, action) }
    }

    /// A ping to all nodes.
    pub fn ping(rules: &Rules, now: Time) -> Self {
        Self::to_all(rules, now, Action::Ping { asks: false })
    }

    /// A ping to all nodes, with all questions about the state of their servers.
    pub fn examination(rules: &Rules, now: Time) -> Self {
        Self::to_all(rules, now, Action::Ping { asks: true })
    }

    /// The kind of request.
    pub fn verb(&self) -> Verb {
        match &self.action {
            Action::Acquire(_) => Verb::Acquire,
            Action::Handoff { .. } => Verb::Handoff,
            Action::Extend { .. } => Verb::Extend,
            Action::Release(_) => Verb::Release,
            Action::Undo(_) => Verb::Undo,
            Action::Restore { .. } => Verb::Restore,
            Action::Fence { .. } => Verb::Fence,
            Action::Ping { .. } => Verb::Ping,
            Action::Ask(_) => Verb::Ask,
            Action::Queue(_) => Verb::Queue,
            Action::Turn { .. } => Verb::Turn,
            Action::Listen { .. } => Verb::Listen,
            Action::Custom(_) => Verb::Custom,
        }
    }

    pub fn custom(&self) -> Option<&Arc<dyn CustomCommand>> {
        match &self.action {
            Action::Custom(command) => Some(command),
            _ => None,
        }
    }

    /// Is it a custom command that only looks? No lock depends on it, and a user who watches the
    /// nodes may lack the right to it: so an error in reply is no problem of the connection.
    pub fn is_look(&self) -> bool {
        self.custom().is_some_and(|command| command.is_look())
    }

    /// The lock that the request is about, if it names a token.
    pub fn lock(&self) -> Option<&LockId> {
        match &self.action {
            Action::Acquire(Acquisition { lock, .. })
            | Action::Handoff { new: Acquisition { lock, .. }, .. }
            | Action::Turn { new: Acquisition { lock, .. }, .. }
            | Action::Queue(QueueEntry { lock, .. })
            | Action::Extend { lock, .. }
            | Action::Release(Removal { lock, .. })
            | Action::Undo(Removal { lock, .. })
            | Action::Restore { lock, .. }
            | Action::Fence { lock, .. } => Some(lock),
            Action::Ping { .. } | Action::Ask(_) => None,
            Action::Listen { .. } | Action::Custom(_) => None,
        }
    }

    /// The token of that lock.
    pub fn token(&self) -> Option<Token> {
        self.lock().map(|lock| lock.token)
    }

    /// The ttl of a lock that is taken or extended; for a removal, how long it is worth sending.
    pub fn ttl(&self) -> Option<Ttl> {
        match &self.action {
            Action::Acquire(Acquisition { ttl, .. })
            | Action::Handoff { new: Acquisition { ttl, .. }, .. }
            | Action::Turn { new: Acquisition { ttl, .. }, .. }
            | Action::Queue(QueueEntry { ttl, .. })
            | Action::Extend { ttl, .. }
            | Action::Release(Removal { ttl, .. })
            | Action::Undo(Removal { ttl, .. })
            | Action::Restore { ttl, .. } => Some(*ttl),
            Action::Fence { .. } | Action::Ping { .. } | Action::Ask(_) => None,
            Action::Listen { .. } | Action::Custom(_) => None,
        }
    }

    /// The waiter that the request is about: one in the lock's queue, or one that waits until a
    /// register changes.
    pub fn waiter(&self) -> Option<Token> {
        match &self.action {
            Action::Queue(QueueEntry { waiter, .. }) | Action::Turn { waiter, .. } => Some(*waiter),
            Action::Release(removal) | Action::Undo(removal) => removal.waiter,
            Action::Custom(command) => command.watcher(),
            _ => None,
        }
    }

    /// The lock that a handoff replaces.
    pub fn predecessor(&self) -> Option<&Predecessor> {
        match &self.action {
            Action::Handoff { predecessor, .. } => Some(predecessor),
            _ => None,
        }
    }

    /// The least value of a fenced lock's counters, if the request sets one.
    pub fn fence(&self) -> Option<u64> {
        match &self.action {
            Action::Acquire(new) | Action::Handoff { new, .. } | Action::Turn { new, .. } => {
                Some(new.fence)
            }
            Action::Fence { fence, .. } => Some(*fence),
            _ => None,
        }
    }

    /// The first key that the request is about. Empty for a ping.
    pub fn key(&self) -> &[u8] {
        match &self.action {
            Action::Listen { key, .. } => key,
            Action::Custom(command) => command.key(),
            _ => self.lock().map_or(&[], |lock| &lock.key),
        }
    }

    /// The optional parts of the lock.
    fn attributes(&self) -> Option<&LockAttributes> {
        self.lock()?.attributes.as_deref()
    }

    /// The total length of all keys, in bytes.
    pub fn key_bytes(&self) -> usize {
        let more = self.attributes().into_iter().flat_map(|attributes| &attributes.more_keys);
        self.key().len() + more.map(|key| key.len()).sum::<usize>()
    }

    /// The share of the lock, if the request is about one.
    pub fn share(&self) -> Option<Share> {
        self.lock()?.share()
    }

    /// Is a lock restored on nodes that refuse this request, after a majority has granted it? They
    /// may have lost it, or may not have removed the lock before it, or have given another permit.
    pub fn is_to_restore(&self) -> bool {
        let is_reader = || self.share().is_some_and(|share| share.permits() == 0);
        self.verb() == Verb::Extend || self.verb().is_acquisition() && !is_reader()
    }

    /// Does the answer of a node count that may have forgotten who holds the lock? No safety
    /// depends on a register's turn, and whoever waits for it would wait in vain.
    pub fn counts_in_quarantine(&self) -> bool {
        self.key().ends_with(TURN)
    }

    /// Are there several keys?
    pub fn has_more_keys(&self) -> bool {
        self.lock().is_some_and(LockId::has_more_keys)
    }
}

// What requests ask of the nodes.

/// Takes a lock for a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquisition {
    pub lock: LockId,
    /// For how long.
    pub ttl: Ttl,
    /// The least value of the counters of a fenced lock.
    pub fence: u64,
}

/// Removes a lock's keys if they hold its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub lock: LockId,
    /// How long the key may exist if the removal does not arrive: for that time the removal is
    /// worth sending.
    pub ttl: Ttl,
    /// If given, a key that still holds the token is not removed at once but stays for this time.
    pub linger: Option<Ttl>,
    /// The waiter that leaves the lock's queue with this, if the client has queued for the lock.
    pub waiter: Option<Token>,
}

/// A step towards being notified by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Subscribe to the channel of this connection: once for a connection.
    Subscribe(u64),
    /// Have the server send invalidations on this connection: once for a connection.
    Enable,
    /// The next command is one whose keys the server is to remember.
    OptIn,
    /// Read the lock's key, whose next change the server is to tell, for this waiter.
    Read(Token),
}

/// A question about the state of a server, whose answer decides nothing about locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// How much memory it uses and may use, and what it does when there is no more.
    Memory,
    /// Does it write its changes to a file?
    Persistence,
    /// Is it a replica, and are there replicas of it?
    Replication,
    /// Is it a node of a cluster?
    Cluster,
    /// When does it flush that file to the disk?
    Fsync,
    /// Does it write snapshots?
    Snapshots,
    /// How much memory it may use, and what it does when there is no more: also for servers whose
    /// answer to [`Memory`](Self::Memory) does not say so.
    MemoryLimit,
    /// Its time of day.
    Time,
}

impl Question {
    /// All questions, in the order in which they are asked. The answers to the last ones have other
    /// forms than those before: if an unsolicited reply shifts the answers, they do not fit.
    pub const ALL: [Self; 8] = [
        Self::Memory,
        Self::Persistence,
        Self::Replication,
        Self::Cluster,
        Self::Fsync,
        Self::Snapshots,
        Self::MemoryLimit,
        Self::Time,
    ];
}

/// The kind of a request, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// [`Verb::Acquire`].
    Acquire(Acquisition),
    /// [`Verb::Handoff`].
    Handoff {
        /// The lock that is taken.
        new: Acquisition,
        /// The lock that it replaces.
        predecessor: Predecessor,
        /// The longest ttl of the two: the predecessor's key may exist for so long on a node that
        /// the handoff does not reach.
        ttl_longest: Ttl,
    },
    /// [`Verb::Extend`].
    Extend {
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
        lock: LockId,
        /// For how long: the rest of the extension's ttl.
        ttl: Ttl,
    },
    /// [`Verb::Fence`].
    Fence { lock: LockId, fence: u64 },
    /// [`Verb::Ping`].
    Ping {
        /// Are all questions about the server's state asked just before?
        asks: bool,
    },
    /// [`Verb::Ask`].
    Ask(Question),
    /// [`Verb::Queue`].
    Queue(QueueEntry),
    /// [`Verb::Turn`].
    Turn {
        /// The lock that is taken.
        new: Acquisition,
        /// The waiter whose turn it is.
        waiter: Token,
    },
    /// [`Verb::Listen`].
    Listen { key: Arc<[u8]>, step: Listen },
    /// [`Verb::Custom`].
    Custom(Arc<dyn CustomCommand>),
}
