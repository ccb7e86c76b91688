//! Looks at the nodes and at the locks.

use super::arguments::ExporterArguments;
use super::text;
use crate::exit::Failure;
use crate::output;
use crate::top::search::{self, Ages, Row};
use redlatch::{FoundLock, LockClient, NodeStatus};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant, SystemTime};

/// A lock with a longer name is left out: each of its series would have all of it.
pub(super) const NAME_MAX: usize = 256;

/// What was seen at one time.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) at: SystemTime,
    pub(super) took: Duration,
    pub(super) nodes: Vec<NodeStatus>,
    /// `None` without patterns, or if too few nodes answered.
    pub(super) locks: Option<LockSnapshot>,
    pub(super) has_patterns: bool,
}

#[derive(Debug)]
pub(super) struct LockSnapshot {
    /// Those that somebody holds or waits for.
    pub(super) rows: Vec<Row>,
    /// Those that were not looked at.
    pub(super) left_out: usize,
}

pub(super) struct Collector<'a> {
    client: &'a LockClient,
    patterns: &'a [OsString],
    locks_max: usize,
    ages: Ages,
    /// Why the last listing failed, so that it is said once.
    failure: Option<String>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(client: &'a LockClient, arguments: &'a ExporterArguments) -> Self {
        let patterns = &*arguments.pattern;
        let locks_max = arguments.max_locks;
        Self {
            client,
            patterns,
            locks_max,
            ages: Ages::default(),
            failure: None,
        }
    }

    /// Looks at all, and returns the page of metrics.
    pub(super) fn collect(&mut self) -> String {
        let at = SystemTime::now();
        let start = Instant::now();
        let nodes = self.client.nodes();
        let has_patterns = !self.patterns.is_empty();
        let locks = if has_patterns {
            self.noted(Self::locks)
        } else {
            None
        };
        let took = start.elapsed();
        text::page(&Snapshot {
            at,
            took,
            nodes,
            locks,
            has_patterns,
        })
    }

    /// A failure is said on stderr when it comes, and not each time.
    fn noted<T>(&mut self, look: impl Fn(&mut Self) -> Result<T, Failure>) -> Option<T> {
        match look(self) {
            Ok(seen) => {
                self.failure = None;
                Some(seen)
            }
            Err(failure) => {
                if self.failure.is_none() {
                    output::note(&failure.text);
                }
                self.failure = Some(failure.text);
                None
            }
        }
    }

    fn locks(&mut self) -> Result<LockSnapshot, Failure> {
        let mut kept: BTreeSet<FoundLock> = BTreeSet::new();
        let mut left_out = 0;
        for pattern in self.patterns {
            for found in self.client.locks(pattern.as_bytes()) {
                let found = found?;
                let is_kept = found.as_ref().len() <= NAME_MAX;
                if is_kept {
                    kept.insert(found);
                }
                if !is_kept || kept.len() > self.locks_max {
                    left_out += 1;
                }
                if kept.len() > self.locks_max {
                    kept.pop_last();
                }
            }
        }
        let mut rows = search::of(self.client, kept.into_iter().map(Ok))?;
        self.ages.fill(&mut rows);
        rows.sort_by(|one, other| one.lock.cmp(&other.lock));
        Ok(LockSnapshot { rows, left_out })
    }
}
