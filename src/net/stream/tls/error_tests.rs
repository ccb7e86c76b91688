//! The words for errors.

use super::*;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{InvalidMessage, PeerIncompatible};
use std::time::Duration;

fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

#[test]
fn a_certificate_that_is_refused_has_its_reason() {
    let name = |presented: &[&str]| CertificateError::NotValidForNameContext {
        expected: ServerName::try_from("redis-1").expect("a name"),
        presented: presented.iter().map(|name| (*name).to_owned()).collect(),
    };
    let many = [r#"DnsName("a")"#; 6];
    for (error, kind, text) in [
        (CertificateError::UnknownIssuer, TlsErrorKind::UnknownCa, ""),
        (
            CertificateError::BadSignature,
            TlsErrorKind::UnknownCa,
            "it is signed with another key than the CA's",
        ),
        (
            CertificateError::ExpiredContext {
                time: at(200_000),
                not_after: at(20_000),
            },
            TlsErrorKind::Expired,
            "2 days ago",
        ),
        (CertificateError::Expired, TlsErrorKind::Expired, ""),
        (
            CertificateError::NotValidYetContext {
                time: at(100),
                not_before: at(160),
            },
            TlsErrorKind::NotYetValid,
            "by the clock here, in 1 minute",
        ),
        (
            name(&[r#"DnsName("a.example")"#, "IpAddress(10.0.0.1)"]),
            TlsErrorKind::WrongName,
            "for a.example, 10.0.0.1, not for redis-1",
        ),
        (
            name(&many),
            TlsErrorKind::WrongName,
            "for a, a, a, a and others, not for redis-1",
        ),
        (
            name(&[]),
            TlsErrorKind::WrongName,
            "not for redis-1: it has no subjectAltName",
        ),
        (
            CertificateError::Revoked,
            TlsErrorKind::BadCertificate,
            "it was revoked",
        ),
        (
            CertificateError::BadEncoding,
            TlsErrorKind::BadCertificate,
            "BadEncoding",
        ),
    ] {
        let found = tls_error(&Error::InvalidCertificate(error), &Peer::new(false));
        assert_eq!((found.kind, &*found.text), (kind, text));
    }
}

#[test]
fn a_name_in_a_certificate_cannot_change_how_a_text_is_shown() {
    let error = CertificateError::NotValidForNameContext {
        expected: ServerName::try_from("a").expect("a name"),
        presented: vec![
            "DnsName(\"\u{1b}[31m\n\u{202e}\")".to_owned(),
            "x".repeat(10_000),
        ],
    };
    let text = tls_error(&Error::InvalidCertificate(error), &Peer::new(false)).text;
    assert!(
        text.starts_with("for \\u{1b}[31m\\n\\u{202e}, xxx"),
        "{text}"
    );
    assert!(text.len() < 300);
}

#[test]
fn an_alert_about_the_clients_certificate_says_whether_there_is_one() {
    let kind = |alert, has_certificate, is_negotiated| {
        let mut peer = Peer::new(has_certificate);
        peer.is_negotiated = is_negotiated;
        tls_error(&Error::AlertReceived(alert), &peer).kind
    };
    use AlertDescription as Alert;
    use TlsErrorKind as Kind;
    assert_eq!(
        kind(Alert::CertificateRequired, false, true),
        Kind::ClientCertificateRequired
    );
    for alert in [
        Alert::BadCertificate,
        Alert::UnknownCA,
        Alert::CertificateExpired,
    ] {
        assert_eq!(kind(alert, true, true), Kind::ClientCertificateRefused);
        assert_eq!(kind(alert, false, true), Kind::ClientCertificateRequired);
    }
    // TLS 1.2.
    assert_eq!(
        kind(Alert::HandshakeFailure, false, true),
        Kind::ClientCertificateRequired
    );
    assert_eq!(
        kind(Alert::HandshakeFailure, true, true),
        Kind::Incompatible
    );
    assert_eq!(
        kind(Alert::HandshakeFailure, false, false),
        Kind::Incompatible
    );
    assert_eq!(
        kind(Alert::ProtocolVersion, false, false),
        Kind::Incompatible
    );
    assert_eq!(kind(Alert::UnrecognisedName, false, false), Kind::WrongName);
    assert_eq!(kind(Alert::InternalError, false, false), Kind::Other);
}

#[test]
fn other_errors_keep_the_words_of_rustls() {
    let peer = Peer::new(false);
    let found = tls_error(&PeerIncompatible::NoCipherSuitesInCommon.into(), &peer);
    assert_eq!(
        found,
        TlsError::new(TlsErrorKind::Incompatible, "NoCipherSuitesInCommon")
    );
    assert_eq!(
        tls_error(&Error::DecryptError, &peer).kind,
        TlsErrorKind::Other
    );
    let broken = Error::InvalidMessage(InvalidMessage::InvalidContentType);
    assert_eq!(tls_error(&broken, &peer).kind, TlsErrorKind::Other);
    let mut plain = Peer::new(false);
    plain.spoke(b"-");
    plain.spoke(b"ERR unknown command");
    assert_eq!(tls_error(&broken, &plain).kind, TlsErrorKind::NotTls);
}

#[test]
fn times_are_rough() {
    assert_eq!(rough(0), "0 seconds");
    assert_eq!(rough(1), "1 second");
    assert_eq!(rough(119), "1 minute");
    assert_eq!(rough(7_200), "2 hours");
    assert_eq!(rough(86_400 * 400), "400 days");
}
