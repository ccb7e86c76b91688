//! What an operator does: looking at the nodes, releasing locks by force, and listing the locks
//! whose names match a pattern.

use super::{LockClient, check_length};
use crate::backend::KeyListing;
use crate::clock;
use crate::error::{Error, ResourceError};
use crate::inspect::Inspection;
use crate::name::Name;
use crate::node::{NodeError, NodeStatus, add_warnings};
use std::collections::HashSet;
use std::fmt;
use std::iter::FusedIterator;
use std::panic::{RefUnwindSafe, UnwindSafe};
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
    /// All Sentinels that a URL names are asked at the same time, each over a connection of its
    /// own, and have half a second if `node_timeout` is shorter.
    ///
    /// On ZooKeeper, each server is asked `srvr` over a connection of its own: for its version, its
    /// role and the last transaction that it knows. One that may not be asked
    /// (`4lw.commands.whitelist`) is connected, with that as its last error.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStatus> {
        let core = &self.core;
        if core.is_forked() {
            return core
                .backend
                .operator()
                .unreachable(&NodeError::OtherProcess);
        }
        let mut statuses = core.backend.operator().statuses();
        if let Some(listener) = core.events.listener() {
            listener.emit_node_changes();
        }
        add_warnings(
            &mut statuses,
            core.backend.operator().standards(),
            clock::now(),
            clock::wall_micros(),
        );
        statuses
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
    /// The value that was seen is not a lock (not a string, without a ttl, or too long), and stays.
    /// So does that of another program that locks [without a
    /// ttl](crate::guide::other_programs): nothing but its form tells it from data. If its holder
    /// is gone, `DEL` the key on each node.
    ///
    /// Or fewer nodes than a majority answered: the lock may still be held.
    pub fn force_release(&self, seen: &Inspection) -> Result<bool, Error> {
        if self.core.is_forked() {
            return Err(Error::OtherProcess);
        }
        self.core.backend.operator().force_release(&seen.seen)
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
    /// Or why there can be no names like that.
    pub(crate) keys: Result<Box<dyn KeyListing + 'a>, ResourceError>,
    /// What is before the names in the keys, behind the prefix: nothing for locks.
    infix: &'static [u8],
    /// Names that are not yet returned, and all names: each is returned once.
    found: Vec<FoundLock>,
    known: HashSet<FoundLock>,
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
    /// It reads the keys of one node after another with `SCAN`, about 500 in each step, which takes
    /// a server about a millisecond at most. It remembers all names that it has returned.
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
    pub(crate) fn keys_like(&self, pattern: &[u8], infix: &'static [u8]) -> Locks<'_> {
        let backend = &self.core.backend;
        let of_registers = !infix.is_empty();
        let pattern = self.pattern_of_keys(pattern, infix);
        let keys = pattern.map(|pattern| backend.operator().list(pattern, of_registers));
        let found = Vec::new();
        let known = HashSet::new();
        Locks {
            client: self,
            keys,
            infix,
            found,
            known,
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
impl FusedIterator for Locks<'_> {}

/// No code of a caller runs in the middle of a step.
impl UnwindSafe for Locks<'_> {}
impl RefUnwindSafe for Locks<'_> {}

impl Locks<'_> {
    /// Reads the next names from the nodes, if there are any.
    fn read(&mut self) -> Result<(), Error> {
        let core = &self.client.core;
        let listing = self
            .keys
            .as_mut()
            .map_err(|error| Error::Resource(*error))?;
        if core.is_forked() {
            return Err(Error::OtherProcess);
        }
        let keys = listing.next_keys()?;
        self.is_over = keys.is_none();
        for key in keys.into_iter().flatten() {
            // A server that lists other keys than it was asked for is no reason to panic.
            let name = key
                .get(core.key_prefix.len()..)
                .and_then(|it| it.strip_prefix(self.infix));
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                continue;
            };
            let lock = FoundLock { name: name.into() };
            if self.known.insert(lock.clone()) {
                listing.keep(name.len() + BYTES_PER_NAME);
                self.found.push(lock);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Locks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks")
            .field("known", &self.known.len())
            .finish_non_exhaustive()
    }
}
