//! Listing the locks whose names match a pattern.

use super::LockClient;
use super::check_length;
use crate::core::{Backend, KeyStep, NodeKeys, Redlock};
#[cfg(feature = "zookeeper")]
use crate::core::{Ensemble, FoundDirectory};
use crate::engine::{Node, quorum};
use crate::error::{Error, NoQuorum, ResourceError};
use crate::name::Name;
use crate::node::{NodeAnswer, NodeReport};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

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
            // What cannot be the lock of any client is no lock.
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
