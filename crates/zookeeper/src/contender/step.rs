//! What a contender wants done, and what has become of it.

use crate::message::{Request, ServerError};
use crate::session::Failure;
use redlatch_protocol::time::Time;
use std::sync::Arc;

/// Identifies a request of one contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(pub(super) u32);

/// What is to be done for a contender.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Call [`Contender::begin`](super::Contender::begin).
    Begin,
    /// Send this request, and give its answer to
    /// [`Contender::answered`](super::Contender::answered).
    Send(Serial, Request),
    /// The session has this znode: see [`Session::keep`](crate::session::Session::keep).
    Keep(Arc<str>),
    /// A transaction has deleted this znode, so it need not be kept any more: see
    /// [`Session::forget`](crate::session::Session::forget).
    Forget(Arc<str>),
    /// Nothing more before a pause, such as that of the session between connections: a server has
    /// refused what may be possible later.
    Pause,
    /// Delete this znode and do not forget it: see
    /// [`Session::delete`](crate::session::Session::delete). With a serial, give the
    /// answer to [`Contender::answered`](super::Contender::answered).
    Delete(Option<Serial>, Arc<str>),
    /// The lock is held.
    Held(Held),
    /// Others have the lock or wait for it, and this contender does not wait.
    Contended,
    /// A server refuses what is needed. Nothing was created, or it is being deleted.
    Refused(Failure),
    /// A znode of a lock that was held is gone, or the session is.
    Lost,
    /// The contender was given up, and has left nothing behind.
    Left(Left),
}

/// A lock that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The paths of the znodes that hold it: one, or one for each lock of a set.
    pub paths: Arc<[Arc<str>]>,
    /// The transaction by which the contender joined the queue: the fencing token.
    pub created_by: i64,
    /// When that began, before the first byte was written.
    pub since: Time,
    /// The number of a permit, from 0.
    pub slot: Option<u32>,
}

impl Held {
    /// The path of its znode; of a set the first one.
    pub fn path(&self) -> &Arc<str> {
        &self.paths[0]
    }
}

/// What became of the znodes of a contender that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// They were deleted.
    Deleted,
    /// One was not there any more, or their session has ended.
    WasGone,
    /// There were none.
    Nothing,
    /// A server refuses to delete one. It ends with the session.
    Refused(ServerError),
}
