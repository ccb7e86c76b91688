//! The public API: a ZooKeeper-like ensemble of one server, which can be stopped, restarted and
//! paused, and can end its sessions.
//!
//! Behind the socket is a model of the server: a function from time and request to replies. A
//! conformance test compares it with a ZooKeeper 3.8.0, reply by reply.
//!
//! | file | contents |
//! |---|---|
//! | `server.rs` | the server's thread, and its sockets |
//! | `messages.rs` | bytes to requests; replies and errors to bytes |
//! | `model.rs` | the model: connections, what happens by itself |
//! | `tree.rs` | the znodes, and how they change |
//! | `sessions.rs` | what ends by itself, and who is told of changes |
//! | `acl.rs` | who may do what with a znode |

mod acl;
mod messages;
mod model;
mod server;
mod sessions;
mod tree;

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::clock;
use crate::server::Server;
use model::Model;
use server::SharedModel;

/// The shortest tick: a server looks for ended sessions once in a tick.
const TICK_MIN: Duration = Duration::from_millis(1);

/// The settings of an ensemble that is to be started: see [`Ensemble::builder`].
///
/// ```
/// use redlatch::embedded::Ensemble;
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// // As a ZooKeeper does by default: sessions live for 4 s at least, and for 40 s at most.
/// let ensemble = Ensemble::builder().tick(Duration::from_secs(2)).start()?;
/// assert_eq!(ensemble.children("/"), ["zookeeper"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct EnsembleBuilder {
    /// Sessions end at whole ticks.
    tick: Duration,
    /// Which timeouts are granted as asked for. `None`: two to twenty ticks.
    timeouts: Option<RangeInclusive<Duration>>,
    /// How often empty containers are removed.
    sweep_interval: Duration,
}

impl EnsembleBuilder {
    /// The tick. A session ends at the first whole tick after its timeout. The timeouts that are
    /// granted as asked for become two to twenty ticks: call
    /// [`session_timeouts`](Self::session_timeouts) behind this one for others. At least 1 ms.
    /// Default: 50 ms, so that a test waits little longer than the timeout it has chosen.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick.max(TICK_MIN);
        self.timeouts = None;
        self
    }

    /// The session timeouts that are granted as asked for. A client that asks for less or more gets
    /// the nearest of them. Default: 100 ms to 60 s.
    pub fn session_timeouts(mut self, timeouts: RangeInclusive<Duration>) -> Self {
        self.timeouts = Some(timeouts);
        self
    }

    /// How often containers are removed that had children and have none. Default: 60 s, as
    /// ZooKeeper.
    pub fn container_interval(mut self, interval: Duration) -> Self {
        self.sweep_interval = interval.max(TICK_MIN);
        self
    }

    /// Starts the server on a free port of 127.0.0.1, with an empty tree.
    ///
    /// # Errors
    ///
    /// The operating system could not provide a port, a descriptor or a thread.
    pub fn start(self) -> io::Result<Ensemble> {
        let now = clock::now();
        let wall_micros = clock::wall_micros();
        let model = SharedModel::new(Model::new(self, now, wall_micros));
        let server = Server::start(Server::listen(0)?, model.restarted())?;
        Ok(Ensemble { model, server })
    }
}

/// A ZooKeeper-like ensemble of one server inside this process, with a thread and a port of
/// 127.0.0.1.
///
/// It knows the requests that this library sends, `ping`, `setData` and `getChildren` of other
/// clients, and the commands `ruok` and `srvr`. It answers other requests, such as `getACL` and
/// `setWatches`, with `Unimplemented` and closes the connection. It keeps nothing on disk and is no
/// substitute for ZooKeeper in production. It stops when the value is dropped. Every method takes
/// `&self`, so a thread can stop the server while other threads hold locks on it.
///
/// ```no_run
/// use redlatch::LockClient;
/// use redlatch::embedded::Ensemble;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ensemble = Ensemble::start()?;
/// let client = LockClient::new([ensemble.url()])?;
/// let lock = client.lock("orders:42", Duration::from_secs(10))?;
/// assert!(lock.ensure_held().is_ok());
///
/// ensemble.expire_sessions(); // as if the client had been silent for too long
/// assert!(lock.wait_lost(Duration::from_secs(5)).is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ensemble {
    model: SharedModel,
    server: Server,
}

impl Ensemble {
    /// Starts a server with the default settings on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// The operating system could not provide a port, a descriptor or a thread.
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// The settings for an ensemble that is to be started.
    pub fn builder() -> EnsembleBuilder {
        EnsembleBuilder {
            tick: Duration::from_millis(50),
            timeouts: Some(Duration::from_millis(100)..=Duration::from_secs(60)),
            sweep_interval: Duration::from_secs(60),
        }
    }

    /// The port of the server. It stays the same when the server restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// The URL of the ensemble, `zk://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("zk://127.0.0.1:{}", self.port())
    }

    /// Stops the server: it closes its connections, and its port refuses new ones. The tree and the
    /// sessions are kept. Does nothing if the server is down.
    pub fn stop(&self) {
        self.server.stop();
    }

    /// Stops the server, if it is up, and starts it on the same port, with its tree and its
    /// sessions. Each session has its whole timeout from now on, as after a real restart; no
    /// session ends while the server is down.
    ///
    /// # Errors
    ///
    /// The server could not start, for instance because another process has taken the port while
    /// the server was down, and has kept it for five seconds. The server stays down.
    pub fn restart(&self) -> io::Result<()> {
        self.server.restart(|| Ok(self.model.restarted()))
    }

    /// Makes the server silent, like a process that got SIGSTOP: connections and bytes are still
    /// accepted, but nothing is read and nothing is sent until [`resume`](Self::resume). Nothing is
    /// sent after this returns. Does nothing if the server is down.
    pub fn pause(&self) {
        self.server.pause();
    }

    /// Ends the pause of the server. Its clock has not stopped: sessions whose timeout has passed
    /// meanwhile end first, and then it carries out the requests that were sent. Does nothing if
    /// the server is down or not paused.
    pub fn resume(&self) {
        self.server.resume();
    }

    /// Ends all sessions at once, as if their clients had been silent for longer than their
    /// timeouts: their ephemeral znodes are removed, and with them their locks, and their
    /// connections are closed. While the server is paused, connections are closed when it resumes.
    pub fn expire_sessions(&self) {
        self.model.lock().expire_sessions(clock::now());
        self.server.wake();
    }

    /// The names of a znode's children in the order of their bytes; none if there is no such znode.
    /// Also while the server is down or paused.
    #[must_use]
    pub fn children(&self, path: &str) -> Vec<String> {
        self.model.lock().children(path).unwrap_or_default()
    }
}
