//! Several nodes, and what may happen to them.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::options::Options;
use super::server::Server;

/// How long a node claims to have been up when it is first started: 30 days.
///
/// A client that guards against masters which lost their keys in a restart leaves a node out until
/// it has been up for longer than any lock may live. Nodes that were just started for a test never
/// lost a lock, so they say that they have been there for long.
const UPTIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What the nodes are like; [`Nodes::builder`] makes one.
#[derive(Clone)]
pub struct NodesBuilder {
    password: Option<String>,
    uptime: Duration,
    uptime_after_restart: Duration,
    redis_version: Option<String>,
}

impl NodesBuilder {
    /// The password that every node asks for, with the user name `default`. None unless set.
    /// [`Nodes::urls`] contains it.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// How long the nodes say they have been up when [`start`](NodesBuilder::start) returns: 30
    /// days unless set, so that a client which distrusts freshly started nodes trusts these.
    #[must_use]
    pub fn uptime(mut self, uptime: Duration) -> Self {
        self.uptime = uptime;
        self
    }

    /// How long a node says it has been up right after [`Nodes::restart`]: zero unless set, which
    /// is the truth.
    #[must_use]
    pub fn uptime_after_restart(mut self, uptime: Duration) -> Self {
        self.uptime_after_restart = uptime;
        self
    }

    /// The Redis version that the nodes report: `7.0.15` unless set. What they do does not change.
    #[must_use]
    pub fn redis_version(mut self, version: impl Into<String>) -> Self {
        self.redis_version = Some(version.into());
        self
    }

    /// Starts `count` nodes, each on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// When the operating system has no port, descriptor, thread or random bytes to give.
    pub fn start(self, count: usize) -> io::Result<Nodes> {
        let nodes: io::Result<Vec<_>> = (0..count)
            .map(|_| {
                let server = Server::start(0, self.options(self.uptime))?;
                Ok(Node { port: server.port(), server: Mutex::new(Some(server)) })
            })
            .collect();
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
            .finish()
    }
}

/// Redis-like nodes inside this process, each a thread of its own behind a port of 127.0.0.1.
///
/// All of them stop when the value is dropped. Every method takes `&self`, so one thread can take
/// nodes down while others hold locks on them. Methods that take an index panic if there is no
/// such node.
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
        // A node is up or down whatever happened to the thread that last looked.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nodes {
    /// Starts `count` nodes with the default settings.
    ///
    /// # Errors
    ///
    /// When the operating system has no port, descriptor, thread or random bytes to give.
    pub fn start(count: usize) -> io::Result<Self> {
        Self::builder().start(count)
    }

    /// Settings for nodes that are to be started.
    #[must_use]
    pub fn builder() -> NodesBuilder {
        NodesBuilder {
            password: None,
            uptime: UPTIME,
            uptime_after_restart: Duration::ZERO,
            redis_version: None,
        }
    }

    /// How many nodes there are, running or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node's port, which it keeps for as long as this value lives.
    #[must_use]
    pub fn port(&self, node: usize) -> u16 {
        self.nodes[node].port
    }

    /// The nodes' addresses, `redis://127.0.0.1:PORT`, with the password if there is one.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let user = match &self.settings.password {
            Some(password) => format!(":{}@", percent_encoded(password)),
            None => String::new(),
        };
        let url = |node: &Node| format!("redis://{user}127.0.0.1:{}", node.port);
        self.nodes.iter().map(url).collect()
    }

    /// Takes the node down: its connections are cut, its port refuses new ones, its keys are gone.
    /// Does nothing if it is down.
    pub fn stop(&self, node: usize) {
        drop(self.nodes[node].server().take());
    }

    /// Takes the node down, if it is up, and starts it again on the same port: empty, with another
    /// run id and an uptime of zero (unless [`NodesBuilder::uptime_after_restart`] says otherwise).
    ///
    /// # Errors
    ///
    /// When the node does not come up again, for instance because another process has taken the
    /// port while it was down. It stays down then.
    pub fn restart(&self, node: usize) -> io::Result<()> {
        let Node { port, .. } = self.nodes[node];
        let mut server = self.nodes[node].server();
        // The old server must have let go of the port before the new one can have it.
        drop(server.take());
        let options = self.settings.options(self.settings.uptime_after_restart);
        *server = Some(Server::start(port, options)?);
        Ok(())
    }

    /// Makes the node fall silent, like a process that got SIGSTOP: connections and bytes are
    /// still accepted, and nothing is read or answered until [`resume`](Nodes::resume). Nothing
    /// is answered any more once this returns. Does nothing if the node is down.
    pub fn pause(&self, node: usize) {
        if let Some(server) = &*self.nodes[node].server() {
            server.pause();
        }
    }

    /// Lets a paused node go on: it reads and answers everything that was sent meanwhile. Its
    /// clock did not stand still. Does nothing if the node is down or not paused.
    pub fn resume(&self, node: usize) {
        if let Some(server) = &*self.nodes[node].server() {
            server.resume();
        }
    }
}

/// The text with everything but letters, digits and `-._~` as `%XX`.
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
