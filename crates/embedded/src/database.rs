//! One numbered database: keys, their values and their times to live, and the commands on them.
//!
//! While connections track keys, it also notes which keys it changes, for `pushes.rs`.

use super::command::{Call, excerpt, integer};
use super::hash::Hash;
use super::reply::{CommandError, CommandResult, OwnedReply, count, refuse};
use super::zset::SortedSet;
use redlatch_protocol::glob;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

/// Expired keys are swept only in databases with at least this many keys.
pub(super) const SWEEP_MIN: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) entries: BTreeMap<Vec<u8>, StoredKey>,
    /// The time of the command that runs, as of [`Keyspace::database`].
    ///
    /// [`Keyspace::database`]: super::keyspace::Keyspace::database
    pub(super) now_ms: i64,
    sweep_at: usize,
    /// Note the keys that change.
    pub(super) is_watched: bool,
    /// The keys that were changed, deleted or expired, in this order, and not reported yet.
    pub(super) changed: Vec<Vec<u8>>,
}

impl Database {
    /// The entry of a key. Removes it if it has expired. If the caller changes the entry, it calls
    /// [`touch`](Self::touch) too.
    pub(super) fn find(&mut self, key: &[u8]) -> Option<&mut StoredKey> {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| !entry.lives_at(self.now_ms))
        {
            self.entries.remove(key);
            self.touch(key);
        }
        self.entries.get_mut(key)
    }

    /// The value of a key, which must be a string.
    pub(super) fn string(&mut self, key: &[u8]) -> Result<Option<&[u8]>, CommandError> {
        let value = self.find(key).map(|entry| entry.value.as_string());
        value
            .map(|value| value.ok_or_else(CommandError::wrong_type))
            .transpose()
    }

    /// The value of a key, which must be a sorted set.
    pub(super) fn sorted_set(
        &mut self,
        key: &[u8],
    ) -> Result<Option<&mut SortedSet>, CommandError> {
        match self.find(key).map(|entry| &mut entry.value) {
            None => Ok(None),
            Some(StoredValue::SortedSet(set)) => Ok(Some(set)),
            Some(_) => Err(CommandError::wrong_type()),
        }
    }

    /// Sets a key and replaces its old value.
    ///
    /// [`find`](Self::find) removes only the expired keys that are looked up. So whenever the
    /// number of keys has doubled, all expired keys are removed: constant time per key.
    pub(super) fn insert(&mut self, key: &[u8], value: StoredValue, expires_at_ms: Option<i64>) {
        if self.entries.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.sweep();
            self.sweep_at = self.entries.len().saturating_mul(2);
        }
        self.entries.insert(
            key.to_vec(),
            StoredKey {
                value,
                expires_at_ms,
            },
        );
        self.touch(key);
    }

    /// Removes a key. Returns whether it existed.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let is_there = self.find(key).is_some() && self.entries.remove(key).is_some();
        if is_there {
            self.touch(key);
        }
        is_there
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.sweep_at = 0;
    }

    /// The number of keys, and how many of them expire. Removes expired keys first.
    pub(super) fn census(&mut self) -> (usize, usize) {
        self.sweep();
        let expiring = self
            .entries
            .values()
            .filter(|entry| entry.expires_at_ms.is_some())
            .count();
        (self.entries.len(), expiring)
    }

    fn sweep(&mut self) {
        let Self {
            entries,
            now_ms,
            is_watched,
            changed,
            ..
        } = self;
        entries.retain(|key, entry| {
            let lives = entry.lives_at(*now_ms);
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
}

/// A value, and the last millisecond in which it exists, if it expires.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredKey {
    pub(super) value: StoredValue,
    pub(super) expires_at_ms: Option<i64>,
}

impl StoredKey {
    /// As in Redis (`keyIsExpired`): expired when the clock is past this millisecond.
    pub(super) fn lives_at(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|when| now_ms <= when)
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StoredValue {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    /// It has a field: a hash without fields does not exist.
    Hash(Hash),
    /// It has a member: a sorted set without members does not exist.
    SortedSet(SortedSet),
}

impl StoredValue {
    pub(super) fn as_string(&self) -> Option<&[u8]> {
        if let Self::String(bytes) = self {
            Some(bytes)
        } else {
            None
        }
    }

    pub(super) fn as_set(&self) -> Option<&SortedSet> {
        if let Self::SortedSet(set) = self {
            Some(set)
        } else {
            None
        }
    }
}

// The commands on keys and strings.

/// `SET key value [NX | XX] [GET] [KEEPTTL | EX seconds | PX milliseconds]`
pub(super) fn set(call: &mut Call<'_>) -> CommandResult {
    let options = SetOptions::parse(&call.args[3..])?;
    let expires_at_ms = options.expires_at_ms(call.now_ms())?;
    let (database, args) = call.parts();
    let before = match options.get {
        true => Some(bulk_or_null(database.string(args[1])?)),
        false => None,
    };
    let found = database.find(args[1]);
    if options
        .if_present
        .is_some_and(|wanted| wanted != found.is_some())
    {
        return Ok(before.unwrap_or(OwnedReply::Null));
    }
    let kept = found
        .filter(|_| options.keep_ttl)
        .and_then(|entry| entry.expires_at_ms);
    database.insert(
        args[1],
        StoredValue::String(args[2].to_vec()),
        expires_at_ms.or(kept),
    );
    Ok(before.unwrap_or(OwnedReply::OK))
}

#[derive(Default)]
struct SetOptions<'a> {
    /// `XX`: only if the key is there. `NX`, which is `false`: only if it is not.
    if_present: Option<bool>,
    get: bool,
    keep_ttl: bool,
    /// `EX`, `PX`, `EXAT` or `PXAT`, and the time that follows.
    ttl: Option<(Vec<u8>, &'a [u8])>,
}

impl<'a> SetOptions<'a> {
    fn parse(words: &[&'a [u8]]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let word = word.to_ascii_uppercase();
            match word.as_slice() {
                // `NX NX` is allowed; `NX XX` is not.
                b"NX" if options.if_present != Some(true) => options.if_present = Some(false),
                b"XX" if options.if_present != Some(false) => options.if_present = Some(true),
                b"GET" => options.get = true,
                b"KEEPTTL" if options.ttl.is_none() => options.keep_ttl = true,
                b"EX" | b"PX" | b"EXAT" | b"PXAT" if !options.keep_ttl => {
                    // In `PX 5 PX 6` the last counts; two different units are refused.
                    if options.ttl.is_some_and(|(before, _)| before != word) {
                        return Err(CommandError::syntax());
                    }
                    options.ttl = Some((word, words.next().ok_or_else(CommandError::syntax)?));
                }
                _ => return Err(CommandError::syntax()),
            }
        }
        Ok(options)
    }

    fn expires_at_ms(&self, now_ms: i64) -> Result<Option<i64>, CommandError> {
        let Some((unit, text)) = &self.ttl else {
            return Ok(None);
        };
        let scale = if unit.starts_with(b"EX") { 1000 } else { 1 };
        let amount = Some(integer(text)?).filter(|amount| *amount > 0);
        let millis = amount.and_then(|amount| amount.checked_mul(scale));
        if millis.is_some() && unit.ends_with(b"AT") {
            return refuse("ERR embedded nodes do not support EXAT and PXAT");
        }
        let ends = millis.and_then(|millis| millis.checked_add(now_ms));
        ends.map(Some)
            .ok_or_else(|| CommandError::invalid_expire("set"))
    }
}

pub(super) fn bulk_or_null(value: Option<&[u8]>) -> OwnedReply {
    value.map_or(OwnedReply::Null, OwnedReply::bulk)
}

/// `TYPE key`
pub(super) fn kind(call: &mut Call<'_>) -> CommandResult {
    let (database, args) = call.parts();
    Ok(OwnedReply::simple(
        match database.find(args[1]).map(|entry| &entry.value) {
            None => "none",
            Some(StoredValue::String(_)) => "string",
            Some(StoredValue::List(_)) => "list",
            Some(StoredValue::Hash(_)) => "hash",
            Some(StoredValue::SortedSet(_)) => "zset",
        },
    ))
}

pub(super) fn del(call: &mut Call<'_>) -> CommandResult {
    let (database, args) = call.parts();
    Ok(count(
        args[1..].iter().filter(|key| database.remove(key)).count(),
    ))
}

/// `EXISTS key [key ...]`: a repeated key counts again.
pub(super) fn exists(call: &mut Call<'_>) -> CommandResult {
    let (database, args) = call.parts();
    Ok(count(
        args[1..]
            .iter()
            .filter(|key| database.find(key).is_some())
            .count(),
    ))
}

/// `LPUSH key value [value ...]`, the only command that makes a list.
pub(super) fn lpush(call: &mut Call<'_>) -> CommandResult {
    let (database, args) = call.parts();
    let key = args[1];
    let values = &args[2..];
    let pushed = values.iter().rev().map(|value| value.to_vec());
    match database.find(key).map(|entry| &mut entry.value) {
        Some(StoredValue::List(list)) => {
            list.splice(0..0, pushed);
            let len = list.len();
            database.touch(key);
            Ok(count(len))
        }
        Some(_) => Err(CommandError::wrong_type()),
        None => {
            database.insert(key, StoredValue::List(pushed.collect()), None);
            Ok(count(values.len()))
        }
    }
}

/// `FLUSHDB [SYNC | ASYNC]`, or `FLUSHALL` of all databases.
pub(super) fn flush(call: &mut Call<'_>, database: Option<usize>) -> CommandResult {
    if !is_flush_mode(&call.args[1..]) {
        return Err(CommandError::syntax());
    }
    call.keyspace.flush(database);
    Ok(OwnedReply::OK)
}

/// Are these words nothing, `SYNC` or `ASYNC`?
pub(super) fn is_flush_mode(words: &[&[u8]]) -> bool {
    match words {
        [] => true,
        [word] => word.eq_ignore_ascii_case(b"SYNC") || word.eq_ignore_ascii_case(b"ASYNC"),
        _ => false,
    }
}

// The command `SCAN`: lists keys that match a pattern.
//
// Redis visits the keys in the order of its hash table. So does the model, by a hash of its own: a
// cursor is the hash of the next key, and keys that come or go meanwhile do not move the others.

/// `SCAN cursor [MATCH pattern] [COUNT count]`
pub(super) fn scan(call: &mut Call<'_>) -> CommandResult {
    let (database, args) = call.parts();
    let text = std::str::from_utf8(args[1]).unwrap_or_default();
    let Ok(cursor) = text.parse() else {
        return refuse("ERR invalid cursor");
    };
    let mut pattern: &[u8] = b"*";
    let mut count = 10;
    for option in args[2..].chunks(2) {
        match *option {
            [name, wanted] if name.eq_ignore_ascii_case(b"MATCH") => pattern = wanted,
            [name, wanted] if name.eq_ignore_ascii_case(b"COUNT") => {
                count = usize::try_from(integer(wanted)?).unwrap_or(0);
                if count == 0 {
                    return Err(CommandError::syntax());
                }
            }
            [name, _] if name.eq_ignore_ascii_case(b"TYPE") => {
                return refuse("ERR embedded nodes know only MATCH and COUNT of SCAN");
            }
            _ => return Err(CommandError::syntax()),
        }
    }
    let (mut keys, next) = database.page(cursor, count);
    keys.retain(|key| glob::is_listed(pattern, key) && database.find(key).is_some());
    let keys = keys.into_iter().map(OwnedReply::Bulk).collect();
    Ok(OwnedReply::Array(vec![
        OwnedReply::bulk(next.to_string()),
        OwnedReply::Array(keys),
    ]))
}

impl Database {
    /// About `count` keys, and the next cursor. Keys with the same hash stay together.
    fn page(&self, cursor: u64, count: usize) -> (Vec<Vec<u8>>, u64) {
        let mut keys = Vec::new();
        for key in self.entries.keys() {
            let hash = hash(key);
            if hash >= cursor {
                keys.push((hash, key));
            }
        }
        keys.sort_unstable();
        let last = keys.get(count - 1).map_or(u64::MAX, |(hash, _)| *hash);
        let end = keys.partition_point(|(hash, _)| *hash <= last);
        let next = keys.get(end).map_or(0, |(hash, _)| *hash);
        let page = keys[..end].iter().map(|(_, key)| key.to_vec());
        (page.collect(), next)
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

// The commands that read and change times to live.

/// `TTL key`: rounded to the nearest second.
pub(super) fn ttl(call: &mut Call<'_>) -> CommandResult {
    let ttl = match remaining_ms(call) {
        none if none < 0 => none,
        millis => millis.saturating_add(500) / 1000,
    };
    Ok(OwnedReply::Integer(ttl))
}

/// `PTTL key`: the remaining milliseconds; -1 if the key does not expire, -2 if there is no key.
pub(super) fn remaining_ms(call: &mut Call<'_>) -> i64 {
    let (database, args) = call.parts();
    let expires_at_ms = database.find(args[1]).map(|entry| entry.expires_at_ms);
    expires_at_ms.map_or(-2, |when| when.map_or(-1, |when| when - database.now_ms))
}

/// `EXPIRE key seconds [NX | XX | GT | LT]`, the same in milliseconds, and `PEXPIREAT`, on the
/// node's wall clock. A time that has passed deletes the key.
pub(super) fn expire(call: &mut Call<'_>, command: &str) -> CommandResult {
    let [if_none, if_any, if_greater, if_less] = conditions(&call.args[3..])?;
    let amount = integer(call.args[2])?;
    let remaining = match command {
        "expire" => amount.checked_mul(1000),
        "pexpire" => Some(amount),
        _ => {
            let wall_ms = call.keyspace.options.wall_micros(call.now) / 1_000;
            Some(amount.saturating_sub(i64::try_from(wall_ms).unwrap_or(i64::MAX)))
        }
    };
    let Some(when) = remaining.and_then(|remaining| remaining.checked_add(call.now_ms())) else {
        return Err(CommandError::invalid_expire(command));
    };
    let (database, args) = call.parts();
    let Some(entry) = database.find(args[1]) else {
        return Ok(count(0));
    };
    let current = entry.expires_at_ms;
    // A key that does not expire counts as one with an infinite time to live.
    let is_refused = if_none && current.is_some()
        || if_any && current.is_none()
        || if_greater && current.is_none_or(|current| when <= current)
        || if_less && current.is_some_and(|current| when >= current);
    if is_refused {
        return Ok(count(0));
    }
    entry.expires_at_ms = Some(when);
    if when <= database.now_ms {
        database.remove(args[1]);
    } else {
        database.touch(args[1]);
    }
    Ok(count(1))
}

/// Which of `NX`, `XX`, `GT` and `LT` are among the words.
fn conditions(words: &[&[u8]]) -> Result<[bool; 4], CommandError> {
    let mut wanted = [false; 4];
    for word in words {
        let place = match word.to_ascii_uppercase().as_slice() {
            b"NX" => 0,
            b"XX" => 1,
            b"GT" => 2,
            b"LT" => 3,
            _ => {
                let word = excerpt(word, usize::MAX);
                return refuse([b"ERR Unsupported option ", word].concat());
            }
        };
        wanted[place] = true;
    }
    match wanted {
        [true, true, ..] | [true, _, true, _] | [true, .., true] => {
            refuse("ERR NX and XX, GT or LT options at the same time are not compatible")
        }
        [.., true, true] => refuse("ERR GT and LT options at the same time are not compatible"),
        _ => Ok(wanted),
    }
}
