//! What rustls's errors mean for the user of a lock.

use crate::node::{OtherProtocol, TlsError, TlsErrorKind};
use rustls::{AlertDescription, CertificateError, Error, OtherError};
use std::io::{self, ErrorKind};

/// How many of the names in a certificate are shown.
const NAMES_MAX: usize = 4;

/// What is known of the peer when an error occurs.
#[derive(Debug)]
pub(super) struct Peer {
    /// The first bytes that it sent, which show what it speaks.
    first: [u8; 8],
    first_len: usize,
    /// Has the client a certificate to show?
    has_certificate: bool,
    /// Has the peer chosen a version of TLS?
    pub(super) is_negotiated: bool,
}

impl Peer {
    pub(super) fn new(has_certificate: bool) -> Self {
        Self { first: [0; 8], first_len: 0, has_certificate, is_negotiated: false }
    }

    /// It sent these bytes.
    pub(super) fn spoke(&mut self, bytes: &[u8]) {
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
pub(super) fn cut_off(peer: &Peer, is_handshaking: bool) -> io::Error {
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
pub(super) fn tls_error(error: &Error, peer: &Peer) -> TlsError {
    match error {
        Error::InvalidCertificate(error) => certificate_error(error),
        Error::AlertReceived(alert) => alert_error(*alert, peer),
        Error::PeerIncompatible(reason) => {
            TlsError::new(TlsErrorKind::Incompatible, &format!("{reason:?}"))
        }
        Error::InvalidMessage(_) => {
            peer.foreign().unwrap_or_else(|| TlsError::new(TlsErrorKind::Other, &error.to_string()))
        }
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
            (TlsErrorKind::NotYetValid, format!("by the clock here, in {}", rough(seconds)))
        }
        CertificateError::NotValidForName => (TlsErrorKind::WrongName, String::new()),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = format!("not for {}", expected.to_str());
            let text = match names(presented) {
                names if names.is_empty() => {
                    format!("{expected}: it has no subjectAltName")
                }
                names => format!("for {names}, {expected}"),
            };
            (TlsErrorKind::WrongName, text)
        }
        CertificateError::BadSignature => {
            (TlsErrorKind::UnknownCa, "it is signed with another key than the CA's".to_owned())
        }
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
    let name = |text: &String| {
        let inner = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        inner.unwrap_or(text).trim_matches('"').to_owned()
    };
    let shown: Vec<String> = presented.iter().take(NAMES_MAX).map(name).collect();
    let more = if presented.len() > NAMES_MAX { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// A time in the largest unit that it has one of.
fn rough(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) = UNITS.into_iter().find(|(size, _)| seconds >= *size).unwrap_or(UNITS[3]);
    let count = seconds / size;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// An alert that the server sent.
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
mod tests;
