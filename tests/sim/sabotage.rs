//! Mistakes that the checker must find: what a client would do if a rule of the algorithm were
//! missing. They live in the simulated client and node, never in the library.

use crate::checker::Invariant;

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// All attempts of a thread use one token.
    TokenReused,
    /// A failed attempt takes nothing back.
    UndoForgotten,
    /// A failed attempt takes back only what it knows to have.
    UndoOnlyWhereGranted,
    /// Validity counts from the reply instead of from before the request.
    ValidityFromReply,
    /// Clocks are believed to agree, and expiry to be exact.
    DriftIgnored,
    /// One node less than a majority is enough.
    QuorumOneLess,
    /// A vote for an earlier attempt counts for this one.
    StaleVotes,
    /// A lock whose extension failed is believed to be extended.
    ExtensionAssumed,
    /// The clock does not count the time a machine is suspended.
    ClockStopsInSuspend,
    /// Rounds have no end but their answers.
    TimeoutIgnored,
    /// The nodes delete without comparing.
    ReleaseWithoutComparing,
}

/// Every mistake, and the promise that it breaks.
pub(crate) const ALL: [(Sabotage, Invariant); 11] = [
    (Sabotage::TokenReused, Invariant::MutualExclusion),
    (Sabotage::UndoForgotten, Invariant::Liveness),
    (Sabotage::UndoOnlyWhereGranted, Invariant::Liveness),
    (Sabotage::ValidityFromReply, Invariant::MutualExclusion),
    (Sabotage::DriftIgnored, Invariant::MutualExclusion),
    (Sabotage::QuorumOneLess, Invariant::MutualExclusion),
    (Sabotage::StaleVotes, Invariant::MutualExclusion),
    (Sabotage::ExtensionAssumed, Invariant::MutualExclusion),
    (Sabotage::ClockStopsInSuspend, Invariant::MutualExclusion),
    (Sabotage::TimeoutIgnored, Invariant::Deadline),
    (Sabotage::ReleaseWithoutComparing, Invariant::Ownership),
];
