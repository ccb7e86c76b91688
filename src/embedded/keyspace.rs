//! The pure model of one node: its keys, its clock's milliseconds, its scripts.
//!
//! No socket, no clock, no entropy: [`Keyspace::execute`] takes the time and a command and returns
//! the reply. The embedded server puts it on a socket, a simulator calls it directly, and a
//! conformance test holds it against redis-server 7.0.15, reply by reply.
//!
//! It knows the commands that this library and the tests around it use, as strings and (to have a
//! value of another type in a lock's place) lists that can only be pushed to. Expiry is exact:
//! Redis counts whole milliseconds, and so does the model, from the [`Time`] it is given. A key
//! set at millisecond `t` with `PX p` is there up to and including `t + p` and gone after it.
//!
//! Where it differs from Redis on purpose: it has no calendar (`EXAT` and `PXAT` are refused with
//! an error that says so), it runs no Lua but this library's own scripts, `DBSIZE` never counts a
//! key that has expired, and `CLIENT LIST` shows the asking connection only.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::command;
use super::options::Options;
use super::reply::{Failure, OwnedReply};
use super::session::ConnectionState;
use crate::clock::Time;

/// How many numbered databases a node has, as in Redis unless configured otherwise.
pub(super) const DATABASES: usize = 16;

/// Below this many keys nobody looks for expired ones that were never asked for again.
const SWEEP_MIN: usize = 1024;

/// One node: sixteen databases, a script cache and an identity.
#[derive(Debug)]
pub struct Keyspace {
    pub(super) options: Options,
    pub(super) started: Time,
    pub(super) scripts: BTreeSet<&'static str>,
    databases: Vec<Database>,
    clients: i64,
    /// The ids of the connections there are, and of those that are to be closed.
    connected: BTreeSet<i64>,
    killed: Vec<i64>,
}

impl Keyspace {
    /// An empty node that came up at `options`' starting time.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let started = options.started;
        let databases = (0..DATABASES).map(|_| Database::default()).collect();
        Self {
            options,
            started,
            scripts: BTreeSet::new(),
            databases,
            clients: 0,
            connected: BTreeSet::new(),
            killed: Vec::new(),
        }
    }

    /// A new connection: its own id, database 0, RESP2, authenticated only if no password is asked.
    #[must_use]
    pub fn connect(&mut self) -> ConnectionState {
        self.clients += 1;
        self.connected.insert(self.clients);
        ConnectionState::new(self.clients, self.options.password.is_none())
    }

    /// A connection is gone.
    pub fn disconnect(&mut self, session: &ConnectionState) {
        self.connected.remove(&session.id);
    }

    /// The id of a connection that is to be closed, as `CLIENT KILL` asked: whatever it still
    /// delivers is not to be run.
    pub fn poll_killed(&mut self) -> Option<i64> {
        self.killed.pop()
    }

    /// Has this connection closed. Says whether it is there.
    pub(super) fn kill(&mut self, id: i64) -> bool {
        let is_there = self.connected.remove(&id);
        self.killed.extend(is_there.then_some(id));
        is_there
    }

    /// Runs one command and returns its reply.
    ///
    /// `args` is the command's name and its arguments. `now` must never go back from one call to
    /// the next, as far as keys with a time to live are concerned: a key that was gone stays gone
    /// only if something looked at it meanwhile, exactly as when a Redis host's clock is set back.
    pub fn execute(
        &mut self,
        now: Time,
        session: &mut ConnectionState,
        args: &[&[u8]],
    ) -> OwnedReply {
        command::run(self, now, session, args).unwrap_or_else(OwnedReply::from)
    }

    /// Forgets every cached script, as `SCRIPT FLUSH` does.
    pub fn flush_scripts(&mut self) {
        self.scripts.clear();
    }

    /// The node went down and came up again at `now` with another run id: no script is cached, the
    /// uptime counts from zero, and the keys are there only if `keep_data` (as from a perfect
    /// append-only file). Its connections are gone: drop their states and [`connect`] anew.
    ///
    /// [`connect`]: Keyspace::connect
    pub fn restart(&mut self, now: Time, keep_data: bool, new_run_id: impl Into<String>) {
        self.options.run_id = new_run_id.into();
        self.options.uptime = Duration::ZERO;
        self.started = now;
        self.clients = 0;
        self.connected.clear();
        self.killed.clear();
        self.flush_scripts();
        if !keep_data {
            self.databases.iter_mut().for_each(Database::clear);
        }
    }

    /// Every key that is there at `now`, by database and then by name.
    pub fn live_keys(&self, now: Time) -> impl Iterator<Item = LiveKey<'_>> {
        let now_ms = millis(now);
        self.databases.iter().enumerate().flat_map(move |(database, keys)| {
            keys.entries.iter().filter(move |(_, entry)| entry.lives_at(now_ms)).map(
                move |(key, entry)| LiveKey {
                    database,
                    key,
                    value: entry.value.as_string(),
                    remaining: entry.expires_at_ms.map(|when| {
                        Duration::from_millis(u64::try_from(when - now_ms).unwrap_or(0))
                    }),
                },
            )
        })
    }

    /// How long the node says it has been up.
    pub(super) fn uptime(&self, now: Time) -> Duration {
        self.options.uptime.saturating_add(now.since(self.started))
    }

    pub(super) fn database(&mut self, index: usize) -> &mut Database {
        &mut self.databases[index]
    }

    pub(super) fn databases_mut(&mut self) -> impl Iterator<Item = &mut Database> {
        self.databases.iter_mut()
    }
}

/// A key that has not expired, as [`Keyspace::live_keys`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveKey<'a> {
    /// The number of the database that holds it.
    pub database: usize,
    /// Its name.
    pub key: &'a [u8],
    /// Its value, unless that is no string.
    pub value: Option<&'a [u8]>,
    /// What is left of its time to live, in whole milliseconds; `None` if it has none.
    pub remaining: Option<Duration>,
}

/// The node's own clock: whole milliseconds, as Redis counts them.
pub(super) fn millis(now: Time) -> i64 {
    i64::try_from(now.as_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

/// One numbered database.
#[derive(Debug, Default)]
pub(super) struct Database {
    entries: BTreeMap<Vec<u8>, Entry>,
    sweep_at: usize,
}

impl Database {
    /// The key's entry. One that has expired is removed by the look.
    pub(super) fn find(&mut self, now_ms: i64, key: &[u8]) -> Option<&mut Entry> {
        if self.entries.get(key).is_some_and(|entry| !entry.lives_at(now_ms)) {
            self.entries.remove(key);
        }
        self.entries.get_mut(key)
    }

    /// The key's value if it is a string, which everything but `DEL` and `EXPIRE` asks for.
    pub(super) fn string(&mut self, now_ms: i64, key: &[u8]) -> Result<Option<&[u8]>, Failure> {
        match self.find(now_ms, key) {
            None => Ok(None),
            Some(entry) => entry.value.as_string().map(Some).ok_or_else(Failure::wrong_type),
        }
    }

    /// Sets the key, whatever was there.
    ///
    /// Keys that nobody asks for again would pile up, since only a look removes an expired one. So
    /// whenever the database has doubled, the expired ones are swept out: constant time per key.
    pub(super) fn insert(&mut self, now_ms: i64, key: &[u8], entry: Entry) {
        if self.entries.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.sweep(now_ms);
            self.sweep_at = self.entries.len().saturating_mul(2);
        }
        self.entries.insert(key.to_vec(), entry);
    }

    /// Removes the key and says whether it was there.
    pub(super) fn remove(&mut self, now_ms: i64, key: &[u8]) -> bool {
        self.find(now_ms, key).is_some() && self.entries.remove(key).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.sweep_at = 0;
    }

    /// Drops what has expired, and says how many keys there are and how many of them expire.
    pub(super) fn census(&mut self, now_ms: i64) -> (usize, usize) {
        self.sweep(now_ms);
        let expiring = self.entries.values().filter(|entry| entry.expires_at_ms.is_some()).count();
        (self.entries.len(), expiring)
    }

    fn sweep(&mut self, now_ms: i64) {
        self.entries.retain(|_, entry| entry.lives_at(now_ms));
    }
}

/// A value and the last millisecond in which it is there, if it has one.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) expires_at_ms: Option<i64>,
}

impl Entry {
    /// Redis' own rule (`keyIsExpired`): gone once the clock shows more than the time it was given.
    fn lives_at(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|when| now_ms <= when)
    }
}

/// What a key holds.
#[derive(Debug)]
pub(super) enum Value {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
}

impl Value {
    pub(super) fn as_string(&self) -> Option<&[u8]> {
        match self {
            Self::String(bytes) => Some(bytes),
            Self::List(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_key_lives_through_its_last_millisecond_and_no_longer() {
        let mut node = Keyspace::new(Options::new());
        let mut session = node.connect();
        let mut run = |now, args: &[&[u8]]| node.execute(now, &mut session, args);
        let set: &[&[u8]] = &[b"SET", b"k", b"v", b"PX", b"20"];
        assert_eq!(run(Time::from_nanos(100_999_999), set), OwnedReply::OK);
        assert_eq!(run(at(120), &[b"PTTL", b"k"]), OwnedReply::Integer(0));
        assert_eq!(run(Time::from_nanos(120_999_999), &[b"GET", b"k"]), OwnedReply::bulk("v"));
        assert_eq!(run(at(121), &[b"GET", b"k"]), OwnedReply::Null);
    }

    #[test]
    fn live_keys_leaves_out_what_has_expired_without_being_asked_for() {
        let mut node = Keyspace::new(Options::new());
        let mut session = node.connect();
        node.execute(at(0), &mut session, &[b"SET", b"short", b"1", b"PX", b"10"]);
        node.execute(at(0), &mut session, &[b"SET", b"long", b"2", b"PX", b"30"]);
        let seen: Vec<_> = node.live_keys(at(20)).collect();
        let remaining = Some(Duration::from_millis(10));
        assert_eq!(seen, [LiveKey { database: 0, key: b"long", value: Some(b"2"), remaining }]);
    }

    #[test]
    fn keys_that_nobody_asks_for_again_do_not_pile_up() {
        let mut node = Keyspace::new(Options::new());
        let mut session = node.connect();
        for n in 0..20_000_u64 {
            let key = n.to_string();
            node.execute(at(n), &mut session, &[b"SET", key.as_bytes(), b"v", b"PX", b"10"]);
        }
        assert!(node.database(0).entries.len() <= 2 * SWEEP_MIN);
    }

    #[test]
    fn a_restart_takes_scripts_and_uptime_and_keys_only_if_they_were_not_kept() {
        let mut node = Keyspace::new(Options::new().uptime(Duration::from_secs(100)));
        let mut session = node.connect();
        node.execute(at(0), &mut session, &[b"SET", b"k", b"v"]);
        node.scripts.insert("a script");
        node.restart(at(5_000), true, "b");
        assert_eq!(node.uptime(at(7_000)), Duration::from_secs(2));
        assert!(node.scripts.is_empty());
        assert_eq!(node.live_keys(at(7_000)).count(), 1);
        node.restart(at(8_000), false, "c");
        assert_eq!(node.live_keys(at(8_000)).count(), 0);
    }
}
