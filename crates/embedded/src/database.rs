//! One numbered database: keys, their values and their times to live.
//!
//! While connections track keys, it also notes which keys it changes, for `tracking.rs`.

use std::collections::BTreeMap;

use super::reply::Failure;
use super::zset::SortedSet;

/// Expired keys are swept only in databases with at least this many keys.
pub(super) const SWEEP_MIN: usize = 1024;

/// One numbered database.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) entries: BTreeMap<Vec<u8>, Entry>,
    sweep_at: usize,
    /// Note the keys that change.
    is_watched: bool,
    /// The keys that were changed, deleted or expired, in this order.
    changed: Vec<Vec<u8>>,
}

impl Database {
    /// The entry of a key. Removes it if it has expired. If the caller changes the entry, it calls
    /// [`touch`](Self::touch) too.
    pub(super) fn find(&mut self, now_ms: i64, key: &[u8]) -> Option<&mut Entry> {
        if self.entries.get(key).is_some_and(|entry| !entry.lives_at(now_ms)) {
            self.entries.remove(key);
            self.touch(key);
        }
        self.entries.get_mut(key)
    }

    /// The value of a key, which must be a string.
    pub(super) fn string(&mut self, now_ms: i64, key: &[u8]) -> Result<Option<&[u8]>, Failure> {
        match self.find(now_ms, key) {
            None => Ok(None),
            Some(entry) => entry.value.as_string().map(Some).ok_or_else(Failure::wrong_type),
        }
    }

    /// The value of a key, which must be a sorted set.
    pub(super) fn sorted_set(
        &mut self,
        now_ms: i64,
        key: &[u8],
    ) -> Result<Option<&mut SortedSet>, Failure> {
        match self.find(now_ms, key) {
            None => Ok(None),
            Some(Entry { value: Value::SortedSet(set), .. }) => Ok(Some(set)),
            Some(_) => Err(Failure::wrong_type()),
        }
    }

    /// Sets a key and replaces its old value.
    ///
    /// [`find`](Self::find) removes only the expired keys that are looked up. So whenever the
    /// number of keys has doubled, all expired keys are removed: constant time per key.
    pub(super) fn insert(&mut self, now_ms: i64, key: &[u8], entry: Entry) {
        if self.entries.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.sweep(now_ms);
            self.sweep_at = self.entries.len().saturating_mul(2);
        }
        self.entries.insert(key.to_vec(), entry);
        self.touch(key);
    }

    /// Removes a key. Returns whether it existed.
    pub(super) fn remove(&mut self, now_ms: i64, key: &[u8]) -> bool {
        let is_there = self.find(now_ms, key).is_some();
        if is_there {
            self.entries.remove(key);
            self.touch(key);
        }
        is_there
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.sweep_at = 0;
    }

    /// The number of keys, and how many of them expire. Removes expired keys first.
    pub(super) fn census(&mut self, now_ms: i64) -> (usize, usize) {
        self.sweep(now_ms);
        let expiring = self.entries.values().filter(|entry| entry.expires_at_ms.is_some()).count();
        (self.entries.len(), expiring)
    }

    fn sweep(&mut self, now_ms: i64) {
        let Self { entries, is_watched, changed, .. } = self;
        entries.retain(|key, entry| {
            let lives = entry.lives_at(now_ms);
            if !lives && *is_watched {
                changed.push(key.clone());
            }
            lives
        });
    }

    /// Notes that a key has changed.
    pub(super) fn touch(&mut self, key: &[u8]) {
        if self.is_watched {
            self.changed.push(key.to_vec());
        }
    }

    /// Notes from now on which keys change, or no longer.
    pub(super) fn watch(&mut self, is_watched: bool) {
        self.is_watched = is_watched;
    }

    /// The keys that have changed since the last call, in this order.
    pub(super) fn take_changed(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.changed)
    }
}

/// A value, and the last millisecond in which it exists, if it expires.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) expires_at_ms: Option<i64>,
}

impl Entry {
    /// As in Redis (`keyIsExpired`): expired when the clock is past this millisecond.
    pub(super) fn lives_at(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|when| now_ms <= when)
    }
}

/// The value of a key.
#[derive(Debug)]
pub(super) enum Value {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    /// It has a member: a sorted set without members does not exist.
    SortedSet(SortedSet),
}

impl Value {
    pub(super) fn as_string(&self) -> Option<&[u8]> {
        match self {
            Self::String(bytes) => Some(bytes),
            Self::List(_) | Self::SortedSet(_) => None,
        }
    }

    pub(super) fn as_set(&self) -> Option<&SortedSet> {
        if let Self::SortedSet(set) = self { Some(set) } else { None }
    }
}
