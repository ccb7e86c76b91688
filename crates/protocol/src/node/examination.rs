//! What servers report about themselves when they are asked: how they keep their data, how much
//! memory they have, and their role.
//!
//! No answer decides anything about locks. A question that a server does not understand, or that
//! the user may not ask, leaves its field `None`.

use super::identity::info_field;
use super::server_error::presentable;
use super::server_facts::{ClockReading, Fsync, Memory, Persistence, Role};
use super::warning::Host;
use crate::engine::Question;
use crate::resp::{Elements, Reply};
use crate::time::Time;

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// To [`Question::Memory`].
    Memory(Memory),
    /// To [`Question::Persistence`]: is there an append-only file?
    AppendOnly(Option<bool>),
    /// To [`Question::Replication`]: its role, and has it had a replica, or been one, since it was
    /// started?
    Role(Option<Role>, Option<bool>),
    /// To [`Question::Cluster`]: is it a node of one?
    Cluster(Option<bool>),
    /// To [`Question::Fsync`].
    Fsync(Option<Fsync>),
    /// To [`Question::Snapshots`]: are there any?
    Snapshots(Option<bool>),
    /// To [`Question::MemoryLimit`]: a memory without use.
    MemoryLimit(Memory),
    /// To [`Question::Time`]: microseconds since 1970.
    Time(Option<u64>),
}

impl Finding {
    /// The server does not answer this question.
    pub fn unknown(question: Question) -> Self {
        match question {
            Question::Memory => Self::Memory(Memory::default()),
            Question::Persistence => Self::AppendOnly(None),
            Question::Replication => Self::Role(None, None),
            Question::Cluster => Self::Cluster(None),
            Question::Fsync => Self::Fsync(None),
            Question::Snapshots => Self::Snapshots(None),
            Question::MemoryLimit => Self::MemoryLimit(Memory::default()),
            Question::Time => Self::Time(None),
        }
    }

    /// Reads the answer to this question. `None` if it is an answer to another command.
    pub(super) fn read(
        question: Question,
        reply: &Reply<'_>,
        secret: Option<&[u8]>,
    ) -> Option<Self> {
        let setting = |name| match reply {
            Reply::Map(list) | Reply::Array(list) => setting(list, name),
            _ => None,
        };
        let shown = |text: &[u8]| presentable(text, secret);
        Some(match (question, reply) {
            (Question::MemoryLimit, _) => {
                let max = setting("maxmemory")?.and_then(number);
                let policy = setting("maxmemory-policy")?.map(shown);
                Self::MemoryLimit(Memory { used: None, max, policy })
            }
            (Question::Fsync, _) => Self::Fsync(setting("appendfsync")?.and_then(fsync)),
            (Question::Snapshots, _) => {
                Self::Snapshots(setting("save")?.map(|points| !points.is_empty()))
            }
            (Question::Time, Reply::Array(list)) => Self::Time(Some(time(list)?)),
            (Question::Time, _) => return None,
            (_, Reply::Bulk(text) | Reply::Verbatim { text, .. }) => {
                Self::of_info(question, &String::from_utf8_lossy(text), secret)
            }
            _ => return None,
        })
    }

    fn of_info(question: Question, info: &str, secret: Option<&[u8]>) -> Self {
        let number = |name| info_field(info, name).and_then(|text| text.parse::<u64>().ok());
        let flag = |name| number(name).map(|number| number != 0);
        match question {
            Question::Memory => {
                // The buffers for replicas and for the append-only file do not count.
                let not_counted = number("mem_not_counted_for_evict").unwrap_or(0);
                let policy = info_field(info, "maxmemory_policy");
                Self::Memory(Memory {
                    used: number("used_memory").map(|used| used.saturating_sub(not_counted)),
                    max: number("maxmemory"),
                    policy: policy.map(|policy| presentable(policy.as_bytes(), secret)),
                })
            }
            Question::Persistence => Self::AppendOnly(flag("aof_enabled")),
            Question::Replication => {
                let replicas = number("connected_slaves").and_then(|it| u32::try_from(it).ok());
                let role = match info_field(info, "role") {
                    Some("master") => Some(Role::Master { replicas: replicas.unwrap_or(0) }),
                    Some("slave" | "replica") => Some(Role::Replica),
                    _ => None,
                };
                // The count of what replicas were sent is kept until the server ends, but may be 0.
                // The backlog is kept for an hour, and so is the offset at a promotion (or -1).
                let traces = ["master_repl_offset", "repl_backlog_active", "second_repl_offset"];
                let traces = traces.map(flag);
                let has_replicated = traces.contains(&Some(true));
                Self::Role(role, traces[0].map(|_| has_replicated))
            }
            Question::Cluster => Self::Cluster(flag("cluster_enabled")),
            Question::Fsync | Question::Snapshots | Question::MemoryLimit | Question::Time => {
                Self::unknown(question)
            }
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
        if !found.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem)) {
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
    let (seconds, micros) = (part()?, part()?);
    let is_whole = elements.next().is_none() && micros < 1_000_000;
    seconds.checked_mul(1_000_000)?.checked_add(micros).filter(|_| is_whole)
}

/// The answers of one server, on one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Examination {
    pub(super) persistence: Persistence,
    memory: Memory,
    /// As the settings say.
    memory_limit: Memory,
    pub(super) role: Option<Role>,
    pub(super) is_cluster: Option<bool>,
    pub(super) clock: Option<ClockReading>,
    /// The machine on which it runs, as the connection shows it.
    pub(super) host: Option<Host>,
    /// What the server does not understand, or the user may not ask. It is not asked again: the
    /// server may log each refusal, and the command after an error needs a proof of the order.
    refused: Vec<Question>,
}

impl Examination {
    /// The server's memory. Servers before Redis 3.2 report its limit only among their settings.
    pub(super) fn memory(&self) -> Memory {
        let (memory, limit) = (&self.memory, &self.memory_limit);
        Memory {
            used: memory.used,
            max: memory.max.or(limit.max),
            policy: memory.policy.as_ref().or(limit.policy.as_ref()).cloned(),
        }
    }

    /// The questions that are worth asking.
    pub(super) fn questions(&self) -> Vec<Question> {
        Question::ALL.into_iter().filter(|question| !self.refused.contains(question)).collect()
    }

    /// Notes an answer. The server got the question and answered it between these two times.
    pub(super) fn note(&mut self, finding: Finding, between: (Time, Time)) {
        match finding {
            Finding::Memory(memory) => self.memory = memory,
            Finding::MemoryLimit(limit) => self.memory_limit = limit,
            Finding::AppendOnly(is_on) => self.persistence.append_only = is_on,
            Finding::Role(role, has_replicated) => {
                (self.role, self.persistence.has_replicated) = (role, has_replicated);
            }
            Finding::Cluster(is_cluster) => self.is_cluster = is_cluster,
            Finding::Fsync(fsync) => self.persistence.fsync = fsync,
            Finding::Snapshots(are_made) => self.persistence.snapshots = are_made,
            Finding::Time(micros) => {
                self.clock = micros.map(|micros| ClockReading { micros, between });
            }
        }
    }

    /// Notes that the server will not answer.
    pub(super) fn refuse(&mut self, question: Question, between: (Time, Time)) {
        if !self.refused.contains(&question) {
            self.refused.push(question);
        }
        self.note(Finding::unknown(question), between);
    }
}

#[cfg(test)]
mod tests;
