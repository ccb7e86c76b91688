//! How a lock was released.

/// How a lock was released, as [events](crate::Event::Released) say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it was in time or it was not")]
pub enum Released {
    /// The lock was held to the end: a majority of nodes still had its key, or, if it passed to
    /// another thread of this client, its validity had not passed.
    InTime,
    /// The lock's validity had passed, or no majority of nodes still had its key: another client
    /// may have held the lock while this one still worked.
    TooLate,
}

impl Released {
    /// For logs and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InTime => "in_time",
            Self::TooLate => "too_late",
        }
    }
}
