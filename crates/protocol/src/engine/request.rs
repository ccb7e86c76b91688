//! Requests to the nodes: each request is the same for every node.

#[cfg(feature = "diagnostics")]
use super::Question;
#[cfg(feature = "groups")]
use super::ReignQuestion;
use super::{
    Channel, CustomCommand, LockAttributes, LockId, Node, NodeSet, Predecessor, QueueEntry, Rules,
    Share, Token, Ttl,
};
use crate::time::Time;
use std::sync::Arc;

/// What a request asks of a node. How each is written and answered is in `node::command`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take a lock.
    Claim(Claim),
    /// Extend a lock that is held, or give it again to a node that lost it.
    Keep(Keep),
    /// Remove a lock's keys if they hold its token.
    Remove(Removal),
    /// Raise the counters to the fencing token if the key holds our token.
    Fence(Fence),
    /// Enter a waiter into the lock's queue, or renew its entry.
    Queue(QueueEntry),
    /// Answer, and do nothing else.
    Ping(Ping),
    /// Report something about the server. It is asked along with a ping.
    #[cfg(feature = "diagnostics")]
    Ask(Question),
    /// Have the node tell this connection when it reserves the lock for a waiter.
    Listen(Listen),
    /// Tell in whose reign a replicated group is.
    #[cfg(feature = "groups")]
    Reign(ReignQuestion),
    /// What else is kept on the nodes.
    Custom(Arc<dyn CustomCommand>),
}

/// Takes a lock for a new token: sets its keys if they do not exist, or hold what they may hold
/// `before`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub lock: LockId,
    /// For how long.
    pub ttl: Ttl,
    /// The least value of the counters of a fenced lock.
    pub fence: u64,
    pub before: Before,
}

/// What the keys of a lock may hold when it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// The token of the lock that is handed over.
    Predecessor(Predecessor),
    /// The reservation for this waiter, whose turn it is; or nothing, if no other is first.
    Turn(Token),
}

/// Extends the ttl of the keys if they hold our token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    pub lock: LockId,
    /// For how long from now on.
    pub ttl: Ttl,
    /// Is the key set again where it is gone, while a majority is known to hold it?
    pub restores: bool,
    /// Is the key set again where it is gone, because its group has had a failover and nobody else
    /// can have got the lock since? The session with the group says so.
    pub reclaims: bool,
    /// Is the lock resumed by its token? Then nobody knows that it is still held: another client
    /// may have had it before the failover, so it is not reclaimed.
    pub is_resumed: bool,
}

impl Keep {
    /// Is the key set again where it is gone?
    pub fn sets(&self) -> bool {
        self.restores || self.reclaims
    }
}

/// Removes a lock's keys if they hold its token, and answers whether they did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub lock: LockId,
    /// How long the key may exist if the removal does not arrive: for that time the removal is
    /// worth sending.
    pub ttl: Ttl,
    /// If given, a key that still holds the token is not removed at once but stays for this time.
    pub keep_for: Option<Ttl>,
    /// The waiter that leaves the lock's queue with this, if the client has queued for the lock.
    pub waiter: Option<Token>,
    /// Does a caller wait for the answer? Not of a failed attempt, or of a guard that is dropped.
    pub is_awaited: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub lock: LockId,
    pub fence: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Are all questions about the server's state asked just before?
    pub asks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    pub key: Arc<[u8]>,
    pub step: ListenStep,
}

/// A step towards being notified by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenStep {
    /// Subscribe to the channel of this connection: once for a connection.
    Subscribe(Channel),
    /// Have the server send invalidations on this connection: once for a connection.
    Enable,
    /// The next command is one whose keys the server is to remember.
    OptIn,
    /// Read the lock's key, whose next change the server is to tell, for this waiter.
    Read(Token),
}

/// One request, the same to every node.
#[derive(Clone, Debug)]
pub struct Request {
    pub command: Command,
    /// When the operation began: before anything was written.
    pub started: Time,
    /// When the round ends if a majority has answered, or cannot.
    pub deadline: Time,
    /// When it ends in any case. Until then it may wait for nodes that have never answered on their
    /// connection or are slow, if no majority has answered.
    pub connect_deadline: Time,
    /// Until when a lock that a majority has granted may wait for the other nodes.
    pub spare_until: Time,
    /// The nodes to ask. A removal goes only to nodes to which the lock was written.
    pub nodes: NodeSet,
}

impl Request {
    /// A request to all nodes, in a round that begins now.
    pub fn to_all(rules: &Rules, now: Time, command: Command) -> Self {
        let deadline = now.after(rules.node_timeout);
        Self {
            command,
            started: now,
            deadline,
            connect_deadline: deadline.max(now.after(rules.connect_timeout)),
            spare_until: now,
            nodes: NodeSet::all(rules.nodes),
        }
    }

    /// What a session asks by itself, in no round: the only deadline is that of the connection's
    /// silence.
    pub fn in_no_round(now: Time, command: Command) -> Self {
        Self {
            command,
            started: now,
            deadline: now,
            connect_deadline: now,
            spare_until: now,
            nodes: NodeSet::EMPTY,
        }
    }

    /// The same, in a round that has ended at this time in any case.
    pub fn ending_by(self, time: Time) -> Self {
        let deadline = self.deadline.min(time);
        Self {
            deadline,
            connect_deadline: self.connect_deadline.min(time),
            ..self
        }
    }

    /// A request to one node, in a round that begins now.
    pub fn to_one(rules: &Rules, now: Time, node: Node, command: Command) -> Self {
        Self {
            nodes: NodeSet::from_iter([node]),
            ..Self::to_all(rules, now, command)
        }
    }

    /// A ping to all nodes.
    pub fn ping(rules: &Rules, now: Time) -> Self {
        Self::to_all(rules, now, Command::Ping(Ping { asks: false }))
    }

    /// A ping to all nodes, with all questions about the state of their servers.
    #[cfg(feature = "diagnostics")]
    pub fn examination(rules: &Rules, now: Time) -> Self {
        Self::to_all(rules, now, Command::Ping(Ping { asks: true }))
    }

    /// Does a caller wait for the nodes' answers?
    pub fn is_answered(&self) -> bool {
        match &self.command {
            Command::Remove(removal) => removal.is_awaited,
            Command::Keep(keep) => !keep.restores,
            Command::Listen(_) => false,
            #[cfg(feature = "diagnostics")]
            Command::Ask(_) => false,
            #[cfg(feature = "groups")]
            Command::Reign(_) => false,
            _ => true,
        }
    }

    /// Is the node only asked to answer, and not to carry something out that has an effect on a
    /// lock?
    pub fn is_question(&self) -> bool {
        matches!(self.command, Command::Ping(_) | Command::Queue(_))
    }

    /// Is the server asked about itself only, so that nothing about locks depends on the answer?
    pub fn is_about_server(&self) -> bool {
        #[cfg(feature = "diagnostics")]
        let is_asked = matches!(self.command, Command::Ask(_));
        #[cfg(not(feature = "diagnostics"))]
        let is_asked = false;
        is_asked || matches!(self.command, Command::Ping(_))
    }

    /// Does it take the lock for a new token?
    pub fn is_claim(&self) -> bool {
        matches!(self.command, Command::Claim(_))
    }

    /// Does it take the lock in a waiter's turn?
    pub fn is_turn(&self) -> bool {
        matches!(
            self.command,
            Command::Claim(Claim {
                before: Before::Turn(_),
                ..
            })
        )
    }

    /// Does it extend a lock?
    pub fn is_extension(&self) -> bool {
        matches!(
            self.command,
            Command::Keep(Keep {
                restores: false,
                ..
            })
        )
    }

    /// Does it resume a lock by its token?
    pub fn is_resumption(&self) -> bool {
        matches!(
            self.command,
            Command::Keep(Keep {
                is_resumed: true,
                ..
            })
        )
    }

    /// Does it remove the key?
    pub fn is_removal(&self) -> bool {
        matches!(self.command, Command::Remove(_))
    }

    pub fn queue_entry(&self) -> Option<&QueueEntry> {
        match &self.command {
            Command::Queue(entry) => Some(entry),
            _ => None,
        }
    }

    pub fn custom(&self) -> Option<&Arc<dyn CustomCommand>> {
        match &self.command {
            Command::Custom(command) => Some(command),
            _ => None,
        }
    }

    /// Is it a custom command that only looks? No lock depends on it, and a user who watches the
    /// nodes may lack the right to it: so an error in reply is not a problem of the connection.
    pub fn is_look(&self) -> bool {
        self.custom().is_some_and(|command| command.is_look())
    }

    /// The lock that the request is about, if it names a token.
    pub fn lock(&self) -> Option<&LockId> {
        match &self.command {
            Command::Claim(Claim { lock, .. })
            | Command::Keep(Keep { lock, .. })
            | Command::Remove(Removal { lock, .. })
            | Command::Queue(QueueEntry { lock, .. })
            | Command::Fence(Fence { lock, .. }) => Some(lock),
            _ => None,
        }
    }

    /// The token of that lock.
    pub fn token(&self) -> Option<Token> {
        self.lock().map(|lock| lock.token)
    }

    /// The ttl of a lock that is taken or extended; for a removal, how long it is worth sending.
    pub fn ttl(&self) -> Option<Ttl> {
        match &self.command {
            Command::Claim(Claim { ttl, .. })
            | Command::Keep(Keep { ttl, .. })
            | Command::Remove(Removal { ttl, .. })
            | Command::Queue(QueueEntry { ttl, .. }) => Some(*ttl),
            _ => None,
        }
    }

    /// What is left of that ttl.
    pub fn ttl_left(&self, now: Time) -> Option<Ttl> {
        self.ttl()?.left(self.started, now)
    }

    /// The waiter that the request is about: one in the lock's queue, or one that waits until a
    /// register changes.
    pub fn waiter(&self) -> Option<Token> {
        match &self.command {
            Command::Queue(QueueEntry { waiter, .. })
            | Command::Claim(Claim {
                before: Before::Turn(waiter),
                ..
            }) => Some(*waiter),
            Command::Remove(removal) => removal.waiter,
            Command::Custom(command) => command.watcher(),
            _ => None,
        }
    }

    /// The lock that a handoff replaces.
    pub fn predecessor(&self) -> Option<&Predecessor> {
        match &self.command {
            Command::Claim(Claim {
                before: Before::Predecessor(before),
                ..
            }) => Some(before),
            _ => None,
        }
    }

    /// The least value of a fenced lock's counters, if the request sets one.
    pub fn fence(&self) -> Option<u64> {
        match &self.command {
            Command::Claim(Claim { fence, .. }) | Command::Fence(Fence { fence, .. }) => {
                Some(*fence)
            }
            _ => None,
        }
    }

    /// The first key that the request is about. Empty for a ping.
    pub fn key(&self) -> &[u8] {
        match &self.command {
            Command::Listen(Listen { key, .. }) => key,
            #[cfg(feature = "groups")]
            Command::Reign(ReignQuestion { key, .. }) => key,
            Command::Custom(command) => command.key(),
            _ => self.lock().map_or(&[], |lock| &lock.key),
        }
    }

    /// The optional parts of the lock.
    fn attributes(&self) -> Option<&LockAttributes> {
        self.lock()?.attributes.as_deref()
    }

    /// The total length of all keys, in bytes.
    pub fn key_bytes(&self) -> usize {
        let more = self
            .attributes()
            .into_iter()
            .flat_map(|attributes| &attributes.more_keys);
        self.key().len() + more.map(|key| key.len()).sum::<usize>()
    }

    /// The share of the lock, if the request is about one.
    pub fn share(&self) -> Option<Share> {
        self.lock()?.share()
    }

    /// Is a lock restored on nodes that refuse this request, after a majority has granted it? They
    /// may have lost it, or may not have removed the lock before it, or have given another permit.
    pub fn is_to_restore(&self) -> bool {
        self.is_extension()
            || self.is_claim() && self.share().is_none_or(|share| share.permits() > 0)
    }

    /// See [`LockAttributes::counts_in_quarantine`].
    pub fn counts_in_quarantine(&self) -> bool {
        self.attributes()
            .is_some_and(|attributes| attributes.counts_in_quarantine)
    }

    /// Are there several keys?
    pub fn has_more_keys(&self) -> bool {
        self.lock().is_some_and(LockId::has_more_keys)
    }
}
