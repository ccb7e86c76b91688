//! What servers report about themselves when they are asked: how they keep their data, how much
//! memory they have, and their role.
//!
//! No answer decides anything about locks. A question that a server does not understand, or that
//! the user may not ask, leaves its field `None`.

use super::NodeStatus;
use crate::engine::Question;
use crate::node::handshake::info_field;
use crate::node::server_error::presentable;
use crate::node::{GroupOptions, Host};
use crate::resp::{Elements, Reply};
use crate::time::Time;
use std::fmt;
use std::time::Duration;

/// The answers of one server, on one connection; or to one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::node) struct Examination {
    pub(in crate::node) persistence: Persistence,
    memory: Memory,
    /// As the settings say.
    memory_limit: Memory,
    pub(in crate::node) role: Option<Role>,
    pub(in crate::node) is_cluster: Option<bool>,
    /// Does a replica hear its master?
    pub(in crate::node) hears_master: Option<bool>,
    pub(in crate::node) failover: FailoverSettings,
    pub(in crate::node) clock: Option<ClockReading>,
    /// The machine on which it runs, as the connection shows it.
    pub(in crate::node) host: Option<Host>,
    /// What the server does not understand, or the user may not ask. It is not asked again: the
    /// server may log each refusal, and the command after an error needs a proof of the order.
    refused: Vec<Question>,
}

impl Examination {
    /// Reads the answer to this question. `None` if it is an answer to another command. When the
    /// clock was read is not known here.
    pub(in crate::node) fn read(
        question: Question,
        reply: &Reply<'_>,
        secret: Option<&[u8]>,
    ) -> Option<Self> {
        let setting = |name| match reply {
            Reply::Map(list) | Reply::Array(list) => setting(list, name),
            _ => None,
        };
        let mut read = Self::default();
        match (question, reply) {
            (Question::MemoryLimit, _) => {
                read.memory_limit.max = setting("maxmemory")?.and_then(number);
                let policy = setting("maxmemory-policy")?;
                read.memory_limit.policy = policy.map(|text| presentable(text, secret));
            }
            (Question::Fsync, _) => {
                read.persistence.fsync = setting("appendfsync")?.and_then(fsync);
            }
            (Question::Snapshots, _) => {
                read.persistence.snapshots = setting("save")?.map(|points| !points.is_empty());
            }
            (Question::MinReplicas, _) => {
                read.failover.min_replicas = setting("min-replicas-to-write")?.and_then(number);
                let max_lag = setting("min-replicas-max-lag")?.and_then(number);
                read.failover.max_lag = max_lag.map(Duration::from_secs);
            }
            (Question::Backlog, _) => {
                let kept_for = setting("repl-backlog-ttl")?.and_then(number);
                read.failover.backlog_ttl = kept_for.map(Duration::from_secs);
            }
            (Question::ClusterSettings, _) => {
                let timeout = setting("cluster-node-timeout")?.and_then(number);
                read.failover.cluster_timeout = timeout.map(Duration::from_millis);
                // Old servers have no such setting, and move replicas.
                let moves = setting("cluster-allow-replica-migration")?;
                read.failover.replica_migration = Some(moves != Some(b"no"));
            }
            (Question::Time, Reply::Array(_)) => {
                read.clock = Some(ClockReading::read(reply, (Time::ZERO, Time::ZERO))?);
            }
            (Question::Wait, Reply::Integer(_)) => read.failover.may_wait = Some(true),
            (Question::Time | Question::Wait, _) => return None,
            (_, Reply::Bulk(text) | Reply::Verbatim { text, .. }) => {
                read.read_info(question, &String::from_utf8_lossy(text), secret);
            }
            _ => return None,
        }
        Some(read)
    }

    fn read_info(&mut self, question: Question, info: &str, secret: Option<&[u8]>) {
        let number = |name| info_field(info, name).and_then(|text| text.parse::<u64>().ok());
        let flag = |name| number(name).map(|number| number != 0);
        match question {
            Question::Memory => {
                // The buffers for replicas and for the append-only file do not count.
                let not_counted = number("mem_not_counted_for_evict").unwrap_or(0);
                let policy = info_field(info, "maxmemory_policy");
                self.memory = Memory {
                    used: number("used_memory").map(|used| used.saturating_sub(not_counted)),
                    max: number("maxmemory"),
                    policy: policy.map(|policy| presentable(policy.as_bytes(), secret)),
                };
            }
            Question::Persistence => self.persistence.append_only = flag("aof_enabled"),
            Question::Replication => {
                self.hears_master = info_field(info, "master_link_status").map(|it| it == "up");
                let replicas = number("connected_slaves").and_then(|it| u32::try_from(it).ok());
                self.role = match info_field(info, "role") {
                    Some("master") => Some(Role::Master {
                        replicas: replicas.unwrap_or(0),
                    }),
                    Some("slave" | "replica") => Some(Role::Replica),
                    _ => None,
                };
                // The count of what replicas were sent is kept until the server ends, but may be 0.
                // The backlog is kept for an hour, and so is the offset at a promotion (or -1).
                let traces = [
                    "master_repl_offset",
                    "repl_backlog_active",
                    "second_repl_offset",
                ];
                let traces = traces.map(flag);
                let has_replicated = traces.contains(&Some(true));
                self.persistence.has_replicated = traces[0].map(|_| has_replicated);
            }
            Question::Cluster => self.is_cluster = flag("cluster_enabled"),
            // These are not asked of `INFO`.
            Question::Fsync
            | Question::Snapshots
            | Question::MemoryLimit
            | Question::MinReplicas
            | Question::Backlog
            | Question::ClusterSettings
            | Question::Wait
            | Question::Time => {}
        }
    }

    /// The server's memory. Servers before Redis 3.2 report its limit only among their settings.
    pub(in crate::node) fn memory(&self) -> Memory {
        let memory = &self.memory;
        let limit = &self.memory_limit;
        Memory {
            used: memory.used,
            max: memory.max.or(limit.max),
            policy: memory.policy.as_ref().or(limit.policy.as_ref()).cloned(),
        }
    }

    /// The questions that are worth asking of a node, which is a group with these options.
    pub(in crate::node) fn questions(&self, group: Option<&GroupOptions>) -> Vec<Question> {
        let waits = group.is_some_and(GroupOptions::waits_for_replicas);
        let mut questions = Question::ALL.to_vec();
        questions.retain(|question| {
            let is_of_node = match question {
                Question::Wait => waits,
                question => group.is_some() || !question.is_of_groups(),
            };
            is_of_node && !self.refused.contains(question)
        });
        questions
    }

    /// Notes an answer, or with the default that there is none. The server got the question and
    /// answered it between these two times.
    pub(in crate::node) fn note(&mut self, question: Question, read: Self, between: (Time, Time)) {
        let persistence = &mut self.persistence;
        let said = read.persistence;
        match question {
            Question::Memory => self.memory = read.memory,
            Question::MemoryLimit => self.memory_limit = read.memory_limit,
            Question::Persistence => persistence.append_only = said.append_only,
            Question::Replication => {
                self.role = read.role;
                persistence.has_replicated = said.has_replicated;
                self.hears_master = read.hears_master;
            }
            Question::Cluster => self.is_cluster = read.is_cluster,
            Question::Fsync => persistence.fsync = said.fsync,
            Question::Snapshots => persistence.snapshots = said.snapshots,
            Question::MinReplicas => {
                self.failover.min_replicas = read.failover.min_replicas;
                self.failover.max_lag = read.failover.max_lag;
            }
            Question::Backlog => self.failover.backlog_ttl = read.failover.backlog_ttl,
            Question::ClusterSettings => {
                self.failover.cluster_timeout = read.failover.cluster_timeout;
                self.failover.replica_migration = read.failover.replica_migration;
            }
            Question::Wait => self.failover.may_wait = read.failover.may_wait,
            Question::Time => self.clock = read.clock.map(|it| ClockReading { between, ..it }),
        }
    }

    /// Notes that the server will not answer.
    pub(in crate::node) fn refuse(&mut self, question: Question, between: (Time, Time)) {
        if !self.refused.contains(&question) {
            self.refused.push(question);
        }
        self.note(question, Self::default(), between);
        if question == Question::Wait {
            self.failover.may_wait = Some(false);
        }
    }
}

/// The value of a setting in the answer to `CONFIG GET` about all settings whose names begin like
/// its name. `Some(None)` if the server has no such setting, `None` if this is no such answer.
fn setting<'a>(list: &Elements<'a>, name: &str) -> Option<Option<&'a [u8]>> {
    let stem = name.split('-').next().unwrap_or(name).as_bytes();
    let mut value = None;
    let mut elements = list.iter();
    while let Some(found) = elements.next() {
        let (Reply::Bulk(found), Reply::Bulk(text)) = (found, elements.next()?) else {
            return None;
        };
        if !found
            .get(..stem.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(stem))
        {
            return None;
        }
        value = value.or(found.eq_ignore_ascii_case(name.as_bytes()).then_some(text));
    }
    Some(value)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn fsync(value: &[u8]) -> Option<Fsync> {
    match value {
        b"always" => Some(Fsync::Always),
        b"everysec" => Some(Fsync::EverySecond),
        b"no" => Some(Fsync::Never),
        _ => None,
    }
}

/// The answer to `TIME`: seconds since 1970, and microseconds.
fn time(list: &Elements<'_>) -> Option<u64> {
    let mut elements = list.iter();
    let mut part = || match elements.next() {
        Some(Reply::Bulk(digits)) => number(digits),
        _ => None,
    };
    let seconds = part()?;
    let micros = part()?;
    let is_whole = elements.next().is_none() && micros < 1_000_000;
    seconds
        .checked_mul(1_000_000)?
        .checked_add(micros)
        .filter(|_| is_whole)
}

// What a server says about itself: how it keeps its data, its memory, its role and its clock.

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

/// What a server of a replicated group does when it hears from too few others, as far as it says
/// so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::node) struct FailoverSettings {
    pub(in crate::node) min_replicas: Option<u64>,
    pub(in crate::node) max_lag: Option<Duration>,
    pub(in crate::node) backlog_ttl: Option<Duration>,
    pub(in crate::node) cluster_timeout: Option<Duration>,
    pub(in crate::node) replica_migration: Option<bool>,
    /// May the user have it wait for its replicas?
    pub(in crate::node) may_wait: Option<bool>,
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
        let Self {
            by,
            is_ahead,
            error,
        } = self;
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
        let ClockReading {
            micros,
            between: (sent, read),
        } = self.clock_reading?;
        let since = now.since(sent.after(read.since(sent) / 2)).as_micros();
        Some(micros.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)))
    }
}

impl ClockReading {
    /// Reads the answer to `TIME`, which the server gave between these two times.
    pub fn read(reply: &Reply<'_>, between: (Time, Time)) -> Option<Self> {
        let Reply::Array(list) = reply else {
            return None;
        };
        let micros = time(list)?;
        Some(Self { micros, between })
    }

    /// How far this clock is from another one.
    #[cfg(feature = "groups")]
    pub(super) fn difference_from(self, other: Self) -> ClockDifference {
        let ahead = self.ahead() - other.ahead();
        let micros = u64::try_from(ahead.unsigned_abs()).unwrap_or(u64::MAX);
        ClockDifference {
            by: Duration::from_micros(micros),
            is_ahead: ahead > 0,
            error: self.error().saturating_add(other.error()),
        }
    }

    /// By how many microseconds it is ahead of the clock by which it was read.
    #[cfg(feature = "groups")]
    fn ahead(self) -> i128 {
        let middle = self.between.0.after(self.error());
        i128::from(self.micros) - middle.since(Time::ZERO).as_micros() as i128
    }

    /// By how much what it shows may be off: half the time that the answer took.
    fn error(self) -> Duration {
        let (sent, read) = self.between;
        read.since(sent) / 2
    }

    /// How far this clock is from a wall clock that shows `wall_micros` at `now`.
    pub(in crate::node) fn difference(self, now: Time, wall_micros: u64) -> ClockDifference {
        let error = self.error();
        let middle = self.between.0.after(error);
        let age = u64::try_from(now.since(middle).as_micros()).unwrap_or(u64::MAX);
        let here = wall_micros.saturating_sub(age);
        let by = Duration::from_micros(self.micros.abs_diff(here));
        ClockDifference {
            by,
            is_ahead: self.micros > here,
            error,
        }
    }
}

#[cfg(test)]
mod tests;
