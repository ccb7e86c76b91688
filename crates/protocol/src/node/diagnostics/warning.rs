//! What about a node breaks a promise, or would in a fault that is to be expected.

mod causes;
#[cfg(feature = "groups")]
mod of_group;

pub use self::causes::{Standards, add_warnings};
use super::{ClockDifference, CrashLoss};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something about a node that breaks a promise of the lock, or would
/// in a fault that is to be expected. Its text says what, why, and what to do.
///
/// There is no warning about what a node does not say: an old server, or a user who may not run
/// `INFO` or `CONFIG GET`. Only Sentinels that say nothing are one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeWarning {
    /// The server removes keys when it has no memory left (`maxmemory-policy`). Keys of locks are
    /// among them: a lock may be granted again while it is held.
    Evicts {
        /// The policy.
        policy: String,
    },
    /// The server uses nine tenths of the memory that it may use, or more. At the limit it refuses
    /// locks.
    MemoryShort {
        /// How many bytes it uses.
        used: u64,
        /// How many it may use.
        max: u64,
    },
    /// The server is a replica, and not named as a replicated group. It refuses locks, as long as
    /// it is read-only.
    Replica,
    /// The server has replicas, and is not named as a replicated group. They get its changes after
    /// the client has got its answer: if one of them takes its place, it may not know the locks
    /// that are held.
    HasReplicas {
        /// How many.
        count: u32,
    },
    /// The server is a node of a cluster, and not named as such. It refuses the keys of other
    /// nodes, and a master that is down is replaced by a replica.
    Cluster,
    /// Nothing ends the time for which a master that is cut off from its replicated group goes on
    /// granting locks: the group is named without `?replicas=`, and the server wants the
    /// acknowledgements of too few replicas (`min-replicas-to-write`, `min-replicas-max-lag`).
    NoBound {
        /// How many replicas it has.
        replicas: u32,
    },
    /// A server that is cut off from its replicated group goes on for longer than
    /// `failover_bound`.
    BoundShort {
        /// The setting that says how long.
        setting: &'static str,
        /// How long that is.
        needed: Duration,
        /// `failover_bound`.
        bound: Duration,
    },
    /// `?replicas=` names another number of replicas than the master has. One that is not counted
    /// may be promoted unseen.
    ReplicasDiffer {
        /// How many are named.
        named: u32,
        /// How many are connected to the master.
        connected: u32,
    },
    /// The cluster moves replicas between its shards (`cluster-allow-replica-migration`), and
    /// `?replicas=` says how many a shard has. One that is not counted may be promoted unseen.
    ReplicasMove,
    /// `?replicas=` names another number of replicas than the group's Sentinels know. One that is
    /// down now, and not counted, may be promoted unseen.
    ReplicasListed {
        /// How many are named.
        named: u32,
        /// How many the Sentinels know.
        listed: u32,
    },
    /// `?replicas=` is named, and the user may not use `WAIT`, without which no vote counts.
    WaitRefused,
    /// The group has fewer than three Sentinels or an even number, or so low a quorum that a
    /// minority of them finds that the master is down.
    Sentinels {
        /// How many there are.
        known: u32,
        /// How many must find that the master is down.
        quorum: u32,
    },
    /// Some Sentinels that the URL names have not said how they watch the group, within
    /// `node_timeout` or half a second, whichever is longer.
    SentinelsSilent {
        /// How many.
        silent: usize,
        /// How many the URL names.
        named: usize,
    },
    /// A failover takes longer than a lock that is kept alive is sure to live, even with the
    /// longest ttl: such locks are lost. Only with fewer than three nodes; otherwise the others
    /// keep them.
    KeptLocksEnd {
        /// After how long the Sentinels find that the master is down (`down-after-milliseconds`).
        down_after: Duration,
        /// `failover_bound`.
        bound: Duration,
        /// `max_ttl`. Two thirds of it are left when the master is lost.
        max_ttl: Duration,
    },
    /// The reign of a replicated group ends when its last replica has been away for this long, and
    /// once more when one comes (`repl-backlog-ttl`). Each time, new locks have to wait.
    BacklogEnds {
        /// How long that is.
        after: Duration,
    },
    /// The clocks of two servers of a replicated group differ by more than `clock_skew`. A lock
    /// ends too soon when the one that is ahead becomes the master.
    ClocksApart {
        /// Where the server is that is ahead.
        ahead: String,
        /// Where the other one is.
        behind: String,
        /// The difference.
        by: Duration,
        /// `clock_skew`.
        skew: Duration,
    },
    /// The server's wall clock differs from this machine's by more than the drift allowance of the
    /// longest ttl. Locks depend on how fast clocks run, not on the time that they show; they break
    /// when the difference is mended in one step.
    ClockOff {
        /// The difference.
        clock: ClockDifference,
        /// The drift allowance of `max_ttl`: a ttl loses so much
        /// validity to drift.
        allowed: Duration,
    },
    /// The node has the address of an earlier node, so both are probably on one machine, and fail
    /// together.
    SameHost {
        /// The URL of the earlier node.
        url: Arc<str>,
        /// Is that machine the one on which this program runs?
        is_here: bool,
    },
    /// The server is a ZooKeeper server without an ensemble, and is named together with others. A
    /// client may use any of these, so locks on one exclude none on another.
    Standalone,
    /// After a crash the server forgets locks that are held, and the
    /// restart guard, which covers that, is off.
    Forgets {
        /// What it forgets.
        loss: CrashLoss,
    },
}

impl NodeWarning {
    /// `evicts`, `memory_short`, `replica`, `has_replicas`, `cluster`, `no_bound`, `bound_short`,
    /// `replicas_differ`, `replicas_move`, `replicas_listed`, `wait_refused`, `sentinels`,
    /// `sentinels_silent`, `kept_locks_end`, `backlog_ends`, `clocks_apart`, `clock_off`,
    /// `same_host`, `standalone` or `forgets`: for logs and metrics.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Evicts { .. } => "evicts",
            Self::MemoryShort { .. } => "memory_short",
            Self::Replica => "replica",
            Self::HasReplicas { .. } => "has_replicas",
            Self::Cluster => "cluster",
            Self::NoBound { .. } => "no_bound",
            Self::BoundShort { .. } => "bound_short",
            Self::ReplicasDiffer { .. } => "replicas_differ",
            Self::ReplicasMove => "replicas_move",
            Self::ReplicasListed { .. } => "replicas_listed",
            Self::WaitRefused => "wait_refused",
            Self::Sentinels { .. } => "sentinels",
            Self::SentinelsSilent { .. } => "sentinels_silent",
            Self::KeptLocksEnd { .. } => "kept_locks_end",
            Self::BacklogEnds { .. } => "backlog_ends",
            Self::ClocksApart { .. } => "clocks_apart",
            Self::ClockOff { .. } => "clock_off",
            Self::SameHost { .. } => "same_host",
            Self::Standalone => "standalone",
            Self::Forgets { .. } => "forgets",
        }
    }
}

/// What, why, and what to do.
impl fmt::Display for NodeWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evicts { policy } => write!(
                f,
                "maxmemory-policy is {policy}: when memory runs short, the server removes keys of \
                 locks that are held, and another client can acquire them; set it to noeviction"
            ),
            Self::MemoryShort { used, max } => write_memory(f, *used, *max),
            Self::Replica => f.write_str(
                "the server is a replica: it refuses locks, or if it may be written to, forgets \
                 them; name its group (redis+sentinel://, redis+cluster://, ?failover=true)",
            ),
            Self::HasReplicas { count } => write!(
                f,
                "the server has {count} replica(s), which get its changes late: after a failover, \
                 a lock that is held can be acquired by another client; name it as a group \
                 (redis+sentinel://, ?failover=true), or remove the replicas"
            ),
            Self::Cluster => f.write_str(
                "the server is a node of a cluster: it refuses locks whose keys belong to other \
                 nodes, and a failover forgets locks that are held; name the cluster \
                 (redis+cluster://), or use servers without cluster mode",
            ),
            Self::NoBound { .. }
            | Self::BoundShort { .. }
            | Self::ReplicasDiffer { .. }
            | Self::ReplicasMove
            | Self::WaitRefused
            | Self::BacklogEnds { .. }
            | Self::ClocksApart { .. } => self.write_of_group(f),
            Self::ReplicasListed { .. }
            | Self::Sentinels { .. }
            | Self::SentinelsSilent { .. }
            | Self::KeptLocksEnd { .. } => self.write_of_sentinels(f),
            Self::ClockOff { clock, allowed } => write_clock(f, *clock, *allowed),
            Self::SameHost { url, is_here: true } => write!(
                f,
                "this node and {url} both run on this machine, and fail together: good for trying \
                 things out; otherwise use a machine for each node"
            ),
            Self::SameHost {
                url,
                is_here: false,
            } => write!(
                f,
                "this node has the same address as {url}: if they run on one machine, they fail \
                 together; use a machine for each node"
            ),
            Self::Standalone => f.write_str(
                "the server is standalone, and named together with others: a lock that is held on \
                 it can be acquired on another one; name the servers of one ensemble",
            ),
            Self::Forgets { loss } => write!(
                f,
                "a crash costs {loss}, locks that are held included, and restart_guard is off: \
                 another client can acquire them; turn restart_guard on, or set appendonly yes and \
                 appendfsync always"
            ),
        }
    }
}

impl NodeWarning {
    /// The text of a warning about a replicated group.
    fn write_of_group(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBound { replicas } => {
                f.write_str(
                    "a master that is cut off goes on granting locks for as long as the cut \
                     lasts, while its successor grants them too; ",
                )?;
                match replicas {
                    1 => f.write_str(
                        "two servers cannot both exclude each other and replace one another: add \
                         a second replica, and name ?replicas=2",
                    ),
                    _ => write!(
                        f,
                        "name ?replicas={replicas}, or set min-replicas-to-write to {} or more, \
                         and min-replicas-max-lag to 1 or more",
                        replicas.div_ceil(2)
                    ),
                }
            }
            Self::BoundShort {
                setting,
                needed,
                bound,
            } => write!(
                f,
                "{setting} lets a server that is cut off grant locks for {needed:?}, and \
                 failover_bound is {bound:?}: lower that setting, or raise failover_bound in all \
                 clients"
            ),
            Self::ReplicasDiffer { named, connected } => write!(
                f,
                "?replicas={named} is named, and {connected} are connected: if there are more \
                 than are named, one that is not counted may be promoted unseen; name as many as \
                 there are in all clients"
            ),
            Self::ReplicasMove => f.write_str(
                "cluster-allow-replica-migration is yes: the cluster moves replicas from shard to \
                 shard, and one that ?replicas= does not count may be promoted unseen; set it to \
                 no on all servers, or in old ones cluster-migration-barrier to 100",
            ),
            Self::WaitRefused => f.write_str(
                "WAIT is refused, and ?replicas= is named, so no vote counts: give the user +wait \
                 on all servers",
            ),
            Self::BacklogEnds { after } => write!(
                f,
                "repl-backlog-ttl is {} s: when the last replica has been away for that long, \
                 and when one comes again, new locks wait as after a failover; set it to 0",
                after.as_secs()
            ),
            Self::ClocksApart {
                ahead,
                behind,
                by,
                skew,
            } => write!(
                f,
                "the clock of {ahead} is {by:.1?} ahead of that of {behind}, and clock_skew is \
                 {skew:?}: if it becomes the master, locks that are held end too soon there, and \
                 another client can acquire them; synchronize the servers' clocks, or raise \
                 clock_skew in all clients"
            ),
            _ => Ok(()),
        }
    }

    /// The text of a warning about the Sentinels of a group.
    fn write_of_sentinels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplicasListed { named, listed } => write!(
                f,
                "?replicas={named} is named, and the Sentinels know {listed}: one that is not \
                 counted may come back and be promoted unseen; name as many as there are in all \
                 clients, or have Sentinels forget those that are gone (SENTINEL RESET)"
            ),
            Self::Sentinels { known, .. } if *known < 3 => write!(
                f,
                "{known} Sentinel(s) watch the group: without one there is no failover, or one \
                 that is cut off makes one alone; use three, on a machine each"
            ),
            Self::Sentinels { known, quorum } if *quorum <= known / 2 => write!(
                f,
                "{quorum} of {known} Sentinels suffice to find that the master is down: a \
                 minority that is cut off from it has it replaced while it works; set the quorum \
                 to {} on all (SENTINEL SET)",
                known / 2 + 1
            ),
            Self::Sentinels { known, .. } => write!(
                f,
                "{known} Sentinels watch the group: they tolerate no more failures than one fewer; \
                 use an odd number"
            ),
            Self::SentinelsSilent { silent, named } => write!(
                f,
                "{silent} of {named} Sentinels have not said how they watch the group: they are \
                 down or slow, do not know it, or refuse the user (+sentinel|master); without a \
                 majority there is no failover"
            ),
            Self::KeptLocksEnd {
                down_after,
                bound,
                max_ttl,
            } => write!(
                f,
                "a failover takes {down_after:?} (down-after-milliseconds) and failover_bound, \
                 {bound:?}, and two thirds of the longest ttl, {max_ttl:?}, are no longer: locks \
                 that are kept alive are lost in it; lower down-after-milliseconds, or raise \
                 max_ttl in all clients"
            ),
            _ => Ok(()),
        }
    }
}

fn write_memory(f: &mut fmt::Formatter<'_>, used: u64, max: u64) -> fmt::Result {
    let verb = if used < max {
        "soon refuses"
    } else {
        "refuses"
    };
    write!(
        f,
        "{used} of {max} bytes of memory are used: the server {verb} locks; raise maxmemory, or \
         remove other data"
    )
}

fn write_clock(
    f: &mut fmt::Formatter<'_>,
    clock: ClockDifference,
    allowed: Duration,
) -> fmt::Result {
    let of = if clock.is_ahead { "of " } else { "" };
    let step = if clock.is_ahead {
        "back in one step, it keeps every key for that much longer than its ttl".to_owned()
    } else {
        format!(
            "forward in one step, it ends its part of every lock that much too early, and \
             drift_factor covers {allowed:.1?} at most"
        )
    };
    write!(
        f,
        "its clock is {clock} {of}this machine's; locks need no equal clocks, but if the server's \
         is set {step}; and if this machine's is the wrong one, fencing tokens may be out of order \
         once the nodes have lost their counters; synchronize the clocks, by slewing"
    )
}

#[cfg(test)]
mod tests;
