//! Why a node's answer does not count in a round, reported to the user for each node.

use super::other_protocol::OtherProtocol;
use super::server_error::ServerError;
use super::tls_error::TlsError;
use crate::engine::NoVote;
use crate::resp::ProtocolError;
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt, io};

/// Why a node's answer does not count.
///
/// Texts come from the server or the operating system. A server's text is shortened to
/// [`ServerError::TEXT_MAX`] bytes, and characters that act on a terminal, begin a new line in a
/// log, or are invisible are escaped. A text never contains a password, even if the server quotes
/// it or its beginning: stars replace it. If the password may be an ordinary word or was cut short,
/// the whole text after the error code is `(not shown: it may quote a secret)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeError {
    /// The host's name could not be turned into an address.
    Unresolved(String),
    /// No connection could be made, for instance because the port refused it.
    Unreachable {
        /// The kind of error.
        kind: io::ErrorKind,
        /// The operating system's words.
        text: String,
    },
    /// The connection could not be secured by TLS, or is not any more.
    Tls(TlsError),
    /// The connection broke before the answer arrived; the node may have carried out the request.
    Disconnected(String),
    /// The node did not answer in time.
    TimedOut(Phase),
    /// Too many commands are unanswered at this node, so no more are sent to it.
    Overloaded,
    /// The server at this URL is not a Redis server: the first bytes that it sent are not RESP.
    NotRedis(OtherProtocol),
    /// The server's bytes are not RESP. The connection was closed.
    Protocol(ProtocolError),
    /// The reply is RESP, but no valid answer to the request. The connection was closed.
    UnexpectedReply(String),
    /// The server answered with an error of its own.
    Server(ServerError),
    /// A server of a ZooKeeper ensemble has refused the client, or the request.
    Refused {
        /// ZooKeeper's name for the error, and its code.
        text: String,
        /// Is it an error in the configuration, such as wrong credentials?
        is_permanent: bool,
    },
    /// This node's URL leads to the same server as another one (equal `run_id`), so its vote would
    /// be that server's second.
    SameServer {
        /// The other URL.
        url: Arc<str>,
    },
    /// The server was started so recently, less than `max_ttl` ago as far as is known, that it may
    /// have forgotten a lock that is still held. See
    /// `Builder::restart_guard`.
    Quarantined {
        /// For how long its grants will not count.
        left: Duration,
    },
    /// The node has no queue for waiters, or its rights do not suffice for it. Locks on it are as
    /// safe; see `QueueSupport::Unsupported`.
    NoQueue(ServerError),
    /// The node may not vote on registers.
    NoVote(NoVote),
    /// The node was not asked: this is a forked child of the process that built the client.
    OtherProcess,
}

/// The error text in a forked child.
pub const OTHER_PROCESS: &str =
    "the client was built by another process, which forked this one: build one after forking";

impl NodeError {
    /// Is this an error in the configuration of the client or the server, which waiting does not
    /// resolve? An operation that waits for a lock gives up when a majority of nodes has such an
    /// error.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::NotRedis(_) | Self::SameServer { .. } | Self::OtherProcess => true,
            Self::Server(error) => error.kind.is_permanent(),
            Self::Tls(error) => error.kind.is_permanent(),
            Self::Refused { is_permanent, .. } => *is_permanent,
            _ => false,
        }
    }

    /// For how long the node's grants will not count, if that is the error.
    #[doc(hidden)]
    pub fn quarantine(&self) -> Option<Duration> {
        match self {
            Self::Quarantined { left } => Some(*left),
            _ => None,
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved(text) => write!(f, "name not resolved: {text}"),
            Self::Unreachable { text, .. } => write!(f, "no connection: {text}"),
            Self::Tls(error) => write!(f, "TLS: {error}"),
            Self::Disconnected(text) => write!(f, "connection lost: {text}"),
            Self::TimedOut(phase) => write!(f, "timed out {phase}"),
            Self::Overloaded => f.write_str("overloaded: too many commands unanswered"),
            Self::NotRedis(OtherProtocol::Tls) => {
                f.write_str("the server speaks TLS: use a rediss:// URL")
            }
            Self::NotRedis(other) => write!(f, "not a Redis server: it speaks {other}"),
            Self::Protocol(error) => write!(f, "protocol error: {error}"),
            Self::UnexpectedReply(text) => write!(f, "unexpected reply: {text}"),
            Self::Server(error) => write!(f, "server error: {error}"),
            Self::Refused { text, .. } => write!(f, "refused: {text}"),
            Self::SameServer { url } => write!(f, "the same server as {url}"),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
            Self::NoVote(why) => write!(f, "no vote on registers: {why}"),
            Self::NoQueue(error) => write!(f, "no queue for waiters: {error}"),
            Self::Quarantined { left } => {
                let left = left.as_secs_f64();
                write!(
                    f,
                    "quarantined for another {left:.1} s, until it has been up for max_ttl: it may \
                     have restarted and forgotten who holds the lock (setting restart_guard)"
                )
            }
        }
    }
}

impl error::Error for NodeError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Protocol(error) => error.source(),
            Self::Server(error) | Self::NoQueue(error) => error.source(),
            Self::Tls(error) => error.source(),
            _ => None,
        }
    }
}

/// The step for which the client waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The address of the node's host name.
    Resolving,
    /// The connection.
    Connecting,
    /// The TLS handshake. Redis does not answer it at a port without TLS, so this may also mean
    /// that the URL should begin with `redis://`, or name another port.
    Securing,
    /// The answer to the greeting: credentials, database, version.
    Greeting,
    /// The answer to a command.
    Answering,
    /// This client's own thread for its connections, which does not respond because it is stopped.
    /// See `Builder::io_thread`.
    Queued,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolving => "resolving its name",
            Self::Connecting => "connecting",
            Self::Securing => {
                "in the TLS handshake (perhaps the server does not speak TLS at this port)"
            }
            Self::Greeting => "waiting for an answer to the greeting",
            Self::Answering => "waiting for an answer",
            Self::Queued => "waiting for the thread that drives the connections",
        })
    }
}
