//! What becomes of a call.

use crate::message::ServerError;
use crate::session::{Answer, Failure};
use redlatch_protocol::time::{SharedTime, Time};
use std::sync::Arc;

/// What has become of a call.
#[derive(Debug)]
pub enum Outcome {
    /// The lock is held.
    Granted(Grant),
    /// The lock is not held yet.
    Waiting {
        /// How many contenders are before it, if that is known.
        place: Option<usize>,
    },
    /// Others hold the lock or wait for it, and the caller does not wait.
    Contended,
    /// A server refuses what is needed, and nothing was created.
    Refused(ServerError),
    /// A request is longer than servers accept.
    TooLong,
    /// The session has as many znodes as is safe.
    NoRoom,
    /// There were no random numbers.
    NoEntropy,
    /// There is no such lock, or not any more.
    Gone,
    /// Of a release, or of a check.
    Voted(Vote),
    /// Of a question.
    Answered {
        /// The server that was asked last.
        server: usize,
        /// An answer to each request, as far as they came in time.
        answers: Vec<Option<Answer>>,
    },
}

impl Outcome {
    pub(super) fn of_refusal(failure: &Failure) -> Self {
        match failure {
            Failure::Server(error) => Self::Refused(*error),
            Failure::TooLong(_) => Self::TooLong,
            Failure::Unanswered | Failure::SessionLost => Self::Gone,
        }
    }
}

/// A lock that was granted.
#[derive(Clone, Debug)]
pub struct Grant {
    /// When it was known to be granted: its own time counts from here.
    pub at: Time,
    /// The transaction that created its place in the queue: the fencing token.
    pub created_by: i64,
    /// Which permit it is, if it is one.
    pub slot: Option<u32>,
    /// Until when its session lives.
    pub session: Arc<SharedTime>,
}

/// What the ensemble says about a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// It was held, and what was asked is done.
    Granted,
    /// It was not held any more.
    Refused,
    /// Nothing, in time.
    Failed,
}

/// Why a lock that was held is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its znode is gone, or its session.
    Gone,
    /// The validity of its session had passed.
    Expired,
}
