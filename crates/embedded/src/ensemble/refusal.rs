//! Why a request is refused.

use redlatch_zookeeper::jute::JuteError;

/// The errors of this server, with their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another operation of the same transaction has failed.
    RuntimeInconsistency = -2,
    /// The bytes of the request are no request of its type.
    Marshalling = -5,
    Unimplemented = -6,
    BadArguments = -8,
    NoNode = -101,
    NoAuth = -102,
    BadVersion = -103,
    NoChildrenForEphemerals = -108,
    NodeExists = -110,
    NotEmpty = -111,
    InvalidAcl = -114,
    AuthFailed = -115,
}

impl Refusal {
    pub(super) fn code(self) -> i32 {
        self as i32
    }
}

impl From<JuteError> for Refusal {
    fn from(_: JuteError) -> Self {
        Self::Marshalling
    }
}
