//! The pure model of one node: its keys, their times to live, and its scripts.
//!
//! It has no socket, no clock and no randomness: [`Keyspace::execute`] takes the time and a command
//! and returns the reply. The embedded server runs it behind a socket, the simulator calls it
//! directly, and a conformance test compares it with redis-server 7.0.15, reply by reply.
//!
//! It knows the commands that this library and its tests use, and runs the same Lua scripts as a
//! server. Values are strings, lists, hashes or sorted sets. Lists can only be pushed to, and exist
//! so that a key of a lock can have a value of another type.
//! Expiry is exact: like Redis, the model counts whole milliseconds of the given [`Time`]. A key
//! that is set at millisecond `t` with `PX p` exists up to and including `t + p`.
//!
//! Intended differences from Redis: its wall clock is only for `TIME` and `PEXPIREAT` (`EXAT` and
//! `PXAT` are errors), scripts get fewer libraries (`lua.rs`), `DBSIZE` does not count expired
//! keys, and `CLIENT LIST` lists only the connection that sends it. An expired tracked key is
//! reported when a command looks at it, or by [`Keyspace::expire_tracked`].

use super::command::Call;
use super::database::{Database, StoredKey, StoredValue};
use super::nodes::NodeOptions;
use super::pushes::Pushes;
use super::reply::{CommandResult, OwnedReply};
use super::session::ConnectionState;
use super::zset::SortedSet;
use redlatch_protocol::time::Time;
use redlatch_registers::{Member, RegisterKeys};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The number of databases, as in Redis by default.
pub(super) const DATABASES: usize = 16;

/// One node: sixteen databases, a script cache and an identity.
#[derive(Debug)]
pub struct Keyspace {
    pub(super) options: NodeOptions,
    /// The sources of the cached scripts, by their SHA-1 in lower case.
    pub(super) scripts: BTreeMap<String, Arc<[u8]>>,
    databases: Vec<Database>,
    clients: i64,
    /// The ids of all connections, and of those that are to be closed.
    connected: BTreeSet<i64>,
    killed: Vec<i64>,
    pub(super) pushes: Pushes,
    pub replication: Replication,
}

/// What a node says about replication. It does not replicate: a simulation that has replicas says
/// this about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replication {
    pub is_replica: bool,
    /// The id of the node's reign; without one, its run id, which is new with each start as well.
    pub id: Option<String>,
    /// The id of the reign before, of which it has all up to its own.
    pub former: Option<String>,
    /// How far the node has written, and how far each of its replicas has.
    pub offset: u64,
    pub replicas: Vec<u64>,
}

/// All keys of a node at a time, as a replica gets them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot(Vec<BTreeMap<Vec<u8>, StoredKey>>);

/// What differs between two snapshots: for each key that does, what the later one has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes(Vec<(usize, Vec<u8>, Option<StoredKey>)>);

impl Snapshot {
    /// What has changed since an earlier one.
    pub fn changes_since(&self, before: &Self) -> Changes {
        let mut changes = Vec::new();
        let empty = BTreeMap::new();
        for index in 0..DATABASES {
            let keys = self.0.get(index).unwrap_or(&empty);
            let known = before.0.get(index).unwrap_or(&empty);
            for (key, entry) in keys
                .iter()
                .filter(|(key, entry)| known.get(*key) != Some(*entry))
            {
                changes.push((index, key.clone(), Some(entry.clone())));
            }
            for key in known.keys().filter(|key| !keys.contains_key(*key)) {
                changes.push((index, key.clone(), None));
            }
        }
        Changes(changes)
    }

    /// Has these changes too: absolute ends of keys stay what they are, as they do from Redis 7 on.
    pub fn apply(&mut self, changes: &Changes) {
        self.0.resize(self.0.len().max(DATABASES), BTreeMap::new());
        for (index, key, entry) in &changes.0 {
            match entry {
                Some(entry) => self.0[*index].insert(key.clone(), entry.clone()),
                None => self.0[*index].remove(key),
            };
        }
    }
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Keyspace {
    /// A node without keys but for its mark, if it is a member of a group.
    pub fn new(options: NodeOptions) -> Self {
        let mut databases: Vec<_> = (0..DATABASES).map(|_| Database::default()).collect();
        if let Some(member) = &options.member {
            // From its start to its end: it loses its memory with that.
            let mark = Member {
                run_id: options.run_id.clone(),
                ..member.clone()
            }
            .to_bytes();
            databases[0].insert(RegisterKeys::MARK, StoredValue::String(mark.to_vec()), None);
        }
        Self {
            options,
            scripts: BTreeMap::new(),
            databases,
            clients: 0,
            connected: BTreeSet::new(),
            killed: Vec::new(),
            pushes: Pushes::default(),
            replication: Replication::default(),
        }
    }

    /// A new connection: a new id, database 0, RESP2, authenticated if there is no password.
    pub fn connect(&mut self) -> ConnectionState {
        self.clients += 1;
        self.connected.insert(self.clients);
        ConnectionState::new(self.clients, self.options.password.is_none())
    }

    /// A connection was closed.
    pub fn disconnect(&mut self, session: &ConnectionState) {
        self.connected.remove(&session.id);
        self.pushes.forget(session.id);
    }

    /// The next message to a connection that tracks keys or has subscribed to a channel, and the id
    /// of the connection. The caller drains them after each command, and sends the messages to the
    /// connection that ran the command after its reply.
    pub fn poll_push(&mut self) -> Option<(i64, OwnedReply)> {
        self.pushes.queue.pop_front()
    }

    /// Does any connection track keys? Then [`expire_tracked`](Self::expire_tracked) has work.
    pub fn is_tracking(&self) -> bool {
        self.pushes.readers.names().next().is_some()
    }

    /// Removes the tracked keys that have expired, and so queues the messages about them. Redis
    /// does this ten times per second; the model only when the caller does.
    pub fn expire_tracked(&mut self, now: Time) {
        let now_ms = millis(now);
        for key in self.pushes.readers.names() {
            for database in &mut self.databases {
                database.now_ms = now_ms;
                database.find(key);
            }
        }
        self.settle();
    }

    /// Queues a message for each tracked key that has changed.
    pub(super) fn settle(&mut self) {
        for index in 0..DATABASES {
            for key in std::mem::take(&mut self.databases[index].changed) {
                self.pushes.invalidate(&key);
            }
            self.databases[index].is_watched = self.is_tracking();
        }
    }

    /// Remembers that the connection has read these keys, if it wants to be told of changes.
    pub(super) fn remember(
        &mut self,
        session: &ConnectionState,
        keys: impl IntoIterator<Item: AsRef<[u8]>>,
    ) {
        if session.remembers_reads() {
            self.settle();
            for key in keys {
                self.pushes.readers.add(key.as_ref(), session.id);
            }
            self.databases
                .iter_mut()
                .for_each(|database| database.is_watched = true);
        }
    }

    /// The id of a connection that the caller must close because of `CLIENT KILL`. Commands that it
    /// still delivers must not be run.
    pub fn poll_killed(&mut self) -> Option<i64> {
        self.killed.pop()
    }

    /// Marks a connection to be closed. Returns whether it exists.
    pub(super) fn kill(&mut self, id: i64) -> bool {
        let is_there = self.connected.remove(&id);
        self.pushes.channels.forget(id);
        self.killed.extend(is_there.then_some(id));
        is_there
    }

    /// Removes all scripts from the cache, as `SCRIPT FLUSH` does.
    pub fn flush_scripts(&mut self) {
        self.scripts.clear();
    }

    /// Restarts the node at `now` with another run id: no script is cached, the uptime counts from
    /// zero, and the keys are kept only with `keep_data` (as with an append-only file that lost
    /// nothing). All connections are closed: drop their states and [`connect`] again.
    ///
    /// [`connect`]: Keyspace::connect
    pub fn restart(&mut self, now: Time, keep_data: bool, new_run_id: impl Into<String>) {
        self.options.run_id = new_run_id.into();
        self.options.uptime = Duration::ZERO;
        self.options.started = now;
        self.clients = 0;
        self.connected.clear();
        self.killed.clear();
        self.pushes = Pushes::default();
        self.replication = Replication::default();
        self.settle();
        self.flush_scripts();
        if !keep_data {
            self.databases.iter_mut().for_each(Database::clear);
        }
    }

    /// The keys that exist at `now`.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let now_ms = millis(now);
        let databases = self.databases.iter().map(|database| {
            let entries = database.entries.iter();
            let live = entries.filter(|(_, entry)| entry.lives_at(now_ms));
            live.map(|(key, entry)| (key.clone(), entry.clone()))
                .collect()
        });
        Snapshot(databases.collect())
    }

    /// Has these keys from now on, and no others.
    pub fn load(&mut self, snapshot: &Snapshot) {
        for (index, database) in self.databases.iter_mut().enumerate() {
            database.entries = snapshot.0.get(index).cloned().unwrap_or_default();
        }
        self.pushes.flush();
    }

    /// All keys that exist at `now`, ordered by database and name.
    pub fn live_keys(&self, now: Time) -> impl Iterator<Item = LiveKey<'_>> {
        let now_ms = millis(now);
        let databases = self.databases.iter().enumerate();
        databases.flat_map(move |(database, keys)| {
            let entries = keys.entries.iter();
            entries.filter_map(move |entry| LiveKey::new(database, entry, now_ms))
        })
    }

    /// One of [`live_keys`](Self::live_keys), if it exists at `now`.
    pub fn live_key(&self, now: Time, database: usize, key: &[u8]) -> Option<LiveKey<'_>> {
        let entry = self.databases.get(database)?.entries.get_key_value(key)?;
        LiveKey::new(database, entry, millis(now))
    }

    /// The members of a sorted set that exists at `now`, with their scores, which are whole
    /// numbers in those of this library.
    pub fn live_members(
        &self,
        now: Time,
        database: usize,
        key: &[u8],
    ) -> impl Iterator<Item = (&[u8], u64)> {
        let entry = self
            .databases
            .get(database)
            .and_then(|keys| keys.entries.get(key));
        let set = entry
            .filter(|entry| entry.lives_at(millis(now)))
            .and_then(|it| it.value.as_set());
        set.into_iter()
            .flat_map(SortedSet::scored)
            .map(|(member, score)| (member, score as u64))
    }

    /// The uptime that the node reports.
    pub(super) fn uptime(&self, now: Time) -> Duration {
        self.options
            .uptime
            .saturating_add(now.since(self.options.started))
    }

    /// One of the databases, for a command at this time.
    pub(super) fn database(&mut self, index: usize, now_ms: i64) -> &mut Database {
        self.databases[index].now_ms = now_ms;
        &mut self.databases[index]
    }

    /// Removes all keys of one database, or of all.
    pub(super) fn flush(&mut self, index: Option<usize>) {
        let flushed = index.map_or(0..DATABASES, |index| index..index + 1);
        self.databases[flushed].iter_mut().for_each(Database::clear);
        self.pushes.flush();
    }
}

/// A key that has not expired: see [`Keyspace::live_keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveKey<'a> {
    pub database: usize,
    pub key: &'a [u8],
    /// Its value, if that is a string.
    pub value: Option<&'a [u8]>,
    /// Its remaining time to live, in whole milliseconds; `None` if it does not expire.
    pub remaining: Option<Duration>,
}

impl<'a> LiveKey<'a> {
    fn new(
        database: usize,
        (key, entry): (&'a Vec<u8>, &'a StoredKey),
        now_ms: i64,
    ) -> Option<Self> {
        if !entry.lives_at(now_ms) {
            return None;
        }
        let remaining = entry.expires_at_ms.map(|when| {
            let millis = u64::try_from(when - now_ms).unwrap_or(0);
            Duration::from_millis(millis)
        });
        Some(Self {
            database,
            key,
            value: entry.value.as_string(),
            remaining,
        })
    }
}

/// The node's clock in whole milliseconds, as in Redis.
pub(super) fn millis(now: Time) -> i64 {
    i64::try_from(now.as_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

// What a node says about itself: `INFO`, `CONFIG GET` and `TIME`, with the names of Redis.

/// The sections in the order of the reply. They have only the fields that a lock client uses.
const SECTIONS: [(&str, Section); 6] = [
    ("server", server),
    ("memory", |_| {
        "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n".to_owned()
    }),
    ("persistence", |_| {
        "loading:0\r\naof_enabled:0\r\n".to_owned()
    }),
    ("replication", replication),
    ("cluster", |_| "cluster_enabled:0\r\n".to_owned()),
    ("keyspace", keyspace),
];

type Section = fn(&mut Call<'_>) -> String;

/// `INFO [section ...]`
pub(super) fn info(call: &mut Call<'_>) -> CommandResult {
    let asked = &call.args[1..];
    let mut text = String::new();
    for (name, section) in SECTIONS {
        if !asked.is_empty() && !asked.iter().any(|word| wants(word, name)) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let (first, rest) = name.split_at(1);
        text.push_str(&format!(
            "# {}{rest}\r\n{}",
            first.to_ascii_uppercase(),
            section(call)
        ));
    }
    Ok(OwnedReply::Text(text))
}

/// Does this word ask for the section with this name?
fn wants(word: &[u8], name: &str) -> bool {
    let words = [name, "default", "all", "everything"];
    words
        .iter()
        .any(|it| word.eq_ignore_ascii_case(it.as_bytes()))
}

fn server(call: &mut Call<'_>) -> String {
    let NodeOptions {
        redis_version,
        run_id,
        port,
        ..
    } = &call.keyspace.options;
    let uptime = call.keyspace.uptime(call.now).as_secs();
    let days = uptime / 86_400;
    format!(
        "redis_version:{redis_version}\r\nredis_mode:standalone\r\nrun_id:{run_id}\r\n\
         tcp_port:{port}\r\nuptime_in_seconds:{uptime}\r\nuptime_in_days:{days}\r\n\
         executable:redlatch (a node inside the process)\r\n"
    )
}

/// In place of the id of a reign.
const NO_REIGN: &str = "0000000000000000000000000000000000000000";

fn replication(call: &mut Call<'_>) -> String {
    let Keyspace {
        options,
        replication: it,
        ..
    } = &*call.keyspace;
    let role = if it.is_replica { "slave" } else { "master" };
    let mut replicas = String::new();
    for (index, offset) in it.replicas.iter().enumerate() {
        let port = index + 1;
        replicas +=
            &format!("slave{index}:ip=::1,port={port},state=online,offset={offset},lag=0\r\n");
    }
    let id = it.id.as_ref().unwrap_or(&options.run_id);
    let former = it.former.as_deref().unwrap_or(NO_REIGN);
    format!(
        "role:{role}\r\nconnected_slaves:{}\r\n{replicas}\
         master_replid:{id}\r\nmaster_replid2:{former}\r\nmaster_repl_offset:{}\r\n",
        it.replicas.len(),
        it.offset
    )
}

fn keyspace(call: &mut Call<'_>) -> String {
    let now_ms = call.now_ms();
    let mut text = String::new();
    for index in 0..DATABASES {
        let (keys, expiring) = call.keyspace.database(index, now_ms).census();
        if keys > 0 {
            text += &format!("db{index}:keys={keys},expires={expiring},avg_ttl=0\r\n");
        }
    }
    text
}

/// The settings that a lock client asks for. A node keeps its data in memory only, and has no limit
/// of it.
const SETTINGS: [(&str, &str); 5] = [
    ("appendfsync", "everysec"),
    ("appendonly", "no"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("save", ""),
];

/// `CONFIG GET setting ...`. Of patterns, it knows those with a `*` at the end. Like Redis, it
/// spells a name as the caller did.
pub(super) fn config_get(call: &mut Call<'_>) -> CommandResult {
    let mut found = Vec::new();
    for asked in &call.args[2..] {
        let (stem, shows_name) = match asked.strip_suffix(b"*") {
            Some(stem) => (stem, true),
            None => (*asked, false),
        };
        for (name, value) in SETTINGS {
            let length = if shows_name { stem.len() } else { name.len() };
            let start = name.as_bytes().get(..length);
            if start.is_some_and(|start| start.eq_ignore_ascii_case(stem)) {
                let shown = if shows_name { name.as_bytes() } else { asked };
                found.push((OwnedReply::bulk(shown), OwnedReply::bulk(value)));
            }
        }
    }
    Ok(OwnedReply::Map(found))
}

/// `TIME`: seconds since 1970, and microseconds.
pub(super) fn time(call: &mut Call<'_>) -> CommandResult {
    let micros = call.keyspace.options.wall_micros(call.now);
    let seconds = micros / 1_000_000;
    let rest = micros % 1_000_000;
    Ok(OwnedReply::Array(vec![
        OwnedReply::bulk(seconds.to_string()),
        OwnedReply::bulk(rest.to_string()),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::SWEEP_MIN;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_key_exists_until_the_end_of_its_last_millisecond() {
        let mut node = Keyspace::new(NodeOptions::default());
        let mut session = node.connect();
        let mut run = |now, args: &[&[u8]]| node.execute(now, &mut session, args);
        let set: &[&[u8]] = &[b"SET", b"k", b"v", b"PX", b"20"];
        assert_eq!(run(Time::from_nanos(100_999_999), set), OwnedReply::OK);
        assert_eq!(run(at(120), &[b"PTTL", b"k"]), OwnedReply::Integer(0));
        assert_eq!(
            run(Time::from_nanos(120_999_999), &[b"GET", b"k"]),
            OwnedReply::bulk("v")
        );
        assert_eq!(run(at(121), &[b"GET", b"k"]), OwnedReply::Null);
    }

    #[test]
    fn live_keys_omits_expired_keys_that_no_command_has_looked_up() {
        let mut node = Keyspace::new(NodeOptions::default());
        let mut session = node.connect();
        node.execute(at(0), &mut session, &[b"SET", b"short", b"1", b"PX", b"10"]);
        node.execute(at(0), &mut session, &[b"SET", b"long", b"2", b"PX", b"30"]);
        let seen: Vec<_> = node.live_keys(at(20)).collect();
        let remaining = Some(Duration::from_millis(10));
        assert_eq!(
            seen,
            [LiveKey {
                database: 0,
                key: b"long",
                value: Some(b"2"),
                remaining
            }]
        );
    }

    #[test]
    fn expired_keys_that_are_never_looked_up_are_removed() {
        let mut node = Keyspace::new(NodeOptions::default());
        let mut session = node.connect();
        for n in 0..20_000_u64 {
            let key = n.to_string();
            node.execute(
                at(n),
                &mut session,
                &[b"SET", key.as_bytes(), b"v", b"PX", b"10"],
            );
        }
        assert!(node.database(0, 0).entries.len() <= 2 * SWEEP_MIN);
    }

    #[test]
    fn a_restart_resets_scripts_and_uptime_and_removes_keys_unless_they_are_kept() {
        let mut node = Keyspace::new(NodeOptions {
            uptime: Duration::from_secs(100),
            ..NodeOptions::default()
        });
        let mut session = node.connect();
        node.execute(at(0), &mut session, &[b"SET", b"k", b"v"]);
        node.execute(at(0), &mut session, &[b"SCRIPT", b"LOAD", b"return 1"]);
        assert_eq!(node.scripts.len(), 1);
        node.restart(at(5_000), true, "b");
        assert_eq!(node.uptime(at(7_000)), Duration::from_secs(2));
        assert!(node.scripts.is_empty());
        assert_eq!(node.live_keys(at(7_000)).count(), 1);
        node.restart(at(8_000), false, "c");
        assert_eq!(node.live_keys(at(8_000)).count(), 0);
    }
}
