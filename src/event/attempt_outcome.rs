//! The outcome of an attempt, which an event reports.

/// The outcome of one attempt to acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// A majority granted the lock, in time.
    Granted,
    /// A majority answered, and other clients hold the lock or wait for it.
    Contended,
    /// Too few nodes answered to know whether the lock is free, or too many are in quarantine.
    NoQuorum,
    /// A majority granted the lock, but with too little validity left.
    TooSlow,
    /// Two of the nodes are one server.
    SameServer,
}

impl AttemptOutcome {
    /// The outcome in a word that can be a label of a metric: `granted`, `no_quorum`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Contended => "contended",
            Self::NoQuorum => "no_quorum",
            Self::TooSlow => "too_slow",
            Self::SameServer => "same_server",
        }
    }
}
