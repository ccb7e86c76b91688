//! Why a node has no say in a round: what is reported to the user, node by node.

use super::server_error::ServerError;
use crate::resp::ProtocolError;
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt, io};

/// Why a node's answer does not count.
///
/// Texts are the server's or the operating system's own words. A server's are shortened to
/// [`ServerError::TEXT_MAX`] bytes, and characters that act on a terminal, begin another line of a
/// log, or are not seen there are escaped. A password never appears in one, also when a server
/// quotes it, or the beginning of it: there are stars in its place, or, where the password may be
/// an ordinary word or was cut short, the whole text is `(not shown: it may quote a secret)`,
/// behind the code of an error.
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
    /// The connection broke while an answer was outstanding, so what the node did is not known.
    Disconnected(String),
    /// Nothing was heard in time.
    TimedOut(Phase),
    /// So much is unanswered at this node already that nothing more is sent to it.
    Overloaded,
    /// What answers there is no Redis server.
    NotRedis(OtherProtocol),
    /// What came is not RESP. The connection was closed.
    Protocol(ProtocolError),
    /// What came is RESP, but no answer to what was asked. The connection was closed.
    UnexpectedReply(String),
    /// The server answered with an error of its own.
    Server(ServerError),
    /// This endpoint leads to the same server as another one (equal `run_id`), so that its vote
    /// would be that server's second.
    SameServer {
        /// The other endpoint.
        url: Arc<str>,
    },
    /// The server was started so recently that it may have forgotten a lock which is still held:
    /// less than `max_ttl` ago as far as is known. See
    /// [`Builder::restart_guard`](crate::Builder::restart_guard).
    Quarantined {
        /// For how long its grants will not count.
        left: Duration,
    },
    /// It was not asked: this is a forked child of the process that built the client.
    OtherProcess,
}

/// What a forked child is told.
pub(crate) const OTHER_PROCESS: &str =
    "the client was built by another process, which forked this one: build one after forking";

impl NodeError {
    /// Is this a mistake in the configuration, of the client or of the server, that no waiting
    /// mends? An operation that waits for its turn gives up when a majority of nodes has one.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::NotRedis(_) | Self::SameServer { .. } | Self::OtherProcess => true,
            Self::Server(error) => error.kind.is_permanent(),
            _ => false,
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved(text) => write!(f, "name not resolved: {text}"),
            Self::Unreachable { text, .. } => write!(f, "no connection: {text}"),
            Self::Disconnected(text) => write!(f, "connection lost: {text}"),
            Self::TimedOut(phase) => write!(f, "timed out {phase}"),
            Self::Overloaded => f.write_str("overloaded: too many commands unanswered"),
            Self::NotRedis(other) => write!(f, "not a Redis server: it speaks {other}"),
            Self::Protocol(error) => write!(f, "protocol error: {error}"),
            Self::UnexpectedReply(text) => write!(f, "unexpected reply: {text}"),
            Self::Server(error) => write!(f, "server error: {error}"),
            Self::SameServer { url } => write!(f, "the same server as {url}"),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
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
            Self::Server(error) => error.source(),
            _ => None,
        }
    }
}

/// What a node was being waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The address that belongs to its name.
    Resolving,
    /// The connection.
    Connecting,
    /// The answer to the greeting: credentials, database, version.
    Greeting,
    /// The answer to a command.
    Answering,
    /// This client's own thread for its connections, which has not come back: it is stopped. See
    /// [`Builder::io_thread`](crate::Builder::io_thread).
    Queued,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolving => "resolving its name",
            Self::Connecting => "connecting",
            Self::Greeting => "waiting for an answer to the greeting",
            Self::Answering => "waiting for an answer",
            Self::Queued => "waiting for the thread that drives the connections",
        })
    }
}

/// A protocol that is easily taken for Redis in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherProtocol {
    /// A web server.
    Http,
    /// A secure shell server.
    Ssh,
    /// A server that wants TLS.
    Tls,
    /// A mail or file server: a greeting of three digits.
    Smtp,
}

/// The first and the last type of a TLS record: change of cipher, alert, handshake, application
/// data, heartbeat. None of them begins a RESP value.
const TLS_FIRST: u8 = 0x14;
const TLS_LAST: u8 = 0x18;

impl OtherProtocol {
    /// Could these few bytes be the beginning of one that is recognised by a few more?
    #[must_use]
    pub fn may_begin(bytes: &[u8]) -> bool {
        let begins = |banner: &[u8]| bytes.len() < banner.len() && banner.starts_with(bytes);
        let is_code = bytes.len() < 4 && bytes.iter().all(u8::is_ascii_digit);
        let is_text = is_code || begins(b"HTTP") || begins(b"SSH-");
        Self::may_begin_tls(bytes) || !bytes.is_empty() && is_text
    }

    /// Could this be the first byte of a TLS record, which the second one decides?
    pub(super) fn may_begin_tls(bytes: &[u8]) -> bool {
        matches!(bytes, [TLS_FIRST..=TLS_LAST])
    }

    /// Recognises the first bytes that a server sent.
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
