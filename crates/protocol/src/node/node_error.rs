//! Why a node's answer does not count in a round, reported to the user for each node.

use super::server_error::{ServerError, ServerErrorKind, presentable};
use super::wrong_server::{WrongServer, show_crowd, show_mode};
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
    /// have forgotten a lock that is still held. See `Builder::restart_guard`. Of a replicated
    /// group: it has had its master for so short a time, less than `max_ttl` and `failover_bound`,
    /// and its servers have not proven that nothing is missing.
    Quarantined {
        /// For how long its grants will not count.
        left: Duration,
    },
    /// The vote was given in another reign of the replicated group than the one that was greeted,
    /// so another server may have granted the lock. The node is greeted again at once.
    ReignChanged,
    /// Too few replicas of the group have acknowledged the vote in time, so a failover may lose it,
    /// or has already. See the option `replicas` of URLs.
    NotAcknowledged {
        /// How many replicas are a majority, with the master.
        wanted: usize,
        /// How many have acknowledged it.
        acknowledged: usize,
    },
    /// The master of the group has more replicas than the URL names, so a majority of them is
    /// another one. See the option `replicas` of URLs.
    TooManyReplicas {
        /// How many the URL names.
        named: u32,
        /// How many the master lists, in any state.
        listed: usize,
        /// Has it been so for longer than a master lists a replica that has died, or that has come
        /// back from another address?
        is_permanent: bool,
    },
    /// Other clients of the group have another number of `replicas` in its URL, or none: they count
    /// votes in another way.
    ModeDiffers {
        /// The number in the URL of this client.
        named: Option<u32>,
        /// The number that the others have. `None` if they have none, or if it is not known.
        found: Option<u32>,
    },
    /// The address of a replicated group leads to no master: this is what is there instead.
    NoMaster(String),
    /// A majority of the servers that are asked for the master of a replicated group refuse to name
    /// it, for reasons that waiting does not resolve, and the others are silent. The text has what
    /// each of them says.
    LookupRefused(String),
    /// The node is a slot of a cluster that is on its way to another server: `ASK`, `TRYAGAIN`.
    SlotMoving(String),
    /// The cluster does not answer for the slot, as during a failover: `CLUSTERDOWN`.
    ClusterDown(String),
    /// The URL leads to a server of another kind than it names, such as a server that is in no
    /// cluster, or a Sentinel.
    WrongServer(WrongServer),
    /// The server of a replicated group does not say in whose reign it is: `INFO replication` has
    /// no `role` or no `master_replid`.
    HidesReign,
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
            Self::NotRedis(_)
            | Self::SameServer { .. }
            | Self::OtherProcess
            | Self::WrongServer(_)
            | Self::LookupRefused(_)
            | Self::ModeDiffers { .. }
            | Self::HidesReign => true,
            Self::Server(error) => error.kind.is_permanent(),
            Self::Tls(error) => error.kind.is_permanent(),
            Self::Refused { is_permanent, .. } | Self::TooManyReplicas { is_permanent, .. } => {
                *is_permanent
            }
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
            Self::Server(error) => {
                write!(f, "server error: {error}")?;
                f.write_str(right_url(error.kind))
            }
            Self::Refused { text, .. } => write!(f, "refused: {text}"),
            Self::SameServer { url } => write!(f, "the same server as {url}"),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
            Self::ReignChanged => f.write_str("the group has had another master meanwhile"),
            Self::NotAcknowledged {
                wanted,
                acknowledged,
            } => {
                write!(
                    f,
                    "{acknowledged} replicas have acknowledged the vote in time, and {wanted} must"
                )
            }
            Self::TooManyReplicas {
                named,
                listed,
                is_permanent,
            } => show_crowd(*named, *listed, *is_permanent, f),
            Self::ModeDiffers { named, found } => show_mode(*named, *found, f),
            Self::NoMaster(text) => write!(f, "no master: {text}"),
            Self::LookupRefused(text) => write!(f, "the master cannot be looked up: {text}"),
            Self::SlotMoving(text) => write!(f, "the slot is moving to another server: {text}"),
            Self::ClusterDown(text) => write!(f, "the cluster is down: {text}"),
            Self::WrongServer(wrong) => wrong.fmt(f),
            Self::HidesReign => f.write_str(
                "INFO replication has no role or no master_replid: failovers cannot be seen",
            ),
            Self::NoVote(why) => write!(f, "no vote on registers: {why}"),
            Self::NoQueue(error) => write!(f, "no queue for waiters: {error}"),
            Self::Quarantined { left } => {
                let left = left.as_secs_f64();
                write!(
                    f,
                    "quarantined for another {left:.1} s: it may have forgotten who holds the lock"
                )
            }
        }
    }
}

/// Which URL is the right one, where a plain one leads to a server that is no node of its own.
/// `READONLY` and `MOVED` do not say.
fn right_url(kind: ServerErrorKind) -> &'static str {
    match kind {
        ServerErrorKind::Replica => {
            "; the server is a replica: name its group (redis+sentinel://, redis+cluster://, \
             ?failover=true)"
        }
        ServerErrorKind::Cluster => {
            "; the server is a node of a cluster: name the cluster (redis+cluster://)"
        }
        _ => "",
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
    /// The answers of those that know the master of a replicated group.
    Locating,
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
            Self::Locating => "asking for the master",
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

// Errors of TLS: what is wrong, and with which of the two sides.
//
// This is all that the layers above the sockets know of TLS.

/// Why a connection could not be secured by TLS, or is not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsError {
    /// What is wrong.
    pub kind: TlsErrorKind,
    /// Details, perhaps empty. What is from the server, such as the names in its certificate, is
    /// shortened and escaped as a [server's text](crate::node::ServerError) is.
    pub text: String,
}

/// What is wrong with a connection over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsErrorKind {
    /// The server's certificate is signed by no CA that the client knows.
    UnknownCa,
    /// The server's certificate has expired, by the wall clock of this machine.
    Expired,
    /// The server's certificate is not valid yet, by the wall clock of this machine.
    NotYetValid,
    /// The server's certificate is for other names.
    WrongName,
    /// The server's certificate cannot be used for another reason.
    BadCertificate,
    /// The server wants a certificate of the client, and the client has none.
    ClientCertificateRequired,
    /// The server refuses the client's certificate.
    ClientCertificateRefused,
    /// The server does not speak TLS at this port.
    NotTls,
    /// Client and server have no version of TLS or no algorithms in common.
    Incompatible,
    /// Any other: the text says what.
    Other,
}

impl TlsError {
    /// An error with these details, which may be from the server.
    #[must_use]
    pub fn new(kind: TlsErrorKind, text: &str) -> Self {
        Self {
            kind,
            text: presentable(text.as_bytes(), None),
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.kind.words();
        match (words.is_empty(), self.text.is_empty()) {
            (_, true) => f.write_str(if words.is_empty() {
                "unknown error"
            } else {
                words
            }),
            (true, false) => f.write_str(&self.text),
            (false, false) => write!(f, "{words} ({})", self.text),
        }
    }
}

impl error::Error for TlsError {}

impl TlsErrorKind {
    fn words(self) -> &'static str {
        match self {
            Self::UnknownCa => {
                "the server's certificate is from an unknown CA: give its file to \
                 TlsSettings::ca_file"
            }
            Self::Expired => "the server's certificate has expired",
            Self::NotYetValid => "the server's certificate is not valid yet",
            Self::WrongName => "the server's certificate is for another name",
            Self::BadCertificate => "the server's certificate cannot be used",
            Self::ClientCertificateRequired => {
                "the server wants a client certificate: see TlsSettings::client_certificate"
            }
            Self::ClientCertificateRefused => "the server refuses the client's certificate",
            Self::NotTls => {
                "the server does not speak TLS at this port: use a redis:// URL, or the server's \
                 tls-port"
            }
            Self::Incompatible => "no version or algorithms in common with the server",
            Self::Other => "",
        }
    }

    /// See `NodeError::is_permanent`. A certificate that is not valid yet will be, and an unknown
    /// error may pass.
    pub(super) fn is_permanent(self) -> bool {
        !matches!(self, Self::NotYetValid | Self::Other)
    }
}

// Servers that are not Redis, recognised by the first bytes that they send.

/// The protocol of a server that is configured by mistake instead of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherProtocol {
    /// A web server.
    Http,
    /// A web server or a gRPC server that speaks only version 2 of HTTP.
    Http2,
    /// A secure shell server.
    Ssh,
    /// A server that requires TLS: its URL must begin with `rediss://`.
    Tls,
    /// A mail or file server: a greeting of three digits.
    Smtp,
    /// A MySQL or MariaDB server.
    MySql,
    /// A PostgreSQL server. Most of them close the connection without a word instead, which is
    /// [`Disconnected`](super::NodeError::Disconnected).
    Postgres,
    /// A memcached server.
    Memcached,
    /// A message broker, such as RabbitMQ.
    Amqp,
    /// Some other protocol, which does not begin as RESP does.
    Unknown,
}

/// The first and the last type of a TLS record: change of cipher, alert, handshake, application
/// data, heartbeat. None of them begins a RESP value.
const TLS_FIRST: u8 = 0x14;
const TLS_LAST: u8 = 0x18;

/// How the other protocols begin: the lowest bytes, and the highest. Two rows with the same
/// beginning are the same protocol.
const BEGINNINGS: [(&[u8], &[u8], OtherProtocol); 14] = [
    // The type of a record, then its version, 3.x.
    (&[TLS_FIRST, 3], &[TLS_LAST, 3], OtherProtocol::Tls),
    (b"HTTP", b"HTTP", OtherProtocol::Http),
    (b"SSH-", b"SSH-", OtherProtocol::Ssh),
    (b"000 ", b"999 ", OtherProtocol::Smtp),
    (b"000-", b"999-", OtherProtocol::Smtp),
    // A frame of type SETTINGS or GOAWAY: its length, type, flags and stream 0.
    (
        b"\0\0\0\x04\0\0\0\0\0",
        b"\0\0\xff\x04\xff\0\0\0\0",
        OtherProtocol::Http2,
    ),
    (
        b"\0\0\0\x07\0\0\0\0\0",
        b"\0\0\xff\x07\xff\0\0\0\0",
        OtherProtocol::Http2,
    ),
    // A packet: its length and number, then version 10 of the protocol and the server's version,
    // or an error.
    (b"\x08\0\0\0\x0a0", b"\xff\0\0\0\x0a9", OtherProtocol::MySql),
    (b"\x08\0\0\0\xff", b"\xff\0\0\x01\xff", OtherProtocol::MySql),
    // An error message: its type and length, then the field of the severity.
    (b"E\0\0\0\0S", b"E\0\0\xff\xffS", OtherProtocol::Postgres),
    (b"ERROR", b"ERROR", OtherProtocol::Memcached),
    (b"CLIENT", b"CLIENT", OtherProtocol::Memcached),
    (b"SERVER", b"SERVER", OtherProtocol::Memcached),
    (b"AMQP", b"AMQP", OtherProtocol::Amqp),
];

impl OtherProtocol {
    /// Could these bytes be the beginning of a protocol that a few more bytes identify?
    #[must_use]
    pub fn may_begin(bytes: &[u8]) -> bool {
        // If it is like one and not recognised, it is shorter.
        !bytes.is_empty() && Self::recognise(bytes).is_none() && alike(bytes).next().is_some()
    }

    /// Could this be the first byte of a TLS record? The second byte decides.
    #[doc(hidden)]
    pub fn may_begin_tls(bytes: &[u8]) -> bool {
        matches!(bytes, [TLS_FIRST..=TLS_LAST])
    }

    /// Recognises a protocol by the first bytes that a server sent.
    #[must_use]
    pub fn recognise(first_bytes: &[u8]) -> Option<Self> {
        let mut alike = alike(first_bytes);
        alike
            .find(|(length, _)| first_bytes.len() >= *length)
            .map(|(_, protocol)| protocol)
    }
}

/// The protocols that begin like these bytes, as far as both go, and how long their beginnings are.
fn alike(bytes: &[u8]) -> impl Iterator<Item = (usize, OtherProtocol)> {
    BEGINNINGS
        .iter()
        .filter(move |(low, high, _)| {
            let mut limits = low.iter().zip(*high).zip(bytes);
            limits.all(|((low, high), byte)| (low..=high).contains(&byte))
        })
        .map(|(low, _, protocol)| (low.len(), *protocol))
}

impl fmt::Display for OtherProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTP",
            Self::Http2 => "HTTP/2",
            Self::Ssh => "SSH",
            Self::Tls => "TLS",
            Self::Smtp => "a protocol like SMTP or FTP",
            Self::MySql => "the protocol of MySQL",
            Self::Postgres => "the protocol of PostgreSQL",
            Self::Memcached => "the protocol of memcached",
            Self::Amqp => "AMQP",
            Self::Unknown => "a protocol that is not RESP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeError;

    #[test]
    fn an_error_says_what_is_wrong_and_then_the_details() {
        let text = |kind, text| NodeError::Tls(TlsError::new(kind, text)).to_string();
        assert_eq!(
            text(TlsErrorKind::WrongName, "it is for a.example"),
            "TLS: the server's certificate is for another name (it is for a.example)"
        );
        assert_eq!(
            text(TlsErrorKind::Expired, ""),
            "TLS: the server's certificate has expired"
        );
        assert_eq!(
            text(TlsErrorKind::Other, "decrypt error"),
            "TLS: decrypt error"
        );
        assert_eq!(text(TlsErrorKind::Other, ""), "TLS: unknown error");
        assert_eq!(
            text(TlsErrorKind::Other, "a\nb\u{202e}"),
            "TLS: a\\nb\\u{202e}"
        );
        assert!(text(TlsErrorKind::WrongName, &"x".repeat(10_000)).len() < 400);
    }

    #[test]
    fn a_server_of_a_group_behind_a_plain_url_is_told_the_right_one() {
        let text = |reply: &[u8]| NodeError::Server(ServerError::parse(reply, None)).to_string();
        let replica = text(b"READONLY You can't write against a read only replica.");
        assert!(replica.contains("redis+sentinel://"), "{replica}");
        let member = text(b"MOVED 3999 10.0.0.9:6381");
        assert!(member.contains("redis+cluster://"), "{member}");
        assert_eq!(text(b"OOM no memory"), "server error: OOM no memory");
    }

    #[test]
    fn waiting_helps_where_time_does() {
        let permanent = |kind| NodeError::Tls(TlsError::new(kind, "")).is_permanent();
        assert!(permanent(TlsErrorKind::UnknownCa) && permanent(TlsErrorKind::NotTls));
        assert!(permanent(TlsErrorKind::Expired) && permanent(TlsErrorKind::Incompatible));
        assert!(!permanent(TlsErrorKind::NotYetValid) && !permanent(TlsErrorKind::Other));
    }

    mod other_protocol {
        use super::super::*;

        /// What servers send first: MySQL 8.0, MariaDB 10.11 (with a packet of `:`, `+` and `$`
        /// bytes too), MySQL that has too many connections, `PostgreSQL`, memcached 1.6,
        /// `RabbitMQ` 3, nginx with `http2` alone.
        const STRANGERS: [(&[u8], OtherProtocol); 21] = [
            (b"HTTP/1.1 400 Bad Request", OtherProtocol::Http),
            (b"SSH-2.0-OpenSSH_9.2", OtherProtocol::Ssh),
            (b"\x15\x03\x03\x00\x02\x02\x0a", OtherProtocol::Tls),
            (b"\x14\x03\x03\x00\x01\x01", OtherProtocol::Tls),
            (b"\x16\x03\x01\x00\x05", OtherProtocol::Tls),
            (b"\x18\x03", OtherProtocol::Tls),
            (b"220 mail.example.org ESMTP", OtherProtocol::Smtp),
            (b"220-FTP server", OtherProtocol::Smtp),
            (b"\x4a\0\0\0\x0a8.0.36\0\x08", OtherProtocol::MySql),
            (
                b"\x5f\0\0\0\x0a5.5.5-10.11.6-MariaDB-0+deb12u1\0",
                OtherProtocol::MySql,
            ),
            (b":\0\0\0\x0a8.0", OtherProtocol::MySql),
            (b"+\0\0\0\x0a8.0", OtherProtocol::MySql),
            (b"$\0\0\0\x0a8.0", OtherProtocol::MySql),
            (
                b"\x17\0\0\0\xff\x10\x04Too many connections",
                OtherProtocol::MySql,
            ),
            (
                b"E\0\0\0\x8cSFATAL\0VFATAL\0C0A000\0",
                OtherProtocol::Postgres,
            ),
            (b"ERROR\r\nERROR\r\n", OtherProtocol::Memcached),
            (b"CLIENT_ERROR line too long\r\n", OtherProtocol::Memcached),
            (b"SERVER_ERROR out of memory\r\n", OtherProtocol::Memcached),
            (b"AMQP\0\0\x09\x01", OtherProtocol::Amqp),
            (
                b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80",
                OtherProtocol::Http2,
            ),
            (
                b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01",
                OtherProtocol::Http2,
            ),
        ];

        #[test]
        fn other_protocols_are_recognised_by_their_first_bytes() {
            for (bytes, expected) in STRANGERS {
                assert_eq!(OtherProtocol::recognise(bytes), Some(expected));
                assert!(!OtherProtocol::may_begin(bytes));
                // However many bytes arrive at first: too few to recognise it, or enough.
                for length in 1..bytes.len() {
                    let recognised = OtherProtocol::recognise(&bytes[..length]);
                    assert!(recognised.is_none_or(|it| it == expected), "{bytes:?}");
                    assert_ne!(
                        recognised.is_some(),
                        OtherProtocol::may_begin(&bytes[..length])
                    );
                }
            }
        }

        #[test]
        fn resp_is_never_taken_for_another_protocol() {
            let replies: [&[u8]; 10] = [
                b"+OK\r\n",
                b"-ERR unknown command\r\n",
                b"-NOAUTH Authentication required.\r\n",
                b"$4\r\nHTTP\r\n",
                b"*2\r\n",
                b"%7\r\n",
                b"=15\r\ntxt:ERROR",
                b"_\r\n",
                b":0\r\n",
                b">2\r\n",
            ];
            for reply in replies {
                for length in 2..=reply.len() {
                    let bytes = &reply[..length];
                    assert!(!OtherProtocol::may_begin(bytes), "{bytes:?}");
                    assert_eq!(OtherProtocol::recognise(bytes), None);
                }
            }
            for bytes in [
                &b""[..],
                b"HX",
                b"22x",
                b"\x13+",
                b"\x19\x03",
                b"\x16+",
                b"\x16\x02",
            ] {
                assert!(
                    !OtherProtocol::may_begin(bytes) && OtherProtocol::recognise(bytes).is_none()
                );
            }
        }
    }
}
