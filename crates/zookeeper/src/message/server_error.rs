//! The errors of servers: their codes, and what helps.

use std::fmt;

/// Why a server did not carry out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerError {
    /// -101: the znode, or the parent of one to be created, is not there.
    NoNode,
    /// -110: it exists already.
    NodeExists,
    /// -111: it has children, so it is not deleted.
    NotEmpty,
    /// -112: the session has ended.
    SessionExpired,
    /// -12: the session is not known.
    UnknownSession,
    /// -118: the session has a later connection to another server.
    SessionMoved,
    /// -102: the credentials do not suffice.
    NoAuth,
    /// -114: the ACL is refused.
    InvalidAcl,
    /// -115: the credentials are wrong.
    AuthFailed,
    /// -6: the server does not know this request, or it is switched off.
    Unimplemented,
    /// -119: the server has no majority, and can only be read.
    NotReadOnly,
    /// -120: the session is known to this server alone, and has no ephemeral znodes.
    EphemeralOnLocalSession,
    /// -125: a quota is used up.
    QuotaExceeded,
    /// -127: the server has too many requests.
    ThrottledOperation,
    /// -122: the server did not manage it in time.
    RequestTimeout,
    /// -2, in the results of a transaction: another operation failed, or the server is in trouble.
    RuntimeInconsistency,
    /// Any other code.
    Other(i32),
}

/// What helps against an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// It says something about a znode: the request's author knows what follows.
    Author,
    /// A new session. All znodes of the old one are gone, or about to be.
    NewSession,
    /// A new connection to the same or another server.
    Reconnect,
    /// Another configuration. Trying again is no use.
    Configure,
    /// Patience: the same request later.
    Wait,
}

/// The codes with their errors and names.
const TABLE: [(i32, ServerError, &str); 16] = [
    (-101, ServerError::NoNode, "NoNode"),
    (-110, ServerError::NodeExists, "NodeExists"),
    (-111, ServerError::NotEmpty, "NotEmpty"),
    (-112, ServerError::SessionExpired, "SessionExpired"),
    (-12, ServerError::UnknownSession, "UnknownSession"),
    (-118, ServerError::SessionMoved, "SessionMoved"),
    (-102, ServerError::NoAuth, "NoAuth"),
    (-114, ServerError::InvalidAcl, "InvalidACL"),
    (-115, ServerError::AuthFailed, "AuthFailed"),
    (-6, ServerError::Unimplemented, "Unimplemented"),
    (-119, ServerError::NotReadOnly, "NotReadOnly"),
    (-120, ServerError::EphemeralOnLocalSession, "EphemeralOnLocalSession"),
    (-125, ServerError::QuotaExceeded, "QuotaExceeded"),
    (-127, ServerError::ThrottledOperation, "ThrottledOp"),
    (-122, ServerError::RequestTimeout, "RequestTimeout"),
    (-2, ServerError::RuntimeInconsistency, "RuntimeInconsistency"),
];

impl ServerError {
    /// The error with this code; `None` for 0, which is success.
    #[must_use]
    pub fn of_code(code: i32) -> Option<Self> {
        if code == 0 {
            return None;
        }
        let known = TABLE.iter().find(|(number, ..)| *number == code);
        Some(known.map_or(Self::Other(code), |(_, error, _)| *error))
    }

    /// What helps.
    #[must_use]
    pub fn remedy(self) -> Remedy {
        match self {
            Self::NoNode | Self::NodeExists | Self::NotEmpty => Remedy::Author,
            Self::Unimplemented | Self::RuntimeInconsistency => Remedy::Author,
            Self::SessionExpired | Self::UnknownSession => Remedy::NewSession,
            Self::SessionMoved | Self::NotReadOnly | Self::EphemeralOnLocalSession => {
                Remedy::Reconnect
            }
            Self::NoAuth | Self::InvalidAcl | Self::AuthFailed => Remedy::Configure,
            Self::QuotaExceeded | Self::ThrottledOperation | Self::RequestTimeout => Remedy::Wait,
            Self::Other(_) => Remedy::Wait,
        }
    }
}

/// ZooKeeper's name for it and its code.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Other(code) = self {
            return write!(f, "error {code}");
        }
        let known = TABLE.iter().find(|(_, error, _)| error == self);
        let (code, _, name) = known.expect("every other error is in the table");
        write!(f, "{name} ({code})")
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_error_and_is_shown_with_it() {
        for (code, error, name) in TABLE {
            assert_eq!(ServerError::of_code(code), Some(error));
            assert_eq!(error.to_string(), format!("{name} ({code})"));
        }
        assert_eq!(ServerError::of_code(0), None);
        assert_eq!(ServerError::of_code(-4), Some(ServerError::Other(-4)));
        assert_eq!(ServerError::Other(-4).to_string(), "error -4");
    }

    #[test]
    fn only_errors_that_another_session_would_not_have_end_the_session() {
        let ends = |(_, error, _): &&(i32, ServerError, &str)| error.remedy() == Remedy::NewSession;
        let names: Vec<&str> = TABLE.iter().filter(ends).map(|(.., name)| *name).collect();
        assert_eq!(names, ["SessionExpired", "UnknownSession"]);
    }
}
