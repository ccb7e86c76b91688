//! What a contender wants done, and what has become of it.

use crate::clock::Time;
use crate::zookeeper::message::{Request, ServerError};
use crate::zookeeper::session::Failure;
use std::sync::Arc;

/// Identifies a request of one contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(pub(super) u32);

/// What is to be done for a contender.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Call [`Contender::begin`](super::Contender::begin).
    Begin,
    /// Send this request, and give its answer to
    /// [`Contender::answered`](super::Contender::answered).
    Send(Serial, Request),
    /// The session has this znode: see [`Session::keep`](crate::zookeeper::session::Session::keep).
    Keep(Arc<str>),
    /// Nothing more before a pause, such as that of the session between connections: a server has
    /// refused what may be possible later.
    Pause,
    /// Delete this znode and do not forget it: see
    /// [`Session::delete`](crate::zookeeper::session::Session::delete). With a serial, give the
    /// answer to [`Contender::answered`](super::Contender::answered).
    Delete(Option<Serial>, Arc<str>),
    /// The lock is held.
    Held(Held),
    /// Another contender has the lock, and this one does not wait.
    Contended,
    /// A server refuses what is needed, and nothing was created.
    Refused(Failure),
    /// The znode of a lock that was held is gone, or the session is.
    Lost,
    /// The contender was given up, and has left nothing behind.
    Left(Left),
}

/// A lock that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The path of the contender's znode.
    pub path: Arc<str>,
    /// The transaction that created it: the fencing token.
    pub created_by: i64,
    /// When its creation began, before the first byte was written.
    pub since: Time,
}

/// What became of the znode of a contender that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Left {
    /// It was deleted.
    Deleted,
    /// It was not there any more, or its session has ended.
    WasGone,
    /// There was none.
    Nothing,
    /// A server refuses to delete it. It ends with the session.
    Refused(ServerError),
}
