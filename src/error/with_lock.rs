//! Errors of running something under a lock.

use super::{LockError, LockLost};
use std::error::Error;
use std::fmt;

/// Why [`with_lock`](crate::LockClient::with_lock) did not run its body under the lock from
/// beginning to end. `T` is what the body returns.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the body ran, or it did not")]
pub enum WithLockError<T> {
    /// The lock was not acquired, and the body was not called.
    NotAcquired(LockError),
    /// The body returned a value, but the lock was lost before it did: another client may have
    /// worked at the same time.
    LostDuring {
        /// How the lock was lost.
        lost: LockLost,
        /// What the body returned.
        value: T,
    },
}

impl<T> WithLockError<T> {
    /// The value of the body, even if the lock was lost while it ran: for work that may run twice.
    ///
    /// ```no_run
    /// # use redlatch::{LockClient, LockError, WithLockError};
    /// # use std::time::Duration;
    /// # fn refresh_the_cache() -> u32 { 1 }
    /// # fn example(client: &LockClient) -> Result<(), LockError> {
    /// let refreshed = client
    ///     .with_lock("cache", Duration::from_secs(10), |_lock| Ok(refresh_the_cache()))
    ///     .or_else(WithLockError::into_value)?;
    /// # let _: u32 = refreshed;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The body was not called, so there is no value.
    pub fn into_value(self) -> Result<T, LockError> {
        match self {
            Self::NotAcquired(error) => Err(error),
            Self::LostDuring { value, .. } => Ok(value),
        }
    }
}

impl<T> From<LockError> for WithLockError<T> {
    fn from(error: LockError) -> Self {
        Self::NotAcquired(error)
    }
}

/// Drops the body's value.
impl<T> From<WithLockError<T>> for super::Error {
    fn from(error: WithLockError<T>) -> Self {
        match error {
            WithLockError::NotAcquired(error) => error.into(),
            WithLockError::LostDuring { lost, .. } => lost.into(),
        }
    }
}

impl<T> fmt::Display for WithLockError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAcquired(error) => error.fmt(f),
            Self::LostDuring { lost, .. } => write!(f, "{lost}; the work under it ran to its end"),
        }
    }
}

impl<T> Error for WithLockError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotAcquired(error) => error.source(),
            Self::LostDuring { .. } => None,
        }
    }
}
