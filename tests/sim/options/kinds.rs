//! The kinds of fault, and the assumptions that a history may break.

/// The assumption of the algorithm that a history may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenAssumption {
    /// None.
    None,
    /// None, and two nodes are always one server, which is often too busy to report its run id.
    NoneWithTwins,
    /// None, and connections stall all the time, while locks are extended at the last moment.
    NoneWithStalls,
    /// None, and as few nodes as possible recover, the others are silent, and rounds last half a
    /// ttl.
    NoneWithSilence,
    /// No faults, and no delay that could be taken for one: the order of waiters is checked.
    NoneQuiet,
    /// The same, for permits that are held without a call, over links that differ.
    NoneWithLinks,
    /// The same, and waiters of other programs renew their entries and never claim the lock.
    NoneWithIdleClients,
    /// None, and threads use registers. Nodes also lose keys, and servers are replaced.
    NoneWithRegisters,
    /// The same, and clients are sides of transactions.
    NoneWithTransactions,
    /// None, and each node is a replicated group, of which any server may become the master.
    NoneWithGroups,
    /// As with registers, and servers that are set up to keep all that they answer are restored
    /// from backups.
    RegistersRestored,
    /// Nodes restart empty, and the clients have no restart guard.
    LostData,
    /// Nodes restart without the last second, and the clients have no restart guard.
    LostSecond,
    /// Clocks drift more than the clients' drift factor allows.
    Drift,
    /// The clocks of clients drift too much.
    ClientDrift,
    /// The clocks of nodes jump forward.
    Jump,
    /// Nodes evict keys that are in use.
    Eviction,
    /// Unsolicited replies arrive while a plain `SET` is unanswered: RESP cannot distinguish
    /// them from its reply.
    Strays,
    /// Two servers alternate behind one address, each with its own keys.
    Exchanged,
    /// Servers are restored from snapshots: an older state with the same run id.
    Restored,
}

impl BrokenAssumption {
    /// Do such histories keep all assumptions?
    pub(super) fn is_within(self) -> bool {
        let is_quiet = matches!(
            self,
            Self::NoneQuiet | Self::NoneWithLinks | Self::NoneWithIdleClients
        );
        is_quiet || matches!(self, Self::None | Self::NoneWithTwins)
    }

    pub(crate) const ALL: [Self; 20] = [
        Self::None,
        Self::NoneWithTwins,
        Self::NoneWithStalls,
        Self::NoneWithSilence,
        Self::NoneQuiet,
        Self::NoneWithLinks,
        Self::NoneWithIdleClients,
        Self::NoneWithRegisters,
        Self::NoneWithTransactions,
        Self::NoneWithGroups,
        Self::RegistersRestored,
        Self::LostData,
        Self::LostSecond,
        Self::Drift,
        Self::ClientDrift,
        Self::Jump,
        Self::Eviction,
        Self::Strays,
        Self::Exchanged,
        Self::Restored,
    ];
}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A connection breaks.
    Cut,
    /// A connection delivers nothing any more, and neither side notices.
    Swallow,
    /// One connection stalls for a while.
    Stall,
    /// Bytes that a client writes to some nodes, often to a majority, are held back for up to
    /// several ttls, on its current connections. New connections work at once.
    Late,
    /// Unsolicited replies arrive on some of a client's connections: for a while, each reply of its
    /// nodes arrives a second time, later; or an error arrives at once.
    Stray,
    /// Nothing is delivered between a client and a node for a while, in one direction or both.
    Clog,
    /// A node freezes for a while. Its kernel still works.
    Freeze,
    /// A node is down for a while.
    Crash,
    /// A client is paused for a while.
    Pause,
    /// A client dies, and a new one replaces it.
    Die,
    /// A client cancels all its waits.
    Leave,
    /// One call of a client is cancelled.
    Cancel,
    /// A node loses the queues of its locks, or a part of them.
    LoseQueue,
    /// A program that knows no queue takes a lock by plain `SET`s, and releases it later.
    Foreign,
    /// A node forgets its scripts.
    FlushScripts,
    /// A node replies with errors for a while.
    Trouble,
    /// A node evicts a key that is not needed for a majority.
    Evict,
    /// Another program replaces a lock's key by a value that is not a lock.
    Squat,
    /// A node's clock jumps forward. Outside the assumptions of locks.
    Jump,
    /// Another server replies at a node's address from now on. Outside the assumptions of locks.
    Exchange,
    /// A node loses all its keys, and runs on. Outside the assumptions of locks.
    Flush,
    /// Another server of a group becomes the master.
    Promote,
    /// A group loses the key that says since when its reign is known.
    EvictMarker,
}

/// The faults within the assumptions of registers that may concern them.
pub(super) const FAULTS_OF_REGISTERS: [Fault; 15] = [
    Fault::Cut,
    Fault::Swallow,
    Fault::Stall,
    Fault::Late,
    Fault::Stray,
    Fault::Clog,
    Fault::Freeze,
    Fault::Crash,
    Fault::Pause,
    Fault::Die,
    Fault::FlushScripts,
    Fault::Trouble,
    Fault::Jump,
    Fault::Exchange,
    Fault::Flush,
];

/// The faults within the assumptions of locks.
pub(super) const FAULTS: [Fault; 18] = [
    Fault::Cut,
    Fault::Swallow,
    Fault::Stall,
    Fault::Late,
    Fault::Stray,
    Fault::Clog,
    Fault::Freeze,
    Fault::Crash,
    Fault::Pause,
    Fault::Die,
    Fault::Leave,
    Fault::Cancel,
    Fault::LoseQueue,
    Fault::Foreign,
    Fault::FlushScripts,
    Fault::Trouble,
    Fault::Evict,
    Fault::Squat,
];
