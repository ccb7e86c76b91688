//! Errors of locks that another process resumes.

use std::error::Error;
use std::fmt;

/// A text is no [`LockToken`](crate::LockToken). It is not shown: it may be a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to say about it")]
pub struct LockTokenError;

impl fmt::Display for LockTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is no token of a lock: that is one word, which begins with redlatch1")
    }
}

impl Error for LockTokenError {}

/// Why another process cannot resume a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotResumable {
    /// On ZooKeeper a lock belongs to the session of its client, and ends with it.
    Session,
    /// Other threads of this client have the same [share](crate::LockRequest::shared), which
    /// readers of one client take together. A reader whose share is to be given away has an
    /// [owner](crate::LockRequest::owner) of its own, and so a share of its own.
    SharedByThreads,
    /// The token is that of a lock with other names, or of more or fewer of them, or it was damaged
    /// on its way. The lock is as it was.
    OtherNames,
}

impl fmt::Display for NotResumable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => {
                "no other process can resume a lock on ZooKeeper: it ends with the session of its \
                 client"
            }
            Self::SharedByThreads => {
                "other threads of this client have the same share: a reader with an owner of its \
                 own has one that can be given away"
            }
            Self::OtherNames => {
                "the token is not that of this lock: it was given for other names, or for more or \
                 fewer, or it is damaged"
            }
        })
    }
}

impl Error for NotResumable {}
