//! What an operator does: looking at the nodes, and releasing locks by force.

use super::LockClient;
use crate::clock;
#[cfg(feature = "zookeeper")]
use crate::core::Ensemble;
use crate::core::{Backend, Core, Redlock};
use crate::engine::{Command, NodeSet, Request, Ttl, quorum};
use crate::error::{Error, NoQuorum};
use crate::inspect::{Inspection, Seen};
use crate::node::{NodeError, NodeStatus, RoundOutcome, Standards, judge};
use redlatch_protocol::inspect::ForcedRemoval;
use std::sync::Arc;

impl LockClient {
    /// Returns the status of each node, in the order of the configuration: whether it can be
    /// reached, what a crash of it would cost, and [warnings](NodeStatus::warnings) about what
    /// breaks a promise of the lock.
    ///
    /// ```no_run
    /// # fn example(client: &redlatch::LockClient) {
    /// for node in client.nodes() {
    ///     if let Some(error) = node.last_error.as_ref().filter(|_| !node.is_connected) {
    ///         eprintln!("{}: {error}", node.url);
    ///     }
    ///     for warning in node.warnings() {
    ///         eprintln!("{}: {warning}", node.url);
    ///     }
    /// }
    /// # }
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
        self.core.note_votes(redlock, &mut statuses);
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
    /// On ZooKeeper, these are the znodes of the holders that were seen; their names are never used
    /// twice either. A holder that is alive notices within a seventh of its session timeout, as
    /// [`LossReason::Gone`](crate::LossReason::Gone). Otherwise all of this holds there too.
    ///
    /// Only the values that were seen are removed: a lock that another client has acquired since
    /// stays, however late a node carries this out. Locks of this library have a value that is
    /// never used twice; a lock of another program is distinguished by its own value.
    ///
    /// Dangerous: a holder that is alive works on, and notices nothing before its next extension or
    /// release, while another client can acquire the lock. It is for operators who *know* that the
    /// holder is gone and cannot wait for the ttl. Fencing counters stay as they are. A node that
    /// is unreachable now keeps its key, and is not sent the removal later.
    ///
    /// Of a lock that is [shared](crate::LockState::Shared), all readers and permits that were seen
    /// are removed, up to a hundred on each node. To remove one of several is not possible.
    ///
    /// If clients wait in the nodes' queue, the first of them acquires the lock next. A
    /// [reservation](crate::LockState::Reserved) is no lock: it stays, and the result is `false`.
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
