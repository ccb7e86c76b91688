//! Mistakes that the checker must find: clients or nodes without one rule of the algorithm. They
//! are made in the simulated client and node, never in the library.

use crate::checker::Invariant;

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// All attempts of a thread use one token.
    TokenReused,
    /// A failed attempt removes no keys.
    UndoForgotten,
    /// A failed attempt removes only the keys that it knows to be set.
    UndoOnlyWhereGranted,
    /// Validity counts from the reply instead of from before the request.
    ValidityFromReply,
    /// Drift and the resolution of expiry are ignored.
    DriftIgnored,
    /// One node less than a majority suffices.
    QuorumOneLess,
    /// A vote for an earlier attempt counts for this one.
    StaleVotes,
    /// A failed extension counts as confirmed.
    ExtensionAssumed,
    /// The clock does not count the time a machine is suspended.
    ClockStopsInSuspend,
    /// Rounds have no deadline.
    TimeoutIgnored,
    /// The nodes delete without comparing the token.
    ReleaseWithoutComparing,
    /// After a handoff a lock counts as new, without a round.
    HandoffAssumed,
    /// The nodes send each reply twice.
    AnsweredTwice,
    /// The nodes report that they have ended a connection, but do not end it.
    KillIgnored,
    /// The nodes set a lock's ttl even if that shortens it.
    ExtensionShortens,
    /// A forced release removes any value, inspected or not.
    UnseenRemoved,
    /// The nodes remove a lock's counter when the lock is released.
    CounterForgotten,
    /// Before a request is written, only ends of connections are read.
    LooksAtEndsOnly,
    /// Two nodes that are one server are not detected.
    TwinsUnrecognised,
    /// A thread whose attempt failed never retries.
    NeverTriesAgain,
    /// A client panics when another client holds the lock.
    PanicsOnRefusal,
}

/// All mistakes, and the guarantees that they break.
pub(crate) const ALL: [(Sabotage, Invariant); 26] = [
    (Sabotage::TokenReused, Invariant::MutualExclusion),
    (Sabotage::UndoForgotten, Invariant::Residue),
    (Sabotage::UndoOnlyWhereGranted, Invariant::Residue),
    (Sabotage::ValidityFromReply, Invariant::MutualExclusion),
    (Sabotage::DriftIgnored, Invariant::MutualExclusion),
    (Sabotage::QuorumOneLess, Invariant::MutualExclusion),
    (Sabotage::StaleVotes, Invariant::MutualExclusion),
    (Sabotage::ExtensionAssumed, Invariant::MutualExclusion),
    (Sabotage::ClockStopsInSuspend, Invariant::MutualExclusion),
    (Sabotage::TimeoutIgnored, Invariant::Deadline),
    (Sabotage::ReleaseWithoutComparing, Invariant::Ownership),
    (Sabotage::HandoffAssumed, Invariant::MutualExclusion),
    (Sabotage::KillIgnored, Invariant::Residue),
    (Sabotage::ExtensionShortens, Invariant::MutualExclusion),
    (Sabotage::ExtensionShortens, Invariant::Validity),
    (Sabotage::LooksAtEndsOnly, Invariant::MutualExclusion),
    (Sabotage::UnseenRemoved, Invariant::Ownership),
    (Sabotage::CounterForgotten, Invariant::Fencing),
    (Sabotage::TwinsUnrecognised, Invariant::Validity),
    (Sabotage::ExtensionAssumed, Invariant::Validity),
    (Sabotage::QuorumOneLess, Invariant::Validity),
    (Sabotage::AnsweredTwice, Invariant::Attribution),
    (Sabotage::StaleVotes, Invariant::Attribution),
    (Sabotage::TimeoutIgnored, Invariant::Resources),
    (Sabotage::NeverTriesAgain, Invariant::Liveness),
    (Sabotage::PanicsOnRefusal, Invariant::Panic),
];
