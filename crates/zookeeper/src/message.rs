//! What a client and a server say to each other: requests to bytes, bytes to replies.
//!
//! ```text
//!   client                                        server
//!   ConnectRequest  ───────────────────────────▶
//!                   ◀───────────────────────────  ConnectReply
//!   Request, xid    ───────────────────────────▶
//!                   ◀───────────────────────────  Incoming::Reply, the same xid
//!                   ◀───────────────────────────  Incoming::Event, when it happens
//! ```
//!
//! Replies come in the order of the requests. Their bodies do not say of which kind they are, so a
//! [`RequestKind`] is kept for each request, and [`Reply::decode`] needs it.
//!
//! | request | type | reply body |
//! |---|---|---|
//! | [`Request::Create`] | 15, 19 for a container | path, stat |
//! | [`Request::PlainCreate`] | 1 | path |
//! | [`Request::Delete`] | 2 | none |
//! | [`Request::Exists`] | 3 | stat |
//! | [`Request::GetData`] | 4 | data, stat |
//! | [`Request::Sync`] | 9 | path |
//! | [`Request::GetChildren`] | 12 | names, stat |
//! | [`Request::Multi`] | 14 | a result for each operation |
//! | [`Request::Auth`] | 100 | none |
//! | [`Request::CloseSession`] | -11 | none |
//!
//! Ping is not among them: what it proves is too little (see the module `validity`).

mod reply;
mod request;
mod server_error;

pub use reply::{
    EventKind, Incoming, Names, OperationResult, Reply, ReplyHeader, Results, Stat, WatchEvent,
};
pub use request::{AUTH_XID, Acl, Create, CreateKind, Operation, Request, RequestKind};
pub use server_error::{Remedy, ServerError};

use crate::jute::{FrameWriter, JuteError, Reader};
use std::fmt;

/// The numbers of the requests' types.
mod opcode {
    pub(super) const CREATE: i32 = 1;
    pub(super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const SYNC: i32 = 9;
    pub(super) const GET_CHILDREN2: i32 = 12;
    pub(super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const AUTH: i32 = 100;
    pub(super) const CLOSE_SESSION: i32 = -11;
    /// In the header of a result in a multi: the operation failed. Also in the last header.
    pub(super) const ERROR: i32 = -1;
}

// The first frame of a connection, and its answer. They have no header.

/// The bytes of a session's password.
pub const PASSWORD_LENGTH: usize = 16;

/// The only version of the protocol.
const PROTOCOL_VERSION: i32 = 0;

/// Begins a session, or continues one on a new connection.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The largest zxid of any reply so far. A server that is behind it closes the connection.
    pub last_zxid: i64,
    /// The wanted timeout of the session, in milliseconds. The server has the last word.
    pub timeout_ms: i32,
    /// The session to continue; 0 for a new one.
    pub session: i64,
    /// The password of that session; zeros for a new one.
    pub password: [u8; PASSWORD_LENGTH],
}

impl ConnectRequest {
    /// Asks for a new session with this timeout.
    pub fn new(timeout_ms: i32, last_zxid: i64) -> Self {
        Self { last_zxid, timeout_ms, session: 0, password: [0; PASSWORD_LENGTH] }
    }

    /// Appends the request to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = FrameWriter::begin(out);
        frame
            .int(PROTOCOL_VERSION)
            .long(self.last_zxid)
            .int(self.timeout_ms)
            .long(self.session)
            .buffer(&self.password)
            // Not content with a server that may only read.
            .boolean(false);
        frame.finish().expect("45 bytes are below the limit");
    }
}

/// Without the password: who has it can end the session.
impl fmt::Debug for ConnectRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectRequest")
            .field("last_zxid", &self.last_zxid)
            .field("timeout_ms", &self.timeout_ms)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// The answer to a [`ConnectRequest`].
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectReply {
    /// The granted timeout of the session, in milliseconds. Zero or less: there is no such session.
    pub timeout_ms: i32,
    pub session: i64,
    /// The password with which it can be continued.
    pub password: [u8; PASSWORD_LENGTH],
}

impl ConnectReply {
    /// Reads a frame. What later versions append to it is ignored, as `readOnly` was by clients
    /// from before 3.4: nothing else follows in this frame, so nothing can be misread.
    ///
    /// # Errors
    ///
    /// The frame is too short, or the password has another length than 16 bytes.
    pub fn decode(frame: &[u8]) -> Result<Self, JuteError> {
        let mut reader = Reader::new(frame);
        let _version = reader.int()?;
        let timeout_ms = reader.int()?;
        let session = reader.long()?;
        let password = reader.buffer()?.unwrap_or_default();
        let password = password.try_into().map_err(|_| JuteError::Truncated)?;
        Ok(Self { timeout_ms, session, password })
    }
}

/// Without the password: who has it can end the session.
impl fmt::Debug for ConnectReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectReply")
            .field("timeout_ms", &self.timeout_ms)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
