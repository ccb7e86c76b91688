//! Who held the lock from when to when, by one clock of the machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use redlatch::LockGuard;
use rustix::time::{ClockId, clock_gettime};

/// The clock of the lines counts nanoseconds, and the limit of a lock is read a little later.
const CLOCK_READING: u64 = 1_000_000;

/// A hold: from `from` on, and until `until` at least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) process: u64,
    from: u64,
    until: u64,
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("it counts up from zero")
}

/// A file to which all processes append.
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn open(folder: &Path) -> Self {
        let file = File::options()
            .create(true)
            .append(true)
            .open(folder.join("journal"));
        Self(file.expect("the folder is there"))
    }

    pub(crate) fn enter(&self, process: u64, guard: &LockGuard) {
        // In this order a process that is stopped in between claims less than it had.
        let from = now();
        let left = u64::try_from(guard.remaining().as_nanos()).expect("a short ttl");
        self.write("in", [process, token(guard), from, from + left]);
    }

    pub(crate) fn leave(&self, process: u64, guard: &LockGuard) {
        self.write("out", [process, token(guard), now(), 0]);
    }

    fn write(&self, kind: &str, [process, token, one, two]: [u64; 4]) {
        // One write for the whole line, because others append to the same file, and the process may
        // be killed.
        let line = format!("{kind} {process} {token} {one} {two} .\n");
        (&self.0)
            .write_all(line.as_bytes())
            .expect("the file can be written");
    }
}

fn token(guard: &LockGuard) -> u64 {
    guard
        .fencing_token()
        .expect("a fenced lock has a token")
        .as_u64()
}

/// All holds, in the order of their tokens.
pub(crate) fn read(folder: &Path) -> Vec<Hold> {
    let text = fs::read_to_string(folder.join("journal")).unwrap_or_default();
    let mut holds = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [kind, process, token, one, two, "."] = words[..] else {
            panic!("{line:?}")
        };
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let process = number(process);
        let token = number(token);
        let one = number(one);
        let two = number(two);
        if kind == "in" {
            let before = holds.insert(
                token,
                Hold {
                    process,
                    from: one,
                    until: two,
                },
            );
            assert!(before.is_none(), "token {token} was given twice");
        } else {
            let hold = holds.get_mut(&token).expect("it was entered before");
            hold.until = hold.until.min(one);
        }
    }
    holds.into_values().collect()
}

/// Checks that no two overlap. Returns the longest time without a holder.
pub(crate) fn check(holds: &[Hold]) -> Duration {
    let mut gap = 0;
    let is_long = |hold: &&Hold| hold.until > hold.from;
    let holds: Vec<_> = holds.iter().filter(is_long).collect();
    for pair in holds.windows(2) {
        let [one, next] = [pair[0], pair[1]];
        assert!(
            one.until <= next.from + CLOCK_READING,
            "{one:?} overlaps {next:?}"
        );
        gap = gap.max(next.from.saturating_sub(one.until));
    }
    Duration::from_nanos(gap)
}
