//! Errors of jobs that run once in each period.

use super::Error;
use std::fmt;
use std::time::Duration;

/// What only [`OncePer::run`](crate::OncePer::run) has to say, besides the other errors of a lock
/// and, with [`exact`](crate::OncePer::exact), of a register.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OncePerError {
    /// There cannot be such a period: it is not longer than the tolerance.
    Period {
        /// The period.
        period: Duration,
        /// The tolerance.
        tolerance: Duration,
    },
    /// The nodes did not tell the time, and the job has not run.
    Clocks(ClocksError),
    /// The job ran and succeeded, but it was not noted, for this reason. As failed runs are [tried
    /// again](crate::OncePer::retry_failed), it may run again in this period.
    NotRecorded(Box<Error>),
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

impl fmt::Display for OncePerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period { period, tolerance } => {
                write!(f, "a period of {period:?} is not longer than its tolerance: {tolerance:?}")
            }
            Self::Clocks(error) => error.fmt(f),
            Self::NotRecorded(error) => {
                write!(f, "the job ran, and may run again in this period: {error}")
            }
        }
    }
}

impl std::error::Error for OncePerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotRecorded(error) => error.source(),
            Self::Period { .. } | Self::Clocks(_) => None,
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
