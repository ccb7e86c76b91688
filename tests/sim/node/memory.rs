//! What a node still has after a crash: all, all but the last second, or nothing.

use super::{Health, Node};
use redlatch::internal::Time;
use std::time::Duration;

/// How often a node writes down what it has, if it is one that can lose the last second.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// What a node comes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    All,
    /// What it had at the last second that it wrote down.
    LastSecondLost,
    Nothing,
    /// What it had then, and it does not know that time has passed.
    Snapshot,
}

/// What a node had when it last wrote it down.
#[derive(Debug, Default)]
pub(super) struct Journal {
    synced_at: Time,
    /// Key, value, and when it expires.
    keys: Vec<(Vec<u8>, Vec<u8>, Time)>,
}

impl Node {
    /// Writes down what is there, once a second, before something is changed.
    pub(super) fn sync(&mut self, now: Time) {
        if now < self.journal.synced_at.after(SYNC_EVERY) {
            return;
        }
        let keys = self.keyspace.live_keys(now).filter_map(|key| {
            let expiry = now.after(key.remaining?);
            Some((key.key.to_vec(), key.value?.to_vec(), expiry))
        });
        self.journal = Journal { synced_at: now, keys: keys.collect() };
    }

    /// Comes back after a crash.
    pub(crate) fn restart(&mut self, now: u64, memory: Memory) {
        self.starts += u64::from(memory != Memory::Snapshot);
        let now = self.clock.read(now);
        // What it had written down when it crashed a second or more after the last change is all.
        let is_synced = self.crashed_at >= self.journal.synced_at.after(SYNC_EVERY);
        let keeps_all = memory == Memory::All || memory == Memory::LastSecondLost && is_synced;
        let run_id = format!("{:02}-{}", self.index, self.starts);
        self.keyspace.restart(now, keeps_all, run_id);
        if matches!(memory, Memory::LastSecondLost | Memory::Snapshot) && !keeps_all {
            let mut loader = self.keyspace.connect();
            if let Some(password) = self.password {
                self.keyspace.execute(now, &mut loader, &[b"AUTH", password.as_bytes()]);
            }
            for (key, value, expiry) in &self.journal.keys {
                let left = (expiry.since(now).as_millis() as u64).to_string();
                if left != "0" {
                    let words: [&[u8]; 5] = [b"SET", key, value, b"PX", left.as_bytes()];
                    self.keyspace.execute(now, &mut loader, &words);
                }
            }
        }
        self.journal.synced_at = Time::ZERO;
        self.health = Health::Up;
    }
}
