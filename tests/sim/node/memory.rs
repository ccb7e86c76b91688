//! The keys of a node after a crash: all, all but those of the last second, or none.

use super::registers::is_of_registers;
use super::{Health, Node};
use redlatch_protocol::node::command::SHARED;
use redlatch_protocol::node::{MARKER, script};
use redlatch_protocol::time::Time;
use std::time::Duration;

/// How often a node writes its keys to disk, if it can lose the last second.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The keys of a restarted node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    All,
    /// Those of the last write to disk.
    LastSecondLost,
    Nothing,
    /// Those of the last write to disk, without the time that has passed since.
    Snapshot,
}

/// The keys of a node at its last write to disk.
#[derive(Debug, Default)]
pub(super) struct Journal {
    synced_at: Time,
    /// Key, value, and when it expires.
    keys: Vec<(Vec<u8>, Vec<u8>, Time)>,
    /// Of registers: key and value. They never expire.
    lasting: Vec<(Vec<u8>, Vec<u8>)>,
    /// Of shared locks: key, member, and when it expires.
    shares: Vec<(Vec<u8>, Vec<u8>, Time)>,
}

impl Node {
    /// Writes the keys to disk, once a second, before a change.
    pub(super) fn sync(&mut self, now: Time) {
        if now < self.journal.synced_at.after(SYNC_EVERY) {
            return;
        }
        let keys = self.keyspace.live_keys(now).filter_map(|key| {
            let expiry = now.after(key.remaining?);
            Some((key.key.to_vec(), key.value?.to_vec(), expiry))
        });
        let is_lock = |(key, value, _): &(Vec<u8>, Vec<u8>, Time)| key != MARKER && value != SHARED;
        let keys: Vec<_> = keys.filter(is_lock).collect();
        let mut shares = Vec::new();
        for key in self.shared_locks(self.clock.when(now)) {
            for (member, left) in self.shares(now, &key) {
                shares.push((key.clone(), member, now.after(Duration::from_millis(left))));
            }
        }
        let lasting = self
            .keyspace
            .live_keys(now)
            .filter(|key| is_of_registers(key.key));
        let lasting = lasting.filter_map(|key| Some((key.key.to_vec(), key.value?.to_vec())));
        let lasting = lasting.collect();
        self.journal = Journal {
            synced_at: now,
            keys,
            lasting,
            shares,
        };
    }

    /// Restarts after a crash.
    pub(crate) fn restart(&mut self, now: u64, memory: Memory) {
        self.starts += u64::from(memory != Memory::Snapshot);
        let now = self.clock.read(now);
        // A second after the last change, all keys are on disk.
        let is_synced = self.crashed_at >= self.journal.synced_at.after(SYNC_EVERY);
        let keeps_all = memory == Memory::All || memory == Memory::LastSecondLost && is_synced;
        let run_id = format!("{}r{}", &self.run_id[..2], self.starts);
        self.run_id.clone_from(&run_id);
        self.keyspace.restart(now, keeps_all, run_id);
        if matches!(memory, Memory::LastSecondLost | Memory::Snapshot) && !keeps_all {
            let mut loader = self.keyspace.connect();
            if let Some(password) = self.password {
                self.keyspace
                    .execute(now, &mut loader, &[b"AUTH", password.as_bytes()]);
            }
            for (key, value, expiry) in &self.journal.keys {
                let left = (expiry.since(now).as_millis() as u64).to_string();
                if left != "0" {
                    let words: [&[u8]; 5] = [b"SET", key, value, b"PX", left.as_bytes()];
                    self.keyspace.execute(now, &mut loader, &words);
                }
            }
            for (key, value) in &self.journal.lasting {
                self.keyspace
                    .execute(now, &mut loader, &[b"SET", key, value]);
            }
            for (key, member, expiry) in &self.journal.shares {
                let left = (expiry.since(now).as_millis() as u64).to_string();
                let colon = member.iter().position(|byte| *byte == b':');
                let (permit, value) = member.split_at(colon.expect("a member has a colon"));
                if left != "0" {
                    let source = script::KEEP_SHARED.source.as_bytes();
                    let call: [&[u8]; 4] = [b"EVAL", source, b"1", key];
                    let share: [&[u8]; 3] = [permit, &value[1..], left.as_bytes()];
                    let words = [&call[..], &share, &[b"restore", b"1"]].concat();
                    self.keyspace.execute(now, &mut loader, &words);
                }
            }
        }
        self.journal.synced_at = Time::ZERO;
        self.health = Health::Up;
    }
}
