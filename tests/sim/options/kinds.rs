//! The kinds of fault, and the assumptions that a history may break.

/// Assumptions of the algorithm that a history may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// None.
    Nothing,
    /// None, and two nodes are always one server, which is often too busy to say who it is.
    NothingWithTwins,
    /// None, and connections stall all the time, while locks are extended at their last moment.
    NothingWithStalls,
    /// None, and as few nodes as possible are healed, the others being silent, while rounds last
    /// half a ttl.
    NothingWithSilence,
    /// Nodes restart empty, and no client waits for locks that they forgot to end.
    LostData,
    /// Nodes restart without the last second, and no client waits either.
    LostSecond,
    /// Clocks run further apart than the clients are told.
    Drift,
    /// The clocks of clients do.
    ClientDrift,
    /// The clocks of nodes are set forward.
    Jump,
    /// Nodes throw away keys that are in use.
    Eviction,
    /// Replies that nobody asked for arrive while a plain `SET` is unanswered: RESP cannot tell
    /// them from its answer.
    Strays,
    /// Two servers take turns behind one address, each with keys of its own.
    Exchanged,
    /// Servers are restored from snapshots: an older state, and the same run of the server by name.
    Restored,
}

impl Beyond {
    pub(crate) const ALL: [Self; 13] = [
        Self::Nothing,
        Self::NothingWithTwins,
        Self::NothingWithStalls,
        Self::NothingWithSilence,
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
    /// A connection leads nowhere, and nobody is told.
    Swallow,
    /// A connection stalls for a while, and only this one.
    Stall,
    /// What a client writes to some nodes, often to a majority, is held for up to several ttls, on
    /// the connections that it has now. New ones work at once.
    Late,
    /// Replies that nobody asked for arrive on some of a client's connections: for a while, what
    /// its nodes have answered arrives once more, some time later; or an error at once.
    Stray,
    /// Nothing gets through between a client and a node for a while, in one direction or both.
    Clog,
    /// A node stops for a while. Its kernel goes on.
    Freeze,
    /// A node is gone for a while.
    Crash,
    /// A client stops for a while.
    Pause,
    /// A client dies, and a new one takes its place.
    Die,
    /// A node forgets its scripts.
    FlushScripts,
    /// A node answers with errors for a while.
    Trouble,
    /// A node throws a key away that is not needed for a majority.
    Evict,
    /// Somebody puts something that is no lock in a lock's place.
    Squat,
    /// A node's clock is set forward. Beyond the assumptions.
    Jump,
    /// Another server answers at a node's address from now on. Beyond the assumptions.
    Exchange,
}

/// Those within the assumptions.
pub(super) const FAULTS: [Fault; 14] = [
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
    Fault::Evict,
    Fault::Squat,
];
