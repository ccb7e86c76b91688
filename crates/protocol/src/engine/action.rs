//! What requests ask of the nodes.

#[cfg(doc)]
use super::Verb;
use super::{CustomCommand, LockId, Predecessor, QueueEntry, Token, Ttl};
use std::sync::Arc;

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
