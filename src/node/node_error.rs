//! Why a node's answer does not count in a round, reported to the user for each node.

use super::server_error::ServerError;
use super::tls_error::TlsError;
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
    /// The server at this URL is not a Redis server.
    NotRedis(OtherProtocol),
    /// The server's bytes are not RESP. The connection was closed.
    Protocol(ProtocolError),
    /// The reply is RESP, but no valid answer to the request. The connection was closed.
    UnexpectedReply(String),
    /// The server answered with an error of its own.
    Server(ServerError),
    /// This node's URL leads to the same server as another one (equal `run_id`), so its vote would
    /// be that server's second.
    SameServer {
        /// The other URL.
        url: Arc<str>,
    },
    /// The server was started so recently, less than `max_ttl` ago as far as is known, that it may
    /// have forgotten a lock that is still held. See
    /// [`Builder::restart_guard`](crate::Builder::restart_guard).
    Quarantined {
        /// For how long its grants will not count.
        left: Duration,
    },
    /// The node has no queue for waiters, or its rights do not suffice for it. Locks on it are as
    /// safe; see [`QueueSupport::Unsupported`](crate::QueueSupport).
    NoQueue(ServerError),
    /// The node was not asked: this is a forked child of the process that built the client.
    OtherProcess,
}

/// The error text in a forked child.
pub(crate) const OTHER_PROCESS: &str =
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
            _ => false,
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
            Self::SameServer { url } => write!(f, "the same server as {url}"),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
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
    /// See [`Builder::io_thread`](crate::Builder::io_thread).
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

/// A protocol of a server that may be configured by mistake instead of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherProtocol {
    /// A web server.
    Http,
    /// A secure shell server.
    Ssh,
    /// A server that requires TLS: its URL must begin with `rediss://`.
    Tls,
    /// A mail or file server: a greeting of three digits.
    Smtp,
}

/// The first and the last type of a TLS record: change of cipher, alert, handshake, application
/// data, heartbeat. None of them begins a RESP value.
const TLS_FIRST: u8 = 0x14;
const TLS_LAST: u8 = 0x18;

impl OtherProtocol {
    /// Could these bytes be the beginning of a protocol that a few more bytes identify?
    #[must_use]
    pub fn may_begin(bytes: &[u8]) -> bool {
        let begins = |banner: &[u8]| bytes.len() < banner.len() && banner.starts_with(bytes);
        let is_code = bytes.len() < 4 && bytes.iter().all(u8::is_ascii_digit);
        let is_text = is_code || begins(b"HTTP") || begins(b"SSH-");
        Self::may_begin_tls(bytes) || !bytes.is_empty() && is_text
    }

    /// Could this be the first byte of a TLS record? The second byte decides.
    pub(crate) fn may_begin_tls(bytes: &[u8]) -> bool {
        matches!(bytes, [TLS_FIRST..=TLS_LAST])
    }

    /// Recognises a protocol by the first bytes that a server sent.
    #[must_use]
    pub fn recognise(first_bytes: &[u8]) -> Option<Self> {
        match first_bytes {
            // The type of a record, then its version, 3.x.
            [TLS_FIRST..=TLS_LAST, 0x03, ..] => Some(Self::Tls),
            [b'H', b'T', b'T', b'P', ..] => Some(Self::Http),
            [b'S', b'S', b'H', b'-', ..] => Some(Self::Ssh),
            [a, b, c, b' ' | b'-', ..] if [a, b, c].iter().all(|byte| byte.is_ascii_digit()) => {
                Some(Self::Smtp)
            }
            _ => None,
        }
    }
}

impl fmt::Display for OtherProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTP",
            Self::Ssh => "SSH",
            Self::Tls => "TLS",
            Self::Smtp => "a protocol like SMTP or FTP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_protocols_are_recognised_by_their_first_bytes() {
        let table: [(&[u8], Option<OtherProtocol>); 12] = [
            (b"HTTP/1.1 400 Bad Request", Some(OtherProtocol::Http)),
            (b"SSH-2.0-OpenSSH_9.2", Some(OtherProtocol::Ssh)),
            (b"\x15\x03\x03\x00\x02\x02\x0a", Some(OtherProtocol::Tls)),
            (b"\x14\x03\x03\x00\x01\x01", Some(OtherProtocol::Tls)),
            (b"\x16\x03\x01\x00\x05", Some(OtherProtocol::Tls)),
            (b"\x18\x03", Some(OtherProtocol::Tls)),
            (b"\x19\x03", None),
            (b"\x16\x02", None),
            (b"220 mail.example.org ESMTP", Some(OtherProtocol::Smtp)),
            (b"+OK", None),
            (b"", None),
            (b"HT", None),
        ];
        for (bytes, expected) in table {
            assert_eq!(OtherProtocol::recognise(bytes), expected);
            if expected.is_some() {
                assert!(!OtherProtocol::may_begin(bytes));
                assert!(OtherProtocol::may_begin(&bytes[..1]));
            }
        }
        for bytes in [&b""[..], b"+", b"-", b"$4", b"*", b"HX", b"22x", b"\x13", b"\x19", b"\x16+"]
        {
            assert!(!OtherProtocol::may_begin(bytes));
        }
    }
}
