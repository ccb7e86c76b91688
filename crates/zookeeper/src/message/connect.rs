//! The first frame of a connection, and its answer. They have no header.

use crate::jute::{FrameWriter, JuteError, Reader};
use std::fmt;

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
