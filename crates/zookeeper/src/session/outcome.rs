//! What a session tells: answers to requests, and what happens by itself.

use crate::jute::JuteError;
use crate::message::{EnsembleError, EnsembleReply, RequestKind};
use std::sync::Arc;

/// What has happened.
#[derive(Debug)]
pub enum SessionEvent<T> {
    /// The request with this ticket was answered, or will never be.
    Answer(T, EnsembleAnswer),
    /// A watch has ended. Watches also end with their connection, and that is not told.
    Changed { path: Box<str> },
    /// A connection of the session is ready, the first or another one. No watch is left.
    Connected,
    /// No connection to a server could be made.
    Unreached,
    /// A znode of this session is not there any more, and the session did not delete it.
    Removed { path: Arc<str> },
    /// The ensemble has ended the session, and all its znodes are gone or about to be.
    SessionLost,
    /// The session was ended by [`end`](super::EnsembleSession::end), or because it had no znode
    /// for long.
    Ended,
}

/// The answer to one request.
#[derive(Debug)]
pub struct EnsembleAnswer {
    /// The transaction of a write that was carried out.
    pub zxid: i64,
    /// The body of the reply, which was decoded before.
    pub(super) result: Result<(RequestKind, Box<[u8]>), Failure>,
}

/// The reply to a request, or why there is none.
pub type Response<'a> = Result<EnsembleReply<'a>, &'a Failure>;

/// Why a request has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server has refused it.
    Server(EnsembleError),
    /// The connection was lost, or never made. It may be carried out, now or later.
    Unanswered,
    /// The session has ended, and what was to be done for it is done.
    SessionLost,
    /// It is longer than servers accept, and was not sent.
    TooLong(JuteError),
}

impl EnsembleAnswer {
    pub fn reply(&self) -> Response<'_> {
        let (kind, body) = self.result.as_ref()?;
        Ok(EnsembleReply::decode(*kind, body).expect("a reply was decoded before it is an answer"))
    }
}

/// Why a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It could not be made, or was lost.
    Disconnected,
    /// It took too long, or the server was silent.
    TimedOut,
    /// The server sent what cannot be understood.
    Protocol(JuteError),
    /// The server answered with this xid, which is not that of the oldest request.
    WrongXid(i32),
    /// The server has refused the client: the credentials, or the session.
    Refused(EnsembleError),
    /// Another server may carry out what this one has refused.
    Moved(EnsembleError),
    /// The ensemble does not know the session any more.
    SessionGone,
}
