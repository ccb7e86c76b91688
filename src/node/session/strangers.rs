//! Servers that are no Redis, recognised when their bytes are no valid RESP.

use super::{Session, State};
use crate::node::node_error::NodeError;
use crate::node::other_protocol::OtherProtocol;
use crate::resp::ProtocolError;

impl Session {
    /// Could these be the first bytes of another protocol, too few to recognise it?
    pub(super) fn may_be_foreign(&self, bytes: &[u8]) -> bool {
        match self.state {
            State::Ready => OtherProtocol::may_begin_tls(bytes),
            _ => OtherProtocol::may_begin(bytes),
        }
    }

    /// The error for bytes that are no valid RESP.
    pub(super) fn decode_error(&self, bytes: &[u8], error: ProtocolError) -> NodeError {
        match OtherProtocol::recognise(bytes) {
            // A proxy that terminates TLS may send an alert at any time.
            Some(OtherProtocol::Tls) => NodeError::NotRedis(OtherProtocol::Tls),
            // A peer that has spoken RESP is no web server.
            Some(other) if !matches!(self.state, State::Ready) => NodeError::NotRedis(other),
            _ if self.is_unknown_protocol(bytes, &error) => {
                NodeError::NotRedis(OtherProtocol::Unknown)
            }
            _ => NodeError::Protocol(error),
        }
    }

    /// Is this error about the first byte that the server sent, which begins no RESP value?
    fn is_unknown_protocol(&self, bytes: &[u8], error: &ProtocolError) -> bool {
        let State::Greeting { handshake, .. } = &self.state else { return false };
        let ProtocolError::UnknownType(byte) = error else { return false };
        !handshake.has_replies() && bytes.first() == Some(byte)
    }
}
