//! What a server says about itself: how it keeps its data, its memory, its role and its clock.

use super::report::NodeStatus;
use crate::time::Time;
use std::fmt;
use std::time::Duration;

/// How a server keeps its data, as far as it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Persistence {
    /// Does it write every change to a file (`appendonly yes`)? From `INFO persistence`.
    pub append_only: Option<bool>,
    /// When it flushes that file to the disk (`appendfsync`). From `CONFIG GET`.
    pub fsync: Option<Fsync>,
    /// Does it write snapshots of all data now and then (`save`)? From `CONFIG GET`.
    pub snapshots: Option<bool>,
    /// Has it had a replica, or been one, since it was started? From `INFO replication`. If it was
    /// a replica, it has what its master had sent by then.
    pub has_replicated: Option<bool>,
}

impl Persistence {
    /// Which changes a crash of the server's machine costs. `None` if the server does not say
    /// enough.
    #[must_use]
    pub fn crash_loss(self) -> Option<CrashLoss> {
        match (self.append_only?, self.fsync, self.snapshots) {
            (true, None, _) => None,
            (true, Some(Fsync::Always), _) => Some(CrashLoss::Nothing),
            (true, Some(Fsync::EverySecond), _) => Some(CrashLoss::LastSeconds),
            (true, Some(Fsync::Never), _) => Some(CrashLoss::Unwritten),
            (false, _, Some(false)) => Some(CrashLoss::Everything),
            (false, _, Some(true) | None) => Some(CrashLoss::SinceSnapshot),
        }
    }
}

/// When a server flushes its append-only file to the disk: `appendfsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fsync {
    /// Before it answers (`always`).
    Always,
    /// Once a second (`everysec`).
    EverySecond,
    /// Never: the operating system does at some time (`no`).
    Never,
}

/// The changes that a server has forgotten after a crash of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrashLoss {
    /// None that it has answered.
    Nothing,
    /// Those of the last second or two. If only the server's process dies, none.
    LastSeconds,
    /// Those that the operating system has not written yet: on Linux usually those of the last 30
    /// seconds. If only the server's process dies, none.
    Unwritten,
    /// All since the last snapshot, if the server makes any. Then also if only its process dies.
    SinceSnapshot,
    /// All. Then also if only its process dies.
    Everything,
}

impl fmt::Display for CrashLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::LastSeconds => "the last second or two",
            Self::Unwritten => "what the operating system has not written to the disk",
            Self::SinceSnapshot => "everything since the last snapshot",
            Self::Everything => "everything",
        })
    }
}

/// A server's memory, as far as it says so. From `INFO memory`, or before Redis 3.2 from
/// `CONFIG GET`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// How many bytes it uses, as far as they count towards the limit.
    pub used: Option<u64>,
    /// How many bytes it may use (`maxmemory`). Zero if there is no limit.
    pub max: Option<u64>,
    /// What it does at that limit (`maxmemory-policy`): with `noeviction`, it refuses commands that
    /// need memory; with the others, it removes keys. Escaped like the text of a
    /// [`ServerError`](crate::node::ServerError).
    pub policy: Option<String>,
}

/// A server's role in replication, or in its ZooKeeper ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A master.
    Master {
        /// How many replicas are connected to it.
        replicas: u32,
    },
    /// A replica of another server.
    Replica,
    /// A ZooKeeper server without an ensemble.
    Standalone,
    /// The server of a ZooKeeper ensemble that orders its transactions.
    Leader,
    /// A server of a ZooKeeper ensemble that votes on its transactions.
    Follower,
    /// A server of a ZooKeeper ensemble that does not vote.
    Observer,
}

/// By how much a node's wall clock differs from this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockDifference {
    /// The difference.
    pub by: Duration,
    /// Is the node's clock ahead of this machine's?
    pub is_ahead: bool,
    /// By how much the true difference may be smaller or larger: half the time that the answer
    /// took.
    pub error: Duration,
}

impl fmt::Display for ClockDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, is_ahead, error } = self;
        match is_ahead {
            _ if by <= error => write!(f, "no difference (±{error:.1?})"),
            true => write!(f, "{by:.1?} (±{error:.1?}) ahead"),
            false => write!(f, "{by:.1?} (±{error:.1?}) behind"),
        }
    }
}

/// A reading of a server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Microseconds since 1970.
    pub micros: u64,
    /// The server's clock was read between these two times.
    pub between: (Time, Time),
}

impl NodeStatus {
    /// What the server's clock shows at `now`, in microseconds since 1970.
    #[must_use]
    #[doc(hidden)]
    pub fn wall_micros(&self, now: Time) -> Option<u64> {
        let ClockReading { micros, between: (sent, read) } = self.clock_reading?;
        let since = now.since(sent.after(read.since(sent) / 2)).as_micros();
        Some(micros.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)))
    }
}

impl ClockReading {
    /// How far this clock is from a wall clock that shows `wall_micros` at `now`.
    pub(super) fn difference(self, now: Time, wall_micros: u64) -> ClockDifference {
        let (sent, read) = self.between;
        let error = read.since(sent) / 2;
        let age = u64::try_from(now.since(sent.after(error)).as_micros()).unwrap_or(u64::MAX);
        let here = wall_micros.saturating_sub(age);
        let by = Duration::from_micros(self.micros.abs_diff(here));
        ClockDifference { by, is_ahead: self.micros > here, error }
    }
}
