//! The public API: several nodes, which can be stopped, restarted and paused.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mio::net::TcpListener;

use super::formation;
use super::options::Options;
use super::port::start_again;
use super::server::Server;

/// The uptime that a node reports when it is first started: 30 days.
///
/// A client with a restart guard does not count a node until it has been up for longer than any
/// lock may live, because a restart may have lost keys. Nodes that were just started for a test
/// never lost a key, so they report a long uptime.
const UPTIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The settings of nodes that are to be started: see [`Nodes::builder`].
///
/// ```
/// use redlatch::embedded::Nodes;
///
/// # fn main() -> std::io::Result<()> {
/// let nodes = Nodes::builder().password("secret").start(1)?;
/// assert_eq!(nodes.urls()[0], format!("redis://:secret@127.0.0.1:{}", nodes.port(0)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NodesBuilder {
    password: Option<String>,
    uptime: Duration,
    uptime_after_restart: Duration,
    redis_version: Option<String>,
    are_formed: bool,
}

impl NodesBuilder {
    /// The password of every node, for the user `default`. Default: no password. [`Nodes::urls`]
    /// contains it.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The uptime that the nodes report when [`start`](NodesBuilder::start) returns. Default: 30
    /// days, so that a client with a restart guard counts them at once.
    #[must_use]
    pub fn uptime(mut self, uptime: Duration) -> Self {
        self.uptime = uptime;
        self
    }

    /// The uptime that a node reports immediately after [`Nodes::restart`]. Default: zero.
    #[must_use]
    pub fn uptime_after_restart(mut self, uptime: Duration) -> Self {
        self.uptime_after_restart = uptime;
        self
    }

    /// The Redis version that the nodes report. Default: `7.0.15`. It does not change their
    /// behaviour.
    #[must_use]
    pub fn redis_version(mut self, version: impl Into<String>) -> Self {
        self.redis_version = Some(version.into());
        self
    }

    /// Are the nodes a group that keeps registers, as after `Registers::form` with
    /// `in_memory`, for clients without a key prefix? Default: yes. A node that was stopped or
    /// restarted has forgotten its registers, and has no vote until it is repaired.
    #[must_use]
    pub fn formed(mut self, are_formed: bool) -> Self {
        self.are_formed = are_formed;
        self
    }

    /// Starts `count` nodes, each on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// The operating system could not provide a port, a descriptor, a thread or random bytes.
    pub fn start(self, count: usize) -> io::Result<Nodes> {
        let listeners: Vec<_> = (0..count).map(|_| Server::listen(0)).collect::<io::Result<_>>()?;
        let addresses = listeners.iter().map(TcpListener::local_addr);
        let addresses: Vec<_> = addresses.collect::<io::Result<_>>()?;
        let members = formation::members(addresses.iter().map(|it| format!("{it}/0")))?;
        let start = |(listener, member)| -> io::Result<Node> {
            let mut options = self.options(self.uptime);
            options.member = Some(member).filter(|_| self.are_formed);
            let server = Server::start(listener, options)?;
            Ok(Node { port: server.port(), server: Mutex::new(Some(server)) })
        };
        let nodes: io::Result<Vec<_>> = listeners.into_iter().zip(members).map(start).collect();
        Ok(Nodes { nodes: nodes?, settings: self })
    }

    fn options(&self, uptime: Duration) -> Options {
        let mut options = Options::new().uptime(uptime);
        if let Some(password) = &self.password {
            options = options.password(password);
        }
        if let Some(version) = &self.redis_version {
            options = options.redis_version(version);
        }
        options
    }
}

/// Never shows the password.
impl fmt::Debug for NodesBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodesBuilder")
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("uptime", &self.uptime)
            .field("uptime_after_restart", &self.uptime_after_restart)
            .field("redis_version", &self.redis_version)
            .field("are_formed", &self.are_formed)
            .finish()
    }
}

/// Redis-like nodes inside this process. Each has a thread and a port of 127.0.0.1.
///
/// All nodes stop when the value is dropped. Every method takes `&self`, so a thread can stop nodes
/// while other threads hold locks on them. A method that takes the index of a node panics if there
/// is no such node.
///
/// ```
/// use redlatch::LockClient;
/// use redlatch::embedded::Nodes;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nodes = Nodes::start(3)?;
/// let client = LockClient::new(nodes.urls())?;
/// let lock = client.lock("orders:42", Duration::from_secs(10))?;
///
/// nodes.restart(0)?; // node 0 has lost the key of the lock
/// assert!(lock.ensure_held().is_ok()); // the lock is still valid on a majority
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    settings: NodesBuilder,
}

#[derive(Debug)]
struct Node {
    port: u16,
    /// `None` while the node is down.
    server: Mutex<Option<Server>>,
}

impl Node {
    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        // A panic of another thread leaves the node up or down: both are valid states.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nodes {
    /// Starts `count` nodes with the default settings, each on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// The operating system could not provide a port, a descriptor, a thread or random bytes.
    pub fn start(count: usize) -> io::Result<Self> {
        Self::builder().start(count)
    }

    /// The settings for nodes that are to be started.
    #[must_use]
    pub fn builder() -> NodesBuilder {
        NodesBuilder {
            password: None,
            uptime: UPTIME,
            uptime_after_restart: Duration::ZERO,
            redis_version: None,
            are_formed: true,
        }
    }

    /// The number of nodes, running or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Are there no nodes?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The port of a node. It stays the same when the node restarts.
    #[must_use]
    pub fn port(&self, node: usize) -> u16 {
        self.nodes[node].port
    }

    /// The URLs of all nodes, `redis://127.0.0.1:PORT`, with the password if there is one.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let user = match &self.settings.password {
            Some(password) => format!(":{}@", percent_encoded(password)),
            None => String::new(),
        };
        let url = |node: &Node| format!("redis://{user}127.0.0.1:{}", node.port);
        self.nodes.iter().map(url).collect()
    }

    /// Stops a node: it closes its connections, its port refuses new ones, and its keys are lost.
    /// Does nothing if the node is down.
    pub fn stop(&self, node: usize) {
        drop(self.nodes[node].server().take());
    }

    /// Stops a node, if it is up, and starts it on the same port: without keys, with another run id
    /// and with the uptime of [`NodesBuilder::uptime_after_restart`].
    ///
    /// # Errors
    ///
    /// The node could not start, for instance because another process has taken the port while the
    /// node was down, and has kept it for five seconds. The node stays down.
    pub fn restart(&self, node: usize) -> io::Result<()> {
        let Node { port, .. } = self.nodes[node];
        let mut server = self.nodes[node].server();
        // The old server must close the port before the new one opens it.
        drop(server.take());
        let options = || self.settings.options(self.settings.uptime_after_restart);
        *server = Some(start_again(|| Server::start(Server::listen(port)?, options()))?);
        Ok(())
    }

    /// Makes a node silent, like a process that got SIGSTOP: connections and bytes are still
    /// accepted, but nothing is read and no reply is sent until [`resume`](Nodes::resume). No reply
    /// is sent after this returns. Does nothing if the node is down.
    pub fn pause(&self, node: usize) {
        if let Some(server) = &*self.nodes[node].server() {
            server.pause();
        }
    }

    /// Ends the pause of a node: it runs all commands that were sent meanwhile and replies to them.
    /// Its clock has not stopped, so keys may have expired. Does nothing if the node is down or not
    /// paused.
    pub fn resume(&self, node: usize) {
        if let Some(server) = &*self.nodes[node].server() {
            server.resume();
        }
    }
}

/// Escapes all bytes except letters, digits and `-._~` as `%XX`.
fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
