//! Memory, descriptors and threads of a process, as the kernel counts them.

use std::fmt;
use std::fs;

/// Memory, descriptors and threads of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Memory that the process has written, in bytes. Pages of its program are not counted: they
    /// come when code first runs, and the kernel takes and returns them as it likes.
    pub(crate) written: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

impl Figures {
    /// `None` if the process has ended.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        let entries = |folder| Some(fs::read_dir(format!("/proc/{pid}/{folder}")).ok()?.count());
        Some(Self {
            written: kilobytes * 1024,
            descriptors: entries("fd")?,
            threads: entries("task")?,
        })
    }

    /// The maximum of each.
    pub(crate) fn most(all: &[Self]) -> Self {
        Self {
            written: all.iter().map(|figures| figures.written).max().unwrap_or(0),
            descriptors: all
                .iter()
                .map(|figures| figures.descriptors)
                .max()
                .unwrap_or(0),
            threads: all.iter().map(|figures| figures.threads).max().unwrap_or(0),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (
            kilobytes,
            Self {
                descriptors,
                threads,
                ..
            },
        ) = (self.written / 1024, self);
        write!(
            f,
            "{kilobytes} KiB, {descriptors} descriptors, {threads} threads"
        )
    }
}
