//! Settings about connections.

use super::{Builder, NodeSettings, refused};
use crate::error::ConfigError;
use crate::net::ConnectOptions;
use std::time::Duration;

/// The limits of the time for one attempt to connect.
const CONNECT_TIMEOUT_MIN: Duration = Duration::from_millis(1);
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// The least default of that time, and how many rounds fit into it otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ROUNDS: u32 = 10;

/// The part of an ensemble's session timeout that one attempt may take by default. When a silent
/// server is left, two sevenths of the session timeout remain: time for one attempt at another.
#[cfg(feature = "zookeeper")]
const ATTEMPTS_PER_SESSION: u32 = 5;

/// The limits of the idle time of a TCP connection. The longest that Linux takes is 32,767 s.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);
const KEEPALIVE_MAX: Duration = Duration::from_secs(9 * 60 * 60);

impl Builder {
    /// How long one attempt to connect to a node may take, from looking up its name to the answer
    /// to the greeting: 1 ms to 600 s. By default 2 s, or ten times
    /// [`node_timeout`](Self::node_timeout) if that is more.
    ///
    /// A connection takes several round trips. So a round of a new client, such as the first of
    /// every process, waits for this long, and not for `node_timeout`, until a majority of the
    /// nodes has answered for the first time; the caller's own deadline ends it sooner. With the
    /// answers of a majority, it waits for no other node any longer than that took. Once a node has
    /// answered, a connection to it that was lost is waited for for `node_timeout`, or twice as
    /// long as the last one took, if that is more. A node that could not be connected to in this
    /// time is waited for for `node_timeout` from then on, until it answers.
    ///
    /// A connection that is not finished when a round ends is kept, and later calls go on with it;
    /// until then the node counts as one that does not answer. When this time is over, the attempt
    /// is given up, and the next one begins after a short pause.
    ///
    /// Two seconds suffice for four round trips around the world, of 0.25 s each, and for a lost
    /// packet, which the operating system sends again after one second. A longer time only delays
    /// the next attempt at a node that is down. A time that passed while no call was in progress
    /// does not count if the connection got further meanwhile.
    ///
    /// On ZooKeeper it is the time until the server has answered for the session, by default 2 s,
    /// or a fifth of the [session timeout](Self#method.session_timeout) if that is less; then the
    /// next server is tried.
    ///
    /// If a name has several addresses, they share this time: IPv6 and IPv4 in turn (RFC 8305), one
    /// after another, each for the same part of it, or until it is refused. The one whose node
    /// answered last goes first the next time, if the name still has it.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// How long a TCP connection is idle before the operating system asks the node whether it is
    /// still there: `None` for never, 1 s to 9 h in whole seconds, by default 60 s.
    ///
    /// Firewalls, load balancers and NAT forget idle connections, the common ones after four
    /// minutes or more, and then drop their packets without a word. A probe each minute keeps the
    /// connection known to them. If a node, or the way to it, is gone, the operating system notices
    /// after three unanswered probes, a quarter of this time apart; the next call sees that before
    /// it sends anything, and connects anew within its round. Without the probes, it would send its
    /// request on the dead connection and wait for an answer in vain.
    ///
    /// On OpenBSD and other systems that have one time for all connections, that time is used.
    /// Unix sockets need no probes.
    ///
    /// On Linux and Android, bytes that a node does not acknowledge for 60 s end the connection
    /// too, whatever is set here. That counts for the probes as well: an idle connection ends when
    /// it has been silent for this long and one probe is unanswered.
    pub fn tcp_keepalive(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.keepalive = idle.into();
        self
    }

    /// The name of our connections in `CLIENT LIST`: printable ASCII, no spaces, by default
    /// `redlatch`. On ZooKeeper it has no effect.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Whether the connections have a thread of their own. By default they do not: the
    /// Leader/Followers pattern is used, and a caller that needs an answer reads and writes for all
    /// threads that wait meanwhile, which saves two thread switches per operation.
    ///
    /// The price is that callers depend on each other. If the leader is stopped in the middle of
    /// its work, by a slow signal handler or by a scheduler that prefers other threads, all callers
    /// wait for it, beyond their deadlines, and locks that are kept alive are not extended. With
    /// this setting, one thread does nothing but drive the connections, and a caller that is
    /// stopped delays no other. That thread can be stopped as well, above all by a signal handler
    /// of the process that runs in it; a caller then gives up 20 ms after its own deadline, with
    /// [`Phase::Queued`](crate::error::Phase::Queued) in the report of each node. Requests that
    /// callers have left until then are sent when the thread goes on: one request and its removal
    /// for each attempt.
    ///
    /// It is for programs with signal handlers that do more than set a flag, and for threads of
    /// different priorities. The thread starts with the client, sleeps while there is nothing to
    /// do, ends with the last clone, and does not keep the process alive.
    ///
    /// On ZooKeeper it has no effect: there is always such a thread.
    pub fn io_thread(mut self, thread: bool) -> Self {
        self.io_thread = thread;
        self
    }

    pub(super) fn check_connections(
        &self,
        nodes: &NodeSettings,
        node_timeout: Duration,
    ) -> Result<ConnectOptions, ConfigError> {
        let default = match nodes {
            NodeSettings::Redis(_) => CONNECT_TIMEOUT.max(node_timeout.saturating_mul(ROUNDS)),
            #[cfg(feature = "zookeeper")]
            NodeSettings::ZooKeeper(ensemble) => {
                CONNECT_TIMEOUT.min(ensemble.session_timeout / ATTEMPTS_PER_SESSION)
            }
        };
        let timeout = self.connect_timeout.unwrap_or(default);
        if !(CONNECT_TIMEOUT_MIN..=CONNECT_TIMEOUT_MAX).contains(&timeout) {
            let reason = format!("{timeout:?} is not between 1 ms and 600 s");
            return Err(refused("connect_timeout", reason));
        }
        let limits = KEEPALIVE_MIN..=KEEPALIVE_MAX;
        if let Some(idle) = self.keepalive.filter(|idle| !limits.contains(idle)) {
            let reason = format!("{idle:?} is not between 1 s and 9 h");
            return Err(refused("tcp_keepalive", reason));
        }
        Ok(ConnectOptions { timeout, keepalive: self.keepalive })
    }
}
