//! What a server is asked about its state, along with a ping.

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
    /// Of how many replicas a master wants an acknowledgement, and how late it may be.
    MinReplicas,
    /// For how long it keeps the backlog of a reign without replicas.
    Backlog,
    /// After how long a node of a cluster that hears no majority refuses everything, and whether
    /// the cluster moves replicas between shards.
    ClusterSettings,
    /// May the user ask it to wait for its replicas?
    Wait,
    /// Its time of day.
    Time,
}

impl Question {
    /// All questions, in the order in which they are asked. The answers to the last ones have other
    /// forms than those before: if an unsolicited reply shifts the answers, they do not fit.
    pub const ALL: [Self; 12] = [
        Self::Memory,
        Self::Persistence,
        Self::Replication,
        Self::Cluster,
        Self::Fsync,
        Self::Snapshots,
        Self::MemoryLimit,
        Self::MinReplicas,
        Self::Backlog,
        Self::ClusterSettings,
        Self::Wait,
        Self::Time,
    ];

    /// Is it asked of replicated groups only?
    pub fn is_of_groups(self) -> bool {
        matches!(
            self,
            Self::MinReplicas | Self::Backlog | Self::ClusterSettings | Self::Wait
        )
    }
}
