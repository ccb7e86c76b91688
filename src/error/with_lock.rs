//! How running something under a lock fails.

use super::{Error, LockLost};

/// Why a body did not run under its lock from beginning to end, with its value: for what is built
/// on such a body. Users get an [`Error`].
pub(crate) enum WithLockError<T> {
    /// The lock was not acquired, and the body was not called.
    NotAcquired(Error),
    /// The body returned a value, but the lock was lost before it did: another client may have
    /// worked at the same time.
    LostDuring {
        /// How the lock was lost.
        lost: LockLost,
        /// What the body returned.
        value: T,
    },
}

/// Drops the body's value.
impl<T> From<WithLockError<T>> for Error {
    fn from(error: WithLockError<T>) -> Self {
        match error {
            WithLockError::NotAcquired(error) => error,
            WithLockError::LostDuring { lost, .. } => lost.into(),
        }
    }
}
