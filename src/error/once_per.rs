//! Errors of jobs that run once in each period.

use super::{Error, LockLost, RegisterError};
use std::fmt;
use std::time::Duration;

/// Why [`OncePer::run`](crate::OncePer::run) did not run its job, or not from beginning to end. `T`
/// is what the job returns.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OncePerError<T> {
    /// There cannot be such a period: it is not longer than the tolerance.
    Period {
        /// The period.
        period: Duration,
        /// The tolerance.
        tolerance: Duration,
    },
    /// The register with the last run could not be read or changed, and the job has not run.
    Register(RegisterError),
    /// The nodes did not tell the time, and the job has not run.
    Clocks(ClocksError),
    /// The lock was not acquired, or the one that [remembers the last run](crate::OncePer) could
    /// not be read or set, and the job has not run.
    NotAcquired(Error),
    /// The job returned a value, but the lock was lost before it did: the next run may have begun.
    LostDuring {
        /// How the lock was lost.
        lost: LockLost,
        /// What the job returned.
        value: T,
    },
    /// The job returned a value, but it was not noted that it has ended well. As failed runs are
    /// [tried again](crate::OncePer::retry_failed), it may run again in this period.
    NotRecorded {
        /// Why not.
        error: RegisterError,
        /// What the job returned.
        value: T,
    },
    /// The same where a [lock](crate::OncePer) remembers the last run.
    LockNotRecorded {
        /// Why not.
        error: Error,
        /// What the job returned.
        value: T,
    },
}

/// Why the time is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClocksError {
    /// Fewer nodes than a majority told it: the user may not run `TIME` there, or they did not
    /// answer.
    TooFew {
        /// How many did.
        answered: usize,
        /// How many are needed.
        needed: usize,
    },
    /// The nodes that told it differ by more than a tenth of the period, and as others did not
    /// answer, it is not known who is right.
    Differ {
        /// By how much.
        by: Duration,
    },
}

/// What is said of a run that was not recorded.
const RAN: &str = "the job ran, and may run again in this period";

impl<T> From<RegisterError> for OncePerError<T> {
    fn from(error: RegisterError) -> Self {
        Self::Register(error)
    }
}

impl<T> From<Error> for OncePerError<T> {
    fn from(error: Error) -> Self {
        Self::NotAcquired(error)
    }
}

impl<T> From<ClocksError> for OncePerError<T> {
    fn from(error: ClocksError) -> Self {
        Self::Clocks(error)
    }
}

/// Drops the job's value.
impl<T> From<OncePerError<T>> for Error {
    fn from(error: OncePerError<T>) -> Self {
        let error = match error {
            OncePerError::Period { period, tolerance } => {
                OncePerError::Period { period, tolerance }
            }
            OncePerError::Clocks(error) => OncePerError::Clocks(error),
            OncePerError::Register(error) | OncePerError::NotRecorded { error, .. } => {
                return error.into();
            }
            OncePerError::NotAcquired(error) | OncePerError::LockNotRecorded { error, .. } => {
                return error;
            }
            OncePerError::LostDuring { lost, .. } => return lost.into(),
        };
        Self::OncePer(Box::new(error))
    }
}

impl<T> fmt::Display for OncePerError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period { period, tolerance } => {
                write!(f, "a period of {period:?} is not longer than its tolerance: {tolerance:?}")
            }
            Self::Register(error) => write!(f, "a register remembers the last run: {error}"),
            Self::Clocks(error) => error.fmt(f),
            Self::NotAcquired(error) => error.fmt(f),
            Self::LostDuring { lost, .. } => write!(f, "{lost}; the work under it ran to its end"),
            Self::NotRecorded { error, .. } => write!(f, "{RAN}: {error}"),
            Self::LockNotRecorded { error, .. } => write!(f, "{RAN}: {error}"),
        }
    }
}

impl<T> std::error::Error for OncePerError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Register(error) | Self::NotRecorded { error, .. } => error.source(),
            Self::NotAcquired(error) | Self::LockNotRecorded { error, .. } => error.source(),
            _ => None,
        }
    }
}

impl fmt::Display for ClocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { answered, needed } => write!(
                f,
                "{answered} of the nodes told the time, and {needed} are needed: the user needs \
                 the rights +info and +time"
            ),
            Self::Differ { by } => write!(
                f,
                "the clocks of nodes differ by {by:?}, and too few answered to know which is right"
            ),
        }
    }
}

impl std::error::Error for ClocksError {}
