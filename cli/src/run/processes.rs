//! Other processes, as `/proc` shows them on Linux. Elsewhere none is found.
//!
//! A process is known by its number and the time of its start: when a signal is sent, its number
//! alone may be that of a stranger.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt::Display;
use std::{fs, iter};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pid: Pid,
    /// In ticks since the start of the system.
    start: u64,
}

impl Process {
    /// The process with this number, if there is one.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let stat = read_stat(&pid.as_raw_nonzero()).filter(|_| has_own_proc())?;
        Some(Self {
            pid,
            start: stat.start,
        })
    }

    pub(crate) fn pid(self) -> Pid {
        self.pid
    }

    /// Is it in the process group with this number?
    pub(crate) fn is_in_group(self, group: Pid) -> bool {
        self.stat()
            .is_some_and(|stat| stat.group == group.as_raw_nonzero().get())
    }

    /// Sends it these signals. If it has ended, nobody gets them.
    pub(crate) fn signal(self, signals: &[Signal]) {
        let handle = Handle::open(self.pid);
        // The handle stays that of the process whose start this is.
        if self.stat().is_some() {
            signals.iter().for_each(|signal| handle.send(*signal));
        }
    }

    /// `None` if it is gone.
    fn stat(self) -> Option<Stat> {
        read_stat(&self.pid.as_raw_nonzero()).filter(|stat| stat.start == self.start)
    }

    fn children(self) -> Vec<Self> {
        let parent = self.pid.as_raw_nonzero();
        let mut found = Vec::new();
        for task in fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let numbers = children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok());
            for pid in numbers.filter_map(Pid::from_raw) {
                match read_stat(&pid.as_raw_nonzero()) {
                    Some(stat) if stat.parent == parent.get() => found.push(Self {
                        pid,
                        start: stat.start,
                    }),
                    _ => {}
                }
            }
        }
        // Otherwise they are those of a stranger.
        if self.stat().is_some() {
            found
        } else {
            Vec::new()
        }
    }
}

/// The other processes that have this file among their descriptors.
pub(crate) fn with_descriptor(file: &OsStr) -> Vec<Process> {
    if !has_own_proc() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        if pid == getpid() || !has_descriptor(pid, file) {
            continue;
        }
        // The process that has it must be the one whose start is known.
        found.extend(Process::of(pid).filter(|_| has_descriptor(pid, file)));
    }
    found
}

/// Has this process this file among its descriptors?
fn has_descriptor(pid: Pid, file: &OsStr) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
    let mut entries = open.into_iter().flatten().flatten();
    entries.any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == file))
}

/// These processes, what they have started, and so on: each once.
pub(crate) fn with_descendants(processes: impl IntoIterator<Item = Process>) -> Vec<Process> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut open: Vec<Process> = processes.into_iter().collect();
    while let Some(process) = open.pop() {
        if seen.insert(process) {
            found.push(process);
            open.extend(process.children());
        }
    }
    found
}

/// Waits for the children that have ended, but for these. The first process of a container gets
/// those that others have left behind, and one that a shell has become gets the shell's.
pub(crate) fn reap_others(own: &[Pid]) {
    let children = Process::of(getpid())
        .map(Process::children)
        .unwrap_or_default();
    for child in children
        .into_iter()
        .filter(|child| !own.contains(&child.pid))
    {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let _ = waitid(WaitId::Pid(child.pid), options);
    }
}

/// Is a process of the same name above this one, as far as the system tells?
pub(crate) fn is_below_another() -> bool {
    let Some(own) = read_stat(&"self").filter(|_| has_own_proc()) else {
        return false;
    };
    let above = |stat: &Stat| read_stat(&stat.parent);
    iter::successors(above(&own), above).any(|stat| stat.name == own.name)
}

/// Is this the name of the process with this number, as far as the system tells?
pub(crate) fn has_name(pid: Pid, name: &str) -> bool {
    let stat = read_stat(&pid.as_raw_nonzero()).filter(|_| has_own_proc());
    stat.is_some_and(|stat| stat.name == name)
}

/// Is this the process group of this process? It has no number if its leader is in another pid
/// namespace: rustix cannot return that.
pub(crate) fn is_own_group(group: Pid) -> bool {
    if cfg!(not(target_os = "linux")) {
        return group == rustix::process::getpgrp();
    }
    let own = || {
        read_stat(&"self")
            .filter(|_| has_own_proc())
            .map(|stat| stat.group)
    };
    group == getpid() || own() == Some(group.as_raw_nonzero().get())
}

/// Does this process lead its session, as far as the system tells?
#[cfg(target_os = "linux")]
pub(crate) fn may_lead_session() -> bool {
    read_stat(&"self").is_none_or(|stat| stat.session == stat.pid)
}

/// In a pid namespace, `/proc` may be that of another one: its numbers mean strangers here.
fn has_own_proc() -> bool {
    let own = getpid().as_raw_nonzero().to_string();
    fs::read_link("/proc/self").is_ok_and(|to| to.as_os_str() == OsStr::new(&own))
}

/// What `/proc/PID/stat` tells of a process.
#[derive(Debug, PartialEq)]
struct Stat {
    pid: i32,
    name: String,
    parent: i32,
    /// Zero if it has no number in this pid namespace. So may be the others.
    group: i32,
    session: i32,
    start: u64,
}

fn read_stat(process: &impl Display) -> Option<Stat> {
    let bytes = fs::read(format!("/proc/{process}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&bytes))
}

fn parse_stat(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    // The name may have anything in it.
    let (name, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first of them is the third of the whole line, by which proc(5) counts.
    let number = |place: usize| fields.get(place - 3)?.parse().ok();
    Some(Stat {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        parent: number(4)?,
        group: number(5)?,
        session: number(6)?,
        start: fields.get(22 - 3)?.parse().ok()?,
    })
}

/// What signals are sent to. On Linux it stays the same process, even if that ends.
struct Handle {
    pid: Pid,
    #[cfg(target_os = "linux")]
    descriptor: Option<std::os::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl Handle {
    fn open(pid: Pid) -> Self {
        use rustix::process::{PidfdFlags, pidfd_open};
        // Kernels before 5.3, and some sandboxes, do not have it.
        Self {
            pid,
            descriptor: pidfd_open(pid, PidfdFlags::empty()).ok(),
        }
    }

    fn send(&self, signal: Signal) {
        let _ = match &self.descriptor {
            Some(descriptor) => rustix::process::pidfd_send_signal(descriptor, signal),
            None => kill_process(self.pid, signal),
        };
    }
}

#[cfg(not(target_os = "linux"))]
impl Handle {
    fn open(pid: Pid) -> Self {
        Self { pid }
    }

    fn send(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::{Stat, parse_stat};

    #[test]
    fn a_name_with_brackets_and_spaces_moves_no_field() {
        let line = "12 (a) S 1 (b)) S 7 0 3 34816 12 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987 1 2\n";
        let name = "a) S 1 (b)".to_owned();
        let expected = Stat {
            pid: 12,
            name,
            parent: 7,
            group: 0,
            session: 3,
            start: 987,
        };
        assert_eq!(parse_stat(line), Some(expected));
        for end in 0..line.find("987").expect("it is there") {
            assert_eq!(parse_stat(&line[..end]), None);
        }
    }
}
