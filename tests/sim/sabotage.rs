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
    /// A lock that is handed over is believed to begin anew, without asking the nodes.
    HandoffAssumed,
    /// The nodes answer twice.
    AnsweredTwice,
    /// The nodes say that they have ended a connection, and have not.
    KillIgnored,
    /// The nodes set what is left of a lock's life, be it more or less than before.
    ExtensionShortens,
    /// The nodes remove by force whatever is there, seen or not.
    UnseenRemoved,
    /// The nodes forget a lock's counter when the lock is given back.
    CounterForgotten,
    /// Before a request is written nothing is read but ends of connections.
    LooksAtEndsOnly,
    /// Nobody notices that two nodes are one server.
    TwinsUnrecognised,
    /// Whoever fails once never tries again.
    NeverTriesAgain,
    /// Others that hold the lock are more than the client can bear.
    PanicsOnRefusal,
}

/// Every mistake, and the promise that it breaks.
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
