//! Who keeps the locks of a client.
//!
//! An enum and not a trait: without the feature `zookeeper` it has one variant, and a `match` on it
//! costs nothing. Requests about a lock that is held are the same for both: an ensemble has one
//! vote.

use super::cancellation::EndWaits;
use super::draw;
#[cfg(feature = "zookeeper")]
use super::ensemble::Ensemble;
use crate::config::{NodeSettings, RedisNode, Settings};
use crate::engine::{HeldLock, NodeSet, QueueWait, Request};
use crate::error::ConfigError;
use crate::net::{ChangeQueue, Endpoint, Net, RoundOutcome};
use crate::node::{Credentials, Session, SessionOptions};
use crate::node_url::NodeUrl;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::QueueHead;
use crate::watchdog::{GuardedLock, Notifier, Watchdog};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Who keeps the locks of a client.
pub(crate) enum Backend {
    /// A majority of independent nodes.
    Redlock(Redlock),
    /// An ensemble that agrees on everything.
    #[cfg(feature = "zookeeper")]
    ZooKeeper(Ensemble),
}

impl Backend {
    /// Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// The operating system refuses a poll, or a thread for the connections.
    pub(super) fn new(
        settings: &Settings,
        changes: Option<Arc<ChangeQueue>>,
        notifier: &Arc<Notifier>,
        owner_process: &Arc<OwnerProcess>,
    ) -> Result<Self, ConfigError> {
        match &settings.nodes {
            NodeSettings::Redis(nodes) => {
                Redlock::new(nodes, settings, changes, notifier, owner_process).map(Self::Redlock)
            }
            #[cfg(feature = "zookeeper")]
            NodeSettings::ZooKeeper(ensemble) => {
                Ensemble::new(ensemble, settings, changes, notifier).map(Self::ZooKeeper)
            }
        }
    }

    /// Sends a request about a lock and waits until it is decided, or until its deadline.
    pub(super) fn submit(&self, request: Request) -> RoundOutcome {
        match self {
            Self::Redlock(redlock) => redlock.net.submit(request),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => ensemble.submit(&request),
        }
    }

    /// Sends a request without waiting for an answer.
    pub(super) fn post(&self, request: Request) {
        match self {
            Self::Redlock(redlock) => redlock.net.post(request),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => ensemble.post(&request),
        }
    }

    /// Waits in the nodes' queue. Returns the nodes that reserve the lock.
    pub(super) fn wait(&self, wait: QueueWait) -> NodeSet {
        match self {
            Self::Redlock(redlock) => redlock.net.wait(wait),
            #[cfg(feature = "zookeeper")]
            // Only Redlock's acquisitions wait so.
            Self::ZooKeeper(_) => NodeSet::EMPTY,
        }
    }

    /// Can there be a lock with this key?
    pub(crate) fn has_place_for(&self, key: &[u8]) -> bool {
        match self {
            Self::Redlock(_) => {
                let _ = key;
                true
            }
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => ensemble.directory(key).is_ok(),
        }
    }

    /// A lock is held from now on, and its loss is noticed.
    pub(crate) fn watch(&self, held: &Arc<GuardedLock>, head: Option<&QueueHead>) {
        match self {
            // Nodes tell nothing: whoever asks them for an extension finds out.
            Self::Redlock(_) => {
                let _ = (held, head);
            }
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => {
                ensemble.watch(held, head.map(|head| head.handle().clone()));
            }
        }
    }

    /// The most that a request can want as its least validity, if there is a limit beside the ttl.
    pub(crate) fn longest_validity(&self) -> Option<Duration> {
        match self {
            Self::Redlock(_) => None,
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => Some(ensemble.longest_validity()),
        }
    }

    /// For how long a lock may stay taken after its guard is gone, if there is a limit.
    pub(crate) fn longest_linger(&self) -> Option<Duration> {
        match self {
            Self::Redlock(_) => None,
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => Some(ensemble.longest_linger()),
        }
    }

    /// Do locks end with the session of the client, so that no other process can have them?
    pub(crate) fn keeps_locks_in_session(&self) -> bool {
        match self {
            Self::Redlock(_) => false,
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(_) => true,
        }
    }

    /// May a lock that is given up go to another thread of this client?
    pub(crate) fn may_hand_off(&self, held: &HeldLock) -> bool {
        match self {
            Self::Redlock(_) => {
                let _ = held;
                true
            }
            // A fencing token is that of a place in the queue, and each grant has a larger one.
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(_) => held.fence.is_none(),
        }
    }

    /// Where the calls of this client wait. It keeps no connection open.
    pub(super) fn waits(&self) -> Weak<dyn EndWaits> {
        match self {
            Self::Redlock(redlock) => Arc::<Net>::downgrade(&redlock.net),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => ensemble.waits(),
        }
    }

    /// Leaks the connections, which belong to the process that forked this one.
    pub(super) fn leak(&self) {
        match self {
            Self::Redlock(redlock) => std::mem::forget(Arc::clone(&redlock.net)),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => ensemble.leak(),
        }
    }
}

/// The connections to the nodes, and what keeps locks on them alive.
pub(crate) struct Redlock {
    /// Dropped before the connections, which its thread uses: dropping it ends that thread.
    pub(crate) watchdog: Watchdog,
    pub(crate) net: Arc<Net>,
    #[cfg(feature = "diagnostics")]
    pub(crate) restart_guard: bool,
}

impl Redlock {
    /// Prepares connections to the nodes; makes none yet.
    pub(super) fn new(
        nodes: &[RedisNode],
        settings: &Settings,
        changes: Option<Arc<ChangeQueue>>,
        notifier: &Arc<Notifier>,
        owner_process: &Arc<OwnerProcess>,
    ) -> Result<Self, ConfigError> {
        let nodes = nodes.iter().map(|RedisNode { url, tls }| {
            let endpoint = Endpoint { address: url.address().clone(), tls: tls.clone() };
            (endpoint, Session::new(session_options(url, settings)))
        });
        let net = Net::new(
            nodes.collect(),
            settings.connecting,
            settings.wait_for_all,
            settings.rules.node_timeout,
            changes,
            settings.io_thread,
        );
        let net = Arc::new(net.map_err(|error| ConfigError::System(Arc::new(error)))?);
        Ok(Self {
            watchdog: Watchdog::new(&net, &settings.rules, owner_process, notifier),
            net,
            #[cfg(feature = "diagnostics")]
            restart_guard: settings.restart_guard,
        })
    }
}

fn session_options(url: &NodeUrl, settings: &Settings) -> SessionOptions {
    // If there are no random numbers now, reconnecting is less spread out; locking, later, is what
    // needs them.
    let seed = draw().map_or(0, |entropy| entropy.seed);
    let mut options = SessionOptions::new(&url.to_string(), seed);
    let client_name = Some(&*settings.client_name);
    options.credentials = Credentials::new(url.user(), url.password(), url.database(), client_name);
    options.quarantine = settings.restart_guard.then_some(settings.max_ttl);
    options.node_timeout = settings.rules.node_timeout;
    options.connect_timeout = settings.connecting.timeout;
    options.silence_max = settings.rules.node_timeout * 10;
    options
}
