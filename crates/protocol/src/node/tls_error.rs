//! Errors of TLS: what is wrong, and with which of the two sides.
//!
//! This is all that the layers above the sockets know of TLS.

use super::server_error::presentable;
use std::{error, fmt};

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
        Self { kind, text: presentable(text.as_bytes(), None) }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.kind.words();
        match (words.is_empty(), self.text.is_empty()) {
            (_, true) => f.write_str(if words.is_empty() { "unknown error" } else { words }),
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
        assert_eq!(text(TlsErrorKind::Expired, ""), "TLS: the server's certificate has expired");
        assert_eq!(text(TlsErrorKind::Other, "decrypt error"), "TLS: decrypt error");
        assert_eq!(text(TlsErrorKind::Other, ""), "TLS: unknown error");
        assert_eq!(text(TlsErrorKind::Other, "a\nb\u{202e}"), "TLS: a\\nb\\u{202e}");
        assert!(text(TlsErrorKind::WrongName, &"x".repeat(10_000)).len() < 400);
    }

    #[test]
    fn waiting_helps_where_time_does() {
        let permanent = |kind| NodeError::Tls(TlsError::new(kind, "")).is_permanent();
        assert!(permanent(TlsErrorKind::UnknownCa) && permanent(TlsErrorKind::NotTls));
        assert!(permanent(TlsErrorKind::Expired) && permanent(TlsErrorKind::Incompatible));
        assert!(!permanent(TlsErrorKind::NotYetValid) && !permanent(TlsErrorKind::Other));
    }
}
