//! What an operator does: looking at the nodes, releasing locks by force, and listing the locks
//! whose names match a pattern.

use super::{LockClient, check_length};
use crate::clock;
use crate::core::{Backend, Core, KeyStep, NodeKeys, Redlock};
#[cfg(feature = "zookeeper")]
use crate::core::{Ensemble, FoundDirectory};
use crate::engine::{Command, Node, NodeSet, Request, Ttl, quorum};
use crate::error::{Error, NoQuorum, ResourceError};
use crate::inspect::{Inspection, Seen};
use crate::name::Name;
use crate::node::{NodeAnswer, NodeError, NodeReport, NodeStatus, RoundOutcome, Standards, judge};
use redlatch_protocol::inspect::ForcedRemoval;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

impl LockClient {
    /// Returns the status of each node, in the order of the configuration: whether it can be
    /// reached, what a crash of it would cost, and [warnings](NodeStatus::warnings) about what
    /// breaks a promise of the lock.
    ///
    /// ```no_run
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// for node in client.nodes() {
    ///     for warning in node.warnings() {
    ///         eprintln!("{}: {warning}", node.url);
    ///     }
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// Connects to nodes without a connection, asks them (`INFO`, `CONFIG GET`, `TIME`, `PING`, all
    /// at once), and takes no longer than [`node_timeout`](crate::Builder::node_timeout), or, in a
    /// new client, than a majority of the nodes takes to answer for the first time, and as long
    /// again for the others. What a server does not answer, or the user may not ask, is `None`;
    /// locks do not depend on it. Those that have answered are asked once more, by a script, for
    /// their mark as a [member](NodeStatus::registers) of the group that keeps registers.
    ///
    /// On ZooKeeper, each server is asked `srvr` over a connection of its own: for its version, its
    /// role and the last transaction that it knows. One that may not be asked
    /// (`4lw.commands.whitelist`) is connected, with that as its last error.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStatus> {
        match &self.core.backend {
            Backend::Redlock(redlock) => self.examine(redlock),
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(ensemble) if self.core.is_forked() => {
                ensemble.unreachable(&NodeError::OtherProcess)
            }
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(ensemble) => self.examine_servers(ensemble),
        }
    }

    fn examine(&self, redlock: &Redlock) -> Vec<NodeStatus> {
        if self.core.is_forked() {
            return redlock.net.unreachable(&NodeError::OtherProcess);
        }
        let mut statuses = self.core.examine(redlock, NodeSet::all(self.core.rules.nodes));
        #[cfg(feature = "registers")]
        if let Ok(nodes) = self.core.register_nodes() {
            nodes.note_votes(&mut statuses);
        }
        if let Some(listener) = &self.core.listener {
            listener.emit_node_changes();
        }
        judge(&mut statuses, self.standards(redlock), clock::now(), clock::wall_micros());
        statuses
    }

    #[cfg(feature = "zookeeper")]
    fn examine_servers(&self, ensemble: &Ensemble) -> Vec<NodeStatus> {
        let statuses = ensemble.statuses();
        if let Some(listener) = &self.core.listener {
            listener.emit_node_changes();
        }
        statuses
    }

    /// What the warnings about nodes depend on.
    fn standards(&self, redlock: &Redlock) -> Standards {
        let Core { rules, max_ttl, .. } = &*self.core;
        let validity = Ttl::from_duration(*max_ttl).map(|longest| rules.drift.validity(longest));
        let allowed = max_ttl.saturating_sub(validity.unwrap_or_default());
        Standards { restart_guard: redlock.restart_guard, allowed }
    }

    /// Releases a lock of any holder by force: removes the values that [`inspect`](Self::inspect)
    /// found under its key. `true` if any node still had one of them.
    ///
    /// ```no_run
    /// # let client = redlatch::LockClient::new(["redis://10.0.0.1"]).unwrap();
    /// let seen = client.inspect("orders:42")?;
    /// println!("held: {:?}", seen.state); // check this first
    /// client.force_release(&seen)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Dangerous: a holder that is alive works on, and notices nothing before its next extension or
    /// release, while another client can acquire the lock. It is for operators who *know* that the
    /// holder is gone and cannot wait for the ttl. Fencing counters stay as they are. A node that
    /// is unreachable now keeps its key, and is not sent the removal later.
    ///
    /// Only the values that were seen are removed: a lock that another client has acquired since
    /// stays, however late a node carries this out. Of a lock that is
    /// [shared](crate::LockState::Shared), these are all readers and permits, up to a hundred on
    /// each node; to remove one of several is not possible. If clients wait in the nodes' queue,
    /// the first of them acquires the lock next. A [reservation](crate::LockState::Reserved) is no
    /// lock: it stays, and the result is `false`.
    ///
    /// On ZooKeeper, these are the znodes of the holders that were seen. A holder that is alive
    /// notices within a seventh of its session timeout, as
    /// [`LossReason::Gone`](crate::LossReason::Gone).
    ///
    /// # Errors
    ///
    /// The value that was seen is no lock (not a string, without a ttl, or too long), and stays. Or
    /// fewer nodes than a majority answered: the lock may still be held.
    pub fn force_release(&self, seen: &Inspection) -> Result<bool, Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        match &self.core.backend {
            Backend::Redlock(redlock) => self.remove(redlock, seen),
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(ensemble) => {
                let Seen { key, locks, .. } = &seen.seen;
                ensemble.remove(key, locks).map_err(Error::NoQuorum)
            }
        }
    }

    fn remove(&self, redlock: &Redlock, seen: &Inspection) -> Result<bool, Error> {
        let Seen { key, locks, others, .. } = &seen.seen;
        if locks.is_empty() {
            let is_free = others.is_empty();
            let error = || Error::NotALock { urls: others.clone() };
            return if is_free { Ok(false) } else { Err(error()) };
        }
        let (key, seen) = (Arc::clone(key), Arc::clone(locks));
        let removal = Command::Custom(Arc::new(ForcedRemoval { key, seen }));
        let request = Request::to_all(&self.core.rules, clock::now(), removal);
        let RoundOutcome { said, reports, .. } = redlock.net.submit(request);
        let removed: Vec<bool> =
            said.iter().flatten().filter_map(|said| said.get().copied()).collect();
        if removed.len() < quorum(self.core.rules.nodes) {
            return Err(Error::NoQuorum(NoQuorum::new(reports)));
        }
        Ok(removed.contains(&true))
    }
}

// Listing locks.

/// What a name takes besides its bytes, about.
const BYTES_PER_NAME: usize = 96;

/// A lock that [`LockClient::locks`] has listed.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FoundLock {
    name: Arc<[u8]>,
}

impl FoundLock {
    /// The resource's name, without the [prefix](crate::Builder::key_prefix) of its key.
    #[must_use]
    pub fn resource(&self) -> Name<'_> {
        Name::new(&self.name)
    }
}

/// The resource's name, for the methods of a [`LockClient`].
impl AsRef<[u8]> for FoundLock {
    fn as_ref(&self) -> &[u8] {
        &self.name
    }
}

impl fmt::Debug for FoundLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FoundLock").field(&self.resource()).finish()
    }
}

/// The locks whose names match a pattern: the iterator that [`LockClient::locks`] returns.
#[must_use = "it asks the nodes only when it is iterated"]
pub struct Locks<'a> {
    client: &'a LockClient,
    pattern: Result<Arc<[u8]>, ResourceError>,
    /// What is before the names in the keys, behind the prefix: nothing for locks.
    infix: &'static [u8],
    /// What each node that was read to its end, or given up, has answered.
    reports: Vec<NodeReport>,
    /// How far the next node has been read.
    keys: NodeKeys,
    /// Names that are not yet returned, and all names: each is returned once.
    found: Vec<FoundLock>,
    known: HashSet<FoundLock>,
    /// On ZooKeeper, the directories that were not looked at yet. `None` before they are listed.
    #[cfg(feature = "zookeeper")]
    directories: Option<Vec<FoundDirectory>>,
    is_over: bool,
}

impl LockClient {
    /// Lists the locks whose names match `pattern`: `*` stands for any bytes, `?` for one, `[abc]`
    /// and `[a-z]` for one of these, and `\` quotes the character behind it, as in Redis's
    /// [`KEYS`](https://redis.io/docs/latest/commands/keys/).
    ///
    /// ```no_run
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// for lock in client.locks("orders:*") {
    ///     let lock = lock?;
    ///     let seen = client.inspect(&lock)?;
    ///     println!("{}: {:?}, {} wait", lock.resource(), seen.state, seen.waiters.len());
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// It is for operators and their tools, not for programs that lock.
    ///
    /// On ZooKeeper it lists the directories below the root, and those that somebody holds or waits
    /// in, in batches of 200 of which each takes a round trip. A directory of another program with
    /// something in it is listed too, and is free by its inspection. What follows is about Redis.
    ///
    /// It reads the keys of one node after another with `SCAN`, about 500 in each step. A step
    /// takes a server about a millisecond at most (1.1 ms, if all 500 are locks, with redis-server
    /// 7.0 on a busy machine), and a round trip; a million other keys took about a second. It
    /// remembers all names that it has returned.
    ///
    /// Every lock that is held by the same holder from the call to the end of the iteration is
    /// listed, once, unless a node loses its key or restarts meanwhile. One that is acquired or
    /// released meanwhile may be missing. A name is listed if any node has a key for it which looks
    /// like a lock: a string with a ttl, such as another program may have set, or what a failed
    /// attempt has left. [`inspect`](Self::inspect) tells what a majority has.
    ///
    /// # Errors
    ///
    /// The pattern is empty or too long, and the only item is [`Error::Resource`]. Or fewer
    /// nodes than a majority could be read to their end, and the last item is
    /// [`Error::NoQuorum`]: some locks may be missing. A node that does not answer in time
    /// is asked three times for the same step. One is given up if it goes round in circles, or has
    /// listed names of 256 MiB (2.5 million short ones) that no node before it had, or answers four
    /// million steps without an end. The user on the nodes needs the right to `SCAN` and `STRLEN`,
    /// and a server older than Redis 2.8 does not know it.
    pub fn locks(&self, pattern: impl AsRef<[u8]>) -> Locks<'_> {
        self.keys_like(pattern.as_ref(), b"")
    }

    /// Lists the names in whose keys `infix` is between the prefix and the name.
    pub(super) fn keys_like(&self, pattern: &[u8], infix: &'static [u8]) -> Locks<'_> {
        Locks {
            client: self,
            pattern: self.pattern_of_keys(pattern, infix),
            infix,
            reports: Vec::new(),
            keys: NodeKeys::new(Node::new(0)),
            found: Vec::new(),
            known: HashSet::new(),
            #[cfg(feature = "zookeeper")]
            directories: None,
            is_over: false,
        }
    }

    /// The pattern of the keys of the locks whose names match this pattern.
    fn pattern_of_keys(&self, pattern: &[u8], infix: &[u8]) -> Result<Arc<[u8]>, ResourceError> {
        if pattern.is_empty() {
            return Err(ResourceError::Empty);
        }
        let mut whole = Vec::new();
        for byte in &self.core.key_prefix {
            if b"*?[]^-\\".contains(byte) {
                whole.push(b'\\');
            }
            whole.push(*byte);
        }
        check_length(whole.len() + pattern.len())?;
        whole.extend_from_slice(infix);
        whole.extend_from_slice(pattern);
        Ok(whole.into())
    }
}

impl Iterator for Locks<'_> {
    type Item = Result<FoundLock, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            if let Some(lock) = self.found.pop() {
                return Some(Ok(lock));
            }
            if let Err(error) = self.read() {
                self.is_over = true;
                return Some(Err(error));
            }
        }
        None
    }
}

/// It ends after an error, and after the last name.
impl std::iter::FusedIterator for Locks<'_> {}

impl Locks<'_> {
    #[cfg(feature = "registers")]
    pub(super) fn check(&self) -> Result<(), ResourceError> {
        self.pattern.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Reads the next names from the nodes, if there are any.
    fn read(&mut self) -> Result<(), Error> {
        let client = self.client;
        let pattern = self.pattern.clone().map_err(Error::Resource)?;
        if client.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        match &client.core.backend {
            Backend::Redlock(redlock) => self.read_keys(redlock, &pattern),
            #[cfg(feature = "zookeeper")]
            Backend::ZooKeeper(ensemble) => self.read_directories(ensemble, &pattern),
        }
    }

    /// Reads the next keys from one node after another.
    fn read_keys(&mut self, redlock: &Redlock, pattern: &Arc<[u8]>) -> Result<(), Error> {
        let core = &self.client.core;
        let index = self.reports.len();
        if index == core.rules.nodes {
            self.is_over = true;
            let is_read = |report: &&NodeReport| report.answer == NodeAnswer::Answered;
            let read = self.reports.iter().filter(is_read).count();
            if read < quorum(core.rules.nodes) {
                let reports = std::mem::take(&mut self.reports);
                return Err(Error::NoQuorum(NoQuorum::new(reports)));
            }
            return Ok(());
        }
        match self.keys.next(core, redlock, pattern, !self.infix.is_empty()) {
            KeyStep::Keys(keys) => self.note(keys),
            KeyStep::End(keys, report) => {
                self.note(keys);
                self.go_to_next_node(report);
            }
            KeyStep::GivenUp(report) => self.go_to_next_node(report),
        }
        Ok(())
    }

    fn go_to_next_node(&mut self, report: NodeReport) {
        self.reports.push(report);
        if self.reports.len() < self.client.core.rules.nodes {
            self.keys = NodeKeys::new(Node::new(self.reports.len()));
        }
    }

    fn note(&mut self, keys: Vec<Vec<u8>>) {
        let prefix = self.client.core.key_prefix.len();
        for key in keys {
            // A server that lists other keys than it was asked for is no reason to panic.
            let name = key.get(prefix..).and_then(|name| name.strip_prefix(self.infix));
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            if self.add(name) {
                self.keys.keep(name.len() + BYTES_PER_NAME);
            }
        }
    }

    /// Adds a name. Returns whether it is new.
    fn add(&mut self, name: &[u8]) -> bool {
        let lock = FoundLock { name: name.into() };
        let is_new = self.known.insert(lock.clone());
        self.found.extend(is_new.then_some(lock));
        is_new
    }
}

// On a ZooKeeper ensemble, whose directories are below one root.

/// In how many directories a server is asked at a time whether somebody is there.
#[cfg(feature = "zookeeper")]
const BATCH: usize = 200;

#[cfg(feature = "zookeeper")]
impl Locks<'_> {
    fn read_directories(&mut self, ensemble: &Ensemble, pattern: &[u8]) -> Result<(), Error> {
        let Some(directories) = &mut self.directories else {
            let mut all = ensemble.directories().map_err(Error::NoQuorum)?;
            let core = &self.client.core;
            // What cannot be the lock of any client is not a lock.
            let is_lock = |key: &[u8]| {
                let name = key.get(core.key_prefix.len()..).filter(|name| !name.is_empty());
                name.is_some_and(|name| self.client.key(name).is_ok())
            };
            all.retain(|it| {
                redlatch_protocol::glob::is_listed(pattern, &it.key) && is_lock(&it.key)
            });
            self.directories = Some(all);
            return Ok(());
        };
        let batch = directories.split_off(directories.len().saturating_sub(BATCH));
        if batch.is_empty() {
            self.is_over = true;
            return Ok(());
        }
        let inhabited = ensemble.inhabited(batch).map_err(Error::NoQuorum)?;
        let prefix = self.client.core.key_prefix.len();
        for directory in inhabited {
            // The queue and the shares are one lock's.
            self.add(&directory.key[prefix..]);
        }
        Ok(())
    }
}

impl fmt::Debug for Locks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("known", &self.known.len()).finish_non_exhaustive()
    }
}
