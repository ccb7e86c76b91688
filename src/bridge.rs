//! Bridges from events to the crates `tracing` and `metrics`, each behind the feature of its name.
//!
//! Each is a function that is called with every event. Its `match` has no arm for events in
//! general, so it does not compile until a new kind of event is bridged too. The page
//! [`guide::monitoring`](crate::guide::monitoring) has the levels, fields and names as tables, and
//! the tests hold these against the code.

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

#[cfg(feature = "metrics")]
pub(crate) use metrics::{describe_metrics, measure};
#[cfg(feature = "tracing")]
pub(crate) use tracing::trace;

#[cfg(any(feature = "tracing", feature = "metrics"))]
mod words {
    //! Results as words, for fields and labels.

    #[cfg(feature = "metrics")]
    use crate::error::Error;
    use crate::error::LossReason;
    use crate::event::Released;

    pub(super) fn released(outcome: Option<Released>) -> &'static str {
        match outcome {
            Some(Released::InTime) => "in_time",
            Some(Released::TooLate) => "too_late",
            None => "unknown",
        }
    }

    pub(super) fn lost(reason: LossReason) -> &'static str {
        match reason {
            LossReason::Expired => "expired",
            LossReason::Gone => "gone",
            LossReason::OtherProcess => "other_process",
        }
    }

    /// Why a call failed. The rarer reasons are one word.
    #[cfg(feature = "metrics")]
    pub(super) fn failed(error: &Error) -> &'static str {
        match error {
            Error::NoQuorum(_) => "no_quorum",
            Error::TooSlow { .. } => "too_slow",
            Error::SameServer { .. } => "same_server",
            Error::Cancelled => "cancelled",
            Error::Lost(_) => "lost",
            _ => "other",
        }
    }
}

#[cfg(test)]
mod test_events;
