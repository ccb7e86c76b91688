//! Servers that are no Redis, recognised by the first bytes that they send.

use std::fmt;

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

/// One byte of the beginning of a protocol.
#[derive(Clone, Copy)]
enum Pattern {
    Is(u8),
    Between(u8, u8),
    Any,
}

use Pattern::{Any, Between, Is};

const DIGIT: Pattern = Between(b'0', b'9');
const ZERO: Pattern = Is(0);

/// How the other protocols begin. Two rows with the same beginning are the same protocol.
const BEGINNINGS: [(&[Pattern], OtherProtocol); 14] = [
    // The type of a record, then its version, 3.x.
    (&[Between(TLS_FIRST, TLS_LAST), Is(0x03)], OtherProtocol::Tls),
    (&[Is(b'H'), Is(b'T'), Is(b'T'), Is(b'P')], OtherProtocol::Http),
    (&[Is(b'S'), Is(b'S'), Is(b'H'), Is(b'-')], OtherProtocol::Ssh),
    (&[DIGIT, DIGIT, DIGIT, Is(b' ')], OtherProtocol::Smtp),
    (&[DIGIT, DIGIT, DIGIT, Is(b'-')], OtherProtocol::Smtp),
    // A frame of type SETTINGS or GOAWAY: its length, type, flags and stream 0.
    (&[ZERO, ZERO, Any, Is(4), Any, ZERO, ZERO, ZERO, ZERO], OtherProtocol::Http2),
    (&[ZERO, ZERO, Any, Is(7), Any, ZERO, ZERO, ZERO, ZERO], OtherProtocol::Http2),
    // A packet: its length and number, then version 10 of the protocol and the server's version,
    // or an error.
    (&[Between(8, 255), ZERO, ZERO, ZERO, Is(10), DIGIT], OtherProtocol::MySql),
    (&[Between(8, 255), ZERO, ZERO, Between(0, 1), Is(255)], OtherProtocol::MySql),
    // An error message: its type and length, then the field of the severity.
    (&[Is(b'E'), ZERO, ZERO, Any, Any, Is(b'S')], OtherProtocol::Postgres),
    (&[Is(b'E'), Is(b'R'), Is(b'R'), Is(b'O'), Is(b'R')], OtherProtocol::Memcached),
    (&[Is(b'C'), Is(b'L'), Is(b'I'), Is(b'E'), Is(b'N'), Is(b'T')], OtherProtocol::Memcached),
    (&[Is(b'S'), Is(b'E'), Is(b'R'), Is(b'V'), Is(b'E'), Is(b'R')], OtherProtocol::Memcached),
    (&[Is(b'A'), Is(b'M'), Is(b'Q'), Is(b'P')], OtherProtocol::Amqp),
];

impl OtherProtocol {
    /// Could these bytes be the beginning of a protocol that a few more bytes identify?
    #[must_use]
    pub fn may_begin(bytes: &[u8]) -> bool {
        let is_part = |(beginning, _): &(&[Pattern], Self)| {
            bytes.len() < beginning.len() && is_alike(beginning, bytes)
        };
        !bytes.is_empty() && BEGINNINGS.iter().any(is_part) && Self::recognise(bytes).is_none()
    }

    /// Could this be the first byte of a TLS record? The second byte decides.
    #[doc(hidden)]
    pub fn may_begin_tls(bytes: &[u8]) -> bool {
        matches!(bytes, [TLS_FIRST..=TLS_LAST])
    }

    /// Recognises a protocol by the first bytes that a server sent.
    #[must_use]
    pub fn recognise(first_bytes: &[u8]) -> Option<Self> {
        let is_it = |(beginning, _): &&(&[Pattern], Self)| {
            first_bytes.len() >= beginning.len() && is_alike(beginning, first_bytes)
        };
        BEGINNINGS.iter().find(is_it).map(|(_, protocol)| *protocol)
    }
}

/// Are the bytes as in the pattern, as far as both go?
fn is_alike(pattern: &[Pattern], bytes: &[u8]) -> bool {
    pattern.iter().zip(bytes).all(|(pattern, byte)| match pattern {
        Is(expected) => byte == expected,
        Between(first, last) => (first..=last).contains(&byte),
        Any => true,
    })
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

    /// What servers send first: MySQL 8.0, MariaDB 10.11 (with a packet of `:`, `+` and `$` bytes
    /// too), MySQL that has too many connections, `PostgreSQL`, memcached 1.6, `RabbitMQ` 3, nginx
    /// with `http2` alone.
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
        (b"\x5f\0\0\0\x0a5.5.5-10.11.6-MariaDB-0+deb12u1\0", OtherProtocol::MySql),
        (b":\0\0\0\x0a8.0", OtherProtocol::MySql),
        (b"+\0\0\0\x0a8.0", OtherProtocol::MySql),
        (b"$\0\0\0\x0a8.0", OtherProtocol::MySql),
        (b"\x17\0\0\0\xff\x10\x04Too many connections", OtherProtocol::MySql),
        (b"E\0\0\0\x8cSFATAL\0VFATAL\0C0A000\0", OtherProtocol::Postgres),
        (b"ERROR\r\nERROR\r\n", OtherProtocol::Memcached),
        (b"CLIENT_ERROR line too long\r\n", OtherProtocol::Memcached),
        (b"SERVER_ERROR out of memory\r\n", OtherProtocol::Memcached),
        (b"AMQP\0\0\x09\x01", OtherProtocol::Amqp),
        (b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80", OtherProtocol::Http2),
        (b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01", OtherProtocol::Http2),
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
                assert_ne!(recognised.is_some(), OtherProtocol::may_begin(&bytes[..length]));
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
        for bytes in [&b""[..], b"HX", b"22x", b"\x13+", b"\x19\x03", b"\x16+", b"\x16\x02"] {
            assert!(!OtherProtocol::may_begin(bytes) && OtherProtocol::recognise(bytes).is_none());
        }
    }
}
