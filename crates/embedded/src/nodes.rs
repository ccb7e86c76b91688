//! The public API: several nodes, which can be stopped, restarted and paused.

use super::connection::RunningNode;
use super::server::Server;
use redlatch_protocol::time::Time;
use redlatch_registers::{Epoch, Group, Member, MemberAddress};
use std::time::Duration;
use std::{fmt, io};

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
#[derive(Clone, Debug)]
pub struct NodesBuilder {
    options: NodeOptions,
    uptime_after_restart: Duration,
    are_formed: bool,
}

impl NodesBuilder {
    /// The password of every node, for the user `default`. Default: no password. [`Nodes::urls`]
    /// contains it.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.options = self.options.password(password);
        self
    }

    /// The uptime that the nodes report when [`start`](NodesBuilder::start) returns. Default: 30
    /// days, so that a client with a restart guard counts them at once.
    #[must_use]
    pub fn uptime(mut self, uptime: Duration) -> Self {
        self.options.uptime = uptime;
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
        self.options.redis_version = version.into();
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
        let mut listeners = Vec::new();
        let mut urls = Vec::new();
        for _ in 0..count {
            let listener = Server::listen(0)?;
            urls.push(format!("{}/0", listener.local_addr()?));
            listeners.push(listener);
        }
        let mut nodes = Vec::new();
        for (listener, member) in listeners.into_iter().zip(members(&urls)?) {
            let mut options = self.options(listener.local_addr()?.port())?;
            options.member = self.are_formed.then_some(member);
            nodes.push(Server::start(listener, RunningNode::new(options))?);
        }
        Ok(Nodes {
            nodes,
            settings: self,
        })
    }

    fn options(&self, port: u16) -> io::Result<NodeOptions> {
        Ok(NodeOptions {
            port,
            run_id: random_run_id()?,
            ..self.options.clone()
        })
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
    nodes: Vec<Server>,
    settings: NodesBuilder,
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
            options: NodeOptions {
                uptime: UPTIME,
                ..NodeOptions::default()
            },
            uptime_after_restart: Duration::ZERO,
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
        self.nodes[node].port()
    }

    /// The URLs of all nodes, `redis://127.0.0.1:PORT`, with the password if there is one.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let user = match &self.settings.options.password {
            Some(password) => format!(":{}@", percent_encoded(&password.0)),
            None => String::new(),
        };
        let ports = self.nodes.iter().map(Server::port);
        let urls = ports.map(|port| format!("redis://{user}127.0.0.1:{port}"));
        urls.collect()
    }

    /// Stops a node: it closes its connections, its port refuses new ones, and its keys are lost.
    /// Does nothing if the node is down.
    pub fn stop(&self, node: usize) {
        self.nodes[node].stop();
    }

    /// Stops a node, if it is up, and starts it on the same port: without keys, with another run id
    /// and with the uptime of [`NodesBuilder::uptime_after_restart`].
    ///
    /// # Errors
    ///
    /// The node could not start, for instance because another process has taken the port while the
    /// node was down, and has kept it for five seconds. The node stays down.
    pub fn restart(&self, node: usize) -> io::Result<()> {
        let server = &self.nodes[node];
        let settings = &self.settings;
        server.restart(|| {
            let options = settings.options(server.port())?;
            Ok(RunningNode::new(NodeOptions {
                uptime: settings.uptime_after_restart,
                ..options
            }))
        })
    }

    /// Makes a node silent, like a process that got SIGSTOP: connections and bytes are still
    /// accepted, but nothing is read and no reply is sent until [`resume`](Nodes::resume). No reply
    /// is sent after this returns. Does nothing if the node is down.
    pub fn pause(&self, node: usize) {
        self.nodes[node].pause();
    }

    /// Ends the pause of a node: it runs all commands that were sent meanwhile and replies to them.
    /// Its clock has not stopped, so keys may have expired. Does nothing if the node is down or not
    /// paused.
    pub fn resume(&self, node: usize) {
        self.nodes[node].resume();
    }
}

/// Escapes all bytes except letters, digits and `-._~` as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

// The group that nodes which are started together are: they keep registers without a formation.

/// The members of a group in its first epoch: the nodes at these URLs.
fn members(urls: &[String]) -> io::Result<Vec<Member>> {
    let mut places = Vec::new();
    for url in urls {
        places.push(MemberAddress::new(draw()?, url));
    }
    let group = Group {
        id: draw()?,
        epoch: 1,
        token: draw()?,
    };
    let epoch = Epoch {
        group,
        members: places.as_slice().into(),
    };
    let members = places.iter().map(|place| Member {
        epoch: epoch.clone(),
        run_id: String::new(),
        id: place.id,
        is_durable: false,
    });
    Ok(members.collect())
}

fn draw() -> io::Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}

/// Forty random hexadecimal digits, as Redis draws at each start.
fn random_run_id() -> io::Result<String> {
    let bytes = random_bytes::<20>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

// The settings of one node: its identity and its password.

/// The settings of one [`Keyspace`](super::keyspace::Keyspace).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOptions {
    pub(super) password: Option<Password>,
    /// The run id in `INFO`: forty hexadecimal digits, different for every start of every server.
    /// The model has no source of randomness, so the caller must set a different one for each node.
    pub run_id: String,
    /// Which member of a group the node is, if it is one.
    pub(super) member: Option<Member>,
    /// The version that `INFO` and `HELLO` report. The commands always behave as in 7.0.15.
    pub redis_version: String,
    pub port: u16,
    /// The uptime of the node when it was started.
    pub uptime: Duration,
    /// When the node was started. Its uptime counts from here.
    pub started: Time,
    /// Microseconds since 1970 at [`Time::ZERO`].
    pub(super) epoch: u64,
}

impl NodeOptions {
    /// Requires this password (user `default`), as `requirepass` does.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(Password(password.into()));
        self
    }

    /// The node's wall clock, for `TIME`: it shows `micros` microseconds since 1970 at `now`, and
    /// goes on evenly from there. Without this, it shows 1970 at [`Time::ZERO`].
    pub fn wall_clock(mut self, now: Time, micros: u64) -> Self {
        self.epoch = micros.saturating_sub(now.as_nanos() / 1_000);
        self
    }

    /// What the wall clock shows.
    pub(super) fn wall_micros(&self, now: Time) -> u64 {
        self.epoch.saturating_add(now.as_nanos() / 1_000)
    }
}

/// No password, run id of forty zeroes, version 7.0.15, port 6379, just started at [`Time::ZERO`],
/// which is 1970.
impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            password: None,
            run_id: "0".repeat(40),
            member: None,
            redis_version: "7.0.15".to_owned(),
            port: 6379,
            uptime: Duration::ZERO,
            started: Time::ZERO,
            epoch: 0,
        }
    }
}

/// `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(pub(super) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"***\"")
    }
}
