//! The kinds of faults.

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// A client leaves before it has the lock.
    GiveUp,
    /// A client dies; from some point on, what it sent does not arrive.
    Death,
    /// A lease expires, also that of a living waiter.
    Lease,
    /// A reservation expires.
    Reservation,
    /// A token expires whose lock has ended.
    Token,
    /// A round takes too long, or the validity of a lock ends before its release.
    Timeout,
    /// A push is lost, repeated, or comes for nothing.
    Push,
    /// A connection is cut: replies are lost, and commands arrive late, twice, or never.
    Cut,
    /// A node loses its queue and its reservation, but no token.
    QueueLoss,
    /// A node restarts without its data.
    Restart,
    /// One node does not answer.
    Down,
    /// A waiter lives and does not claim, or too late, or reaches a minority only.
    Slow,
    /// A set has waited for its ttl.
    Patience,
}

/// All kinds of faults.
pub(crate) const KINDS: [Kind; 13] = [
    Kind::GiveUp,
    Kind::Death,
    Kind::Lease,
    Kind::Reservation,
    Kind::Token,
    Kind::Timeout,
    Kind::Push,
    Kind::Cut,
    Kind::QueueLoss,
    Kind::Restart,
    Kind::Down,
    Kind::Slow,
    Kind::Patience,
];
