//! What a frame from the server is: the reply to a request, or news of a watch.

use super::server_error::ServerError;
use crate::jute::{JuteError, Reader};

/// The xid of watch events.
const EVENT_XID: i32 = -1;

/// A frame behind the connect reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// The reply to the oldest request without one.
    Reply {
        header: ReplyHeader,
        /// What follows the header, for [`Reply::decode`](super::Reply::decode). There is nothing
        /// to read if the header has an error.
        body: &'a [u8],
    },
    /// A watch has ended, because what it waited for has happened.
    Event(WatchEvent<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The xid of the request.
    pub xid: i32,
    /// For a write its transaction; otherwise the last one that the server knew.
    pub zxid: i64,
    /// Why it was not carried out.
    pub error: Option<ServerError>,
}

/// A watch that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchEvent<'a> {
    /// What happened.
    pub kind: EventKind,
    pub path: &'a str,
}

/// What happened to a watched znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Created,
    Deleted,
    DataChanged,
    /// A child was created or deleted.
    ChildrenChanged,
    /// Something else. The watch has ended all the same.
    Other(i32),
}

impl<'a> Incoming<'a> {
    /// Reads the header of a frame, and all of an event.
    ///
    /// # Errors
    ///
    /// The frame is too short, or has values that cannot be.
    pub fn decode(frame: &'a [u8]) -> Result<Self, JuteError> {
        let mut reader = Reader::new(frame);
        let xid = reader.int()?;
        let zxid = reader.long()?;
        let error = ServerError::of_code(reader.int()?);
        if xid != EVENT_XID {
            let header = ReplyHeader { xid, zxid, error };
            return Ok(Self::Reply { header, body: reader.rest() });
        }
        let kind = match reader.int()? {
            1 => EventKind::Created,
            2 => EventKind::Deleted,
            3 => EventKind::DataChanged,
            4 => EventKind::ChildrenChanged,
            other => EventKind::Other(other),
        };
        // The state of the connection, which is "connected": otherwise no event would arrive.
        let _state = reader.int()?;
        let path = reader.text()?;
        reader.finish()?;
        Ok(Self::Event(WatchEvent { kind, path }))
    }
}
