//! The data that the lock protects: a counter that loses concurrent updates, and a log of which
//! thread held the lock from when to when.
//!
//! Times are from one clock of the machine, so the lines of all processes can be compared. Each
//! line is one write; a process that is killed while it writes leaves an incomplete line, without
//! the mark at the end.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

pub(crate) const RESOURCES: [&str; 3] = ["soak:apples", "soak:pears", "soak:plums"];

/// The digits of the counter in its file.
const DIGITS: usize = 20;

/// Nanoseconds since the machine was booted.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    u64::try_from(nanos).expect("the clock counts up from zero")
}

/// A hold of the lock: from `granted` until `until` at least, and never after `latest`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) granted: u64,
    pub(crate) until: u64,
    pub(crate) latest: u64,
}

/// The writer of a line: the process, its thread, and how many locks that has had before.
pub(crate) type Section = (u64, u64, u64);

/// The counter and the log of one resource.
pub(crate) struct Journal {
    counter: File,
    log: File,
}

fn paths(folder: &Path, resource: usize) -> (PathBuf, PathBuf) {
    (
        folder.join(format!("counter-{resource}")),
        folder.join(format!("log-{resource}")),
    )
}

impl Journal {
    /// Creates the files of a resource: an empty log and a counter of zero.
    pub(crate) fn create(folder: &Path, resource: usize) {
        let (counter, log) = paths(folder, resource);
        fs::write(counter, format!("{:0DIGITS$}", 0)).expect("the counter can be made");
        fs::write(log, "").expect("the log can be made");
    }

    pub(crate) fn open(folder: &Path, resource: usize) -> Self {
        let (counter, log) = paths(folder, resource);
        let counter = File::options().read(true).write(true).open(counter);
        let log = File::options().append(true).open(log);
        Self {
            counter: counter.expect("it was made"),
            log: log.expect("it was made"),
        }
    }

    /// The text of a resource's log.
    pub(crate) fn text(folder: &Path, resource: usize) -> String {
        fs::read_to_string(paths(folder, resource).1).expect("the log can be read")
    }

    pub(crate) fn count(&self) -> u64 {
        let mut digits = [0; DIGITS];
        self.counter
            .read_exact_at(&mut digits, 0)
            .expect("the counter can be read");
        let text = String::from_utf8(digits.to_vec()).expect("digits");
        text.parse().expect("a number")
    }

    pub(crate) fn set_count(&self, count: u64) {
        let text = format!("{count:0DIGITS$}");
        self.counter
            .write_all_at(text.as_bytes(), 0)
            .expect("the counter can be written");
    }

    /// Written when the lock was acquired.
    pub(crate) fn entered(&self, (process, thread, number): Section, span: Span) {
        let Span { granted, until, .. } = span;
        self.write(&format!("in {process} {thread} {number} {granted} {until}"));
    }

    /// Written before the lock is released: until when it was held, and the value of the counter.
    pub(crate) fn left(&self, (process, thread, number): Section, end: u64, count: u64) {
        self.write(&format!("out {process} {thread} {number} {end} {count}"));
    }

    fn write(&self, line: &str) {
        // One write for the whole line, because others append to the same file.
        (&self.log)
            .write_all(format!("\n{line} .").as_bytes())
            .expect("the log can be written");
    }
}
