//! TLS over a socket that never blocks: rustls encrypts and decrypts, and this moves the bytes.
//!
//! Reading and writing make as few calls to the operating system as they do without TLS. A read of
//! the socket that does not fill rustls's buffer has drained the socket, and all that is written at
//! once is sent by one call. What rustls holds is bounded in both directions: decrypted bytes are
//! taken out before the socket is read again, and encrypted ones by [`UNSENT_MAX`].

use super::Received;
use crate::node::{OtherProtocol, TlsError, TlsErrorKind};
use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error, OtherError};
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

/// How many encrypted bytes wait for the socket at most. More than the commands of one write
/// usually have, so that they are sent by one call.
pub const UNSENT_MAX: usize = 64 * 1024;

/// How the connections to a node are secured.
#[derive(Clone)]
pub struct TlsTarget {
    config: Arc<ClientConfig>,
    /// The server's certificate must be valid for this name.
    name: ServerName<'static>,
    /// Or for that of its host, if it is one of several?
    is_of_each_host: bool,
}

impl TlsTarget {
    /// `None` if no certificate can be valid for this name.
    pub fn new(config: Arc<ClientConfig>, name: &str) -> Option<Self> {
        let name = ServerName::try_from(name.to_owned()).ok()?;
        Some(Self {
            config,
            name,
            is_of_each_host: false,
        })
    }

    /// The same for several servers, each of which has a certificate of its own.
    pub(crate) fn of_each_host(self) -> Self {
        Self {
            is_of_each_host: true,
            ..self
        }
    }

    /// The same for the server on this host.
    pub(in crate::net) fn at(&self, host: &str) -> Self {
        let mut target = self.clone();
        if self.is_of_each_host {
            if let Ok(name) = ServerName::try_from(host.to_owned()) {
                target.name = name;
            }
        }
        target
    }
}

impl fmt::Debug for TlsTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTarget")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The TLS of one connection.
#[derive(Debug)]
pub struct TlsSession {
    connection: ClientConnection,
    peer: Peer,
    /// Why the connection is of no use any more. Bytes that were decrypted before are read first.
    problem: Option<TlsError>,
    /// Is nothing more to come?
    has_ended: bool,
    /// Can something be read without a call to the operating system: decrypted bytes, the problem,
    /// or the end of the stream?
    has_decrypted: bool,
}

impl TlsSession {
    /// A connection whose handshake has not begun. Its first message waits to be flushed.
    pub fn new(target: &TlsTarget) -> io::Result<Self> {
        let peer = Peer::new(target.config.client_auth_cert_resolver.has_certs());
        let connection = ClientConnection::new(Arc::clone(&target.config), target.name.clone());
        let mut connection =
            connection.map_err(|error| io::Error::other(tls_error(&error, &peer)))?;
        connection.set_buffer_limit(Some(UNSENT_MAX));
        Ok(Self {
            connection,
            peer,
            problem: None,
            has_ended: false,
            has_decrypted: false,
        })
    }

    /// Has the handshake still to be made?
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Can something be read without the socket?
    pub fn has_decrypted(&self) -> bool {
        self.has_decrypted
    }

    /// Is something encrypted, and not sent?
    pub fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Reads from the socket once, and decrypts. Returns whether the socket is drained.
    pub fn receive(&mut self, socket: &mut (impl Read + Write)) -> io::Result<bool> {
        let mut watched = Watched {
            socket,
            peer: &mut self.peer,
            is_drained: false,
        };
        let count = self.connection.read_tls(&mut watched)?;
        let is_drained = watched.is_drained;
        let processed = self.connection.process_new_packets();
        self.peer.is_negotiated = self.connection.protocol_version().is_some();
        match processed {
            Ok(state) => {
                self.has_ended = count == 0 || state.peer_has_closed();
                self.has_decrypted = self.has_ended || state.plaintext_bytes_to_read() > 0;
            }
            Err(error) => {
                self.problem = Some(tls_error(&error, &self.peer));
                self.has_ended = true;
                self.has_decrypted = true;
            }
        }
        if self.has_ended && self.is_handshaking() {
            return Err(self.end());
        }
        Ok(is_drained)
    }

    /// Reads decrypted bytes. If there are none, reads from the socket once.
    pub fn read(
        &mut self,
        socket: &mut (impl Read + Write),
        buffer: &mut [u8],
    ) -> io::Result<Received> {
        let is_drained = !self.has_decrypted && self.receive(socket)?;
        if !self.has_decrypted {
            return Ok(Received::Bytes {
                count: 0,
                is_drained,
            });
        }
        match self.connection.reader().read(buffer) {
            Ok(0) => Ok(Received::End),
            Ok(count) => {
                // A full buffer may have left some.
                self.has_decrypted = count == buffer.len() || self.has_ended;
                Ok(Received::Bytes {
                    count,
                    is_drained: is_drained && !self.has_decrypted,
                })
            }
            Err(error) if self.problem.is_some() || error.kind() == ErrorKind::UnexpectedEof => {
                Err(self.end())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.has_decrypted = false;
                Ok(Received::Bytes {
                    count: 0,
                    is_drained,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Encrypts as many of these bytes as there is room for, and sends what the socket takes.
    pub fn write(&mut self, socket: &mut (impl Read + Write), bytes: &[u8]) -> io::Result<usize> {
        let count = self.connection.writer().write(bytes)?;
        match self.flush(socket) {
            // What is encrypted must not be written again: it would be a command of its own.
            Err(error) if is_passing(&error) && count > 0 => Ok(count),
            result => result.map(|()| count),
        }
    }

    /// Sends what is encrypted. If the peer has closed, it may have said why: then that is the
    /// error.
    pub fn flush(&mut self, socket: &mut (impl Read + Write)) -> io::Result<()> {
        while self.connection.wants_write() {
            let error = match self.connection.write_tls(&mut Gathering(socket)) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(_) => continue,
                Err(error) => error,
            };
            if is_passing(&error) {
                return Err(error);
            }
            let _ = self.receive(socket);
            return Err(if self.problem.is_some() {
                self.end()
            } else {
                error
            });
        }
        Ok(())
    }

    /// Tells the peer that this is the end, or why, if the socket takes it at once.
    pub fn finish(&mut self, socket: &mut (impl Read + Write)) {
        if self.problem.is_none() {
            if self.is_handshaking() {
                return;
            }
            self.connection.send_close_notify();
        }
        // The connection is closed in any case.
        let _ = self.flush(socket);
    }

    /// The error for a stream that has ended in disorder.
    fn end(&self) -> io::Error {
        match &self.problem {
            Some(problem) => io::Error::other(problem.clone()),
            None => cut_off(&self.peer, self.is_handshaking()),
        }
    }
}

/// May the call succeed when it is repeated?
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The reading side.
struct Watched<'a, S> {
    socket: &'a mut S,
    peer: &'a mut Peer,
    /// Did the last read leave nothing in the socket? Then the next byte causes an event.
    is_drained: bool,
}

impl<S: Read> Read for Watched<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(buffer)?;
        self.is_drained = count < buffer.len();
        self.peer.spoke(&buffer[..count]);
        Ok(count)
    }
}

/// The writing side. Several records are sent by one call, as if they were one: a vectored write
/// would raise SIGPIPE in a program that does not ignore it, which the plain write never does.
struct Gathering<'a, S>(&'a mut S);

impl<S: Write> Write for Gathering<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [record] => self.0.write(record),
            records => {
                let all: Vec<u8> = records
                    .iter()
                    .flat_map(|record| record.iter().copied())
                    .collect();
                self.0.write(&all)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// What rustls's errors mean for the user of a lock.

/// How many of the names in a certificate are shown.
const NAMES_MAX: usize = 4;

/// What is known of the peer when an error occurs.
#[derive(Debug)]
struct Peer {
    /// The first bytes that it sent, which show what it speaks.
    first: [u8; 8],
    first_len: usize,
    has_certificate: bool,
    /// Has the peer chosen a version of TLS?
    is_negotiated: bool,
}

impl Peer {
    fn new(has_certificate: bool) -> Self {
        Self {
            first: [0; 8],
            first_len: 0,
            has_certificate,
            is_negotiated: false,
        }
    }

    fn spoke(&mut self, bytes: &[u8]) {
        let room = &mut self.first[self.first_len..];
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.first_len += count;
    }

    /// The error if what it speaks is not TLS.
    fn foreign(&self) -> Option<TlsError> {
        let first = &self.first[..self.first_len];
        if first.is_empty() || OtherProtocol::may_begin_tls(&first[..1]) {
            return None;
        }
        let text = match OtherProtocol::recognise(first) {
            Some(other) => format!("it speaks {other}"),
            None => String::new(),
        };
        Some(TlsError::new(TlsErrorKind::NotTls, &text))
    }
}

/// The error for a stream that has ended without an error and without a notice.
fn cut_off(peer: &Peer, is_handshaking: bool) -> io::Error {
    match peer.foreign() {
        Some(foreign) => io::Error::other(foreign),
        None if is_handshaking => io::Error::new(ErrorKind::UnexpectedEof, "closed by the server"),
        None => io::Error::new(
            ErrorKind::UnexpectedEof,
            "cut off: closed without the notice (close_notify) that ends TLS",
        ),
    }
}

/// An error of rustls in the library's words.
fn tls_error(error: &Error, peer: &Peer) -> TlsError {
    match error {
        Error::InvalidCertificate(error) => certificate_error(error),
        Error::AlertReceived(alert) => alert_error(*alert, peer),
        Error::PeerIncompatible(reason) => {
            TlsError::new(TlsErrorKind::Incompatible, &format!("{reason:?}"))
        }
        Error::InvalidMessage(_) => peer
            .foreign()
            .unwrap_or_else(|| TlsError::new(TlsErrorKind::Other, &error.to_string())),
        _ => TlsError::new(TlsErrorKind::Other, &error.to_string()),
    }
}

fn certificate_error(error: &CertificateError) -> TlsError {
    let (kind, text) = match error {
        CertificateError::UnknownIssuer => (TlsErrorKind::UnknownCa, String::new()),
        CertificateError::Expired => (TlsErrorKind::Expired, String::new()),
        CertificateError::ExpiredContext { time, not_after } => {
            let seconds = time.as_secs().saturating_sub(not_after.as_secs());
            (TlsErrorKind::Expired, format!("{} ago", rough(seconds)))
        }
        CertificateError::NotValidYet => (TlsErrorKind::NotYetValid, String::new()),
        CertificateError::NotValidYetContext { time, not_before } => {
            let seconds = not_before.as_secs().saturating_sub(time.as_secs());
            (
                TlsErrorKind::NotYetValid,
                format!("by the clock here, in {}", rough(seconds)),
            )
        }
        CertificateError::NotValidForName => (TlsErrorKind::WrongName, String::new()),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = format!("not for {}", expected.to_str());
            let text = match names(presented) {
                names if names.is_empty() => {
                    format!("{expected}: it has no subjectAltName")
                }
                names => format!("for {names}, {expected}"),
            };
            (TlsErrorKind::WrongName, text)
        }
        CertificateError::BadSignature => (
            TlsErrorKind::UnknownCa,
            "it is signed with another key than the CA's".to_owned(),
        ),
        CertificateError::Revoked => (TlsErrorKind::BadCertificate, "it was revoked".to_owned()),
        CertificateError::Other(other) => (TlsErrorKind::BadCertificate, other_words(other)),
        other => (TlsErrorKind::BadCertificate, other.to_string()),
    };
    TlsError::new(kind, &text)
}

/// Mistakes in certificates that are often made with openssl, and for which rustls has a name only.
fn other_words(error: &OtherError) -> String {
    match error.to_string() {
        name if name == "CaUsedAsEndEntity" => "it is marked as a CA's, CA:TRUE".to_owned(),
        name if name.starts_with("UnsupportedCertVersion") => {
            "it is of version 1, without extensions".to_owned()
        }
        name => name,
    }
}

/// The names in a certificate, of which rustls writes `DnsName("a.example")`.
fn names(presented: &[String]) -> String {
    let shown: Vec<&str> = presented
        .iter()
        .take(NAMES_MAX)
        .map(|text| bare_name(text))
        .collect();
    let more = if presented.len() > NAMES_MAX {
        " and others"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

fn bare_name(text: &str) -> &str {
    let inner = text
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(text).trim_matches('"')
}

/// A time in the largest unit that it has one of.
fn rough(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let (size, unit) = UNITS
        .into_iter()
        .find(|(size, _)| seconds >= *size)
        .unwrap_or(UNITS[3]);
    let count = seconds / size;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

fn alert_error(alert: AlertDescription, peer: &Peer) -> TlsError {
    let kind = match alert {
        AlertDescription::CertificateRequired => TlsErrorKind::ClientCertificateRequired,
        // With TLS 1.2, a server that wants a certificate sends this when it has got none. If it
        // found nothing in common with the client, it would not have chosen a version.
        AlertDescription::HandshakeFailure if peer.is_negotiated && !peer.has_certificate => {
            TlsErrorKind::ClientCertificateRequired
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => match peer.has_certificate {
            true => TlsErrorKind::ClientCertificateRefused,
            false => TlsErrorKind::ClientCertificateRequired,
        },
        AlertDescription::HandshakeFailure
        | AlertDescription::ProtocolVersion
        | AlertDescription::InsufficientSecurity
        | AlertDescription::NoApplicationProtocol => TlsErrorKind::Incompatible,
        AlertDescription::UnrecognisedName => TlsErrorKind::WrongName,
        _ => TlsErrorKind::Other,
    };
    TlsError::new(kind, &format!("the server's alert: {alert:?}"))
}

#[cfg(test)]
mod error_tests;
// Linux: the certificates are made by a crate that the tests have there only.
#[cfg(all(test, target_os = "linux"))]
mod tests;
