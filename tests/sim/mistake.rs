//! Mistakes that the checker must find: clients or nodes without one rule of the algorithm. They
//! are made in the simulated client and node, never in the library.

use crate::checker::Invariant;

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
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
    /// A client takes the lock in its turn, however few nodes grant it.
    TurnAssumed,
    /// The nodes release a lock without a look at its queue.
    QueueForgotten,
    /// The nodes tell no waiter that they reserve the lock for it.
    PushesLost,
    /// The nodes give an exclusive lock although there are shares of it.
    SharesIgnored,
    /// The nodes give a permit that another client has.
    PermitsReused,
    /// The nodes do not tell readers the counter.
    ReadersUncounted,
    /// The nodes give readers a share although somebody else waits.
    ReadersPass,
    /// The same for permits.
    PermitsPass,
    /// The nodes let one reader in at a time.
    ReadersRefused,
    /// A client panics when another client holds the lock.
    PanicsOnRefusal,
    /// Nodes that have lost their keys vote on registers.
    ForgetfulNodeVotes,
    /// Nodes that are back with an older state get their vote as they are.
    OlderStateTrusted,
    /// A node that is refilled gets its vote in the epoch that there is.
    EpochKept,
    /// A node that is refilled gets what one other has.
    CopiedFromOne,
    /// The nodes accept a value although they have promised a higher ballot.
    AcceptedBelowPromise,
    /// The nodes remove the keys of a register and forget what they had promised.
    FloorForgotten,
    /// A change whose answer was lost is made again without a look.
    AppliedAgain,
    /// The keys of a register are removed when a majority has accepted its deletion.
    CollectedAtMajority,
    /// A read returns the newest value of a majority that disagrees.
    NewestRead,
    /// A side that has voted and waits for too long rolls back, without a look at the record.
    RolledBackAlone,
    /// Who has all sides of a transaction votes for all before the last one is prepared.
    VotedForAll,
    /// An abort does not look whether the record is committed.
    CommittedAborted,
    /// The first side that has finished removes the record.
    RecordRemovedEarly,
    /// Votes count in whichever reign they were given.
    ReignUnchecked,
    /// Grants of a new reign count at once.
    ReignNotAwaited,
    /// A replaced master is believed to stop at once.
    NoBound,
    /// Locks are reclaimed at once.
    ReclaimedAtOnce,
    /// Votes count that no replica has acknowledged, of a master that may have been replaced long
    /// ago.
    NothingAcknowledged,
    /// Servers that were copied anew, or started a moment ago, prove that nothing is missing.
    CopiesAreWitnesses,
    /// Keys live no longer than locks, although the clocks of a group's servers differ.
    SkewIgnored,
}

/// Those about replicated groups. Each gives a lock to two clients.
pub(crate) const OF_GROUPS: [Mistake; 7] = [
    Mistake::ReignUnchecked,
    Mistake::ReignNotAwaited,
    Mistake::NoBound,
    Mistake::ReclaimedAtOnce,
    Mistake::NothingAcknowledged,
    Mistake::CopiesAreWitnesses,
    Mistake::SkewIgnored,
];

/// Those about transactions.
pub(crate) const OF_TRANSACTIONS: [Mistake; 4] = [
    Mistake::RolledBackAlone,
    Mistake::VotedForAll,
    Mistake::CommittedAborted,
    Mistake::RecordRemovedEarly,
];

/// Those about registers. Each breaks their order.
pub(crate) const OF_REGISTERS: [Mistake; 9] = [
    Mistake::ForgetfulNodeVotes,
    Mistake::OlderStateTrusted,
    Mistake::EpochKept,
    Mistake::CopiedFromOne,
    Mistake::AcceptedBelowPromise,
    Mistake::FloorForgotten,
    Mistake::AppliedAgain,
    Mistake::CollectedAtMajority,
    Mistake::NewestRead,
];

/// All mistakes about locks, and the guarantees that they break.
pub(crate) const ALL: [(Mistake, Invariant); 36] = [
    (Mistake::TokenReused, Invariant::MutualExclusion),
    (Mistake::UndoForgotten, Invariant::Residue),
    (Mistake::UndoOnlyWhereGranted, Invariant::Residue),
    (Mistake::ValidityFromReply, Invariant::MutualExclusion),
    (Mistake::DriftIgnored, Invariant::MutualExclusion),
    (Mistake::QuorumOneLess, Invariant::MutualExclusion),
    (Mistake::StaleVotes, Invariant::MutualExclusion),
    (Mistake::ExtensionAssumed, Invariant::MutualExclusion),
    (Mistake::ClockStopsInSuspend, Invariant::MutualExclusion),
    (Mistake::TimeoutIgnored, Invariant::Deadline),
    (Mistake::ReleaseWithoutComparing, Invariant::Ownership),
    (Mistake::HandoffAssumed, Invariant::MutualExclusion),
    (Mistake::KillIgnored, Invariant::Residue),
    (Mistake::ExtensionShortens, Invariant::MutualExclusion),
    (Mistake::ExtensionShortens, Invariant::Validity),
    (Mistake::LooksAtEndsOnly, Invariant::MutualExclusion),
    (Mistake::UnseenRemoved, Invariant::Ownership),
    (Mistake::CounterForgotten, Invariant::Fencing),
    (Mistake::TwinsUnrecognised, Invariant::Validity),
    (Mistake::ExtensionAssumed, Invariant::Validity),
    (Mistake::QuorumOneLess, Invariant::Validity),
    (Mistake::AnsweredTwice, Invariant::Attribution),
    (Mistake::StaleVotes, Invariant::Attribution),
    (Mistake::TimeoutIgnored, Invariant::Resources),
    (Mistake::NeverTriesAgain, Invariant::Liveness),
    (Mistake::TurnAssumed, Invariant::MutualExclusion),
    (Mistake::QueueForgotten, Invariant::Order),
    (Mistake::QueueForgotten, Invariant::WakeUp),
    (Mistake::PushesLost, Invariant::WakeUp),
    (Mistake::SharesIgnored, Invariant::MutualExclusion),
    (Mistake::PermitsReused, Invariant::MutualExclusion),
    (Mistake::ReadersUncounted, Invariant::Fencing),
    (Mistake::ReadersPass, Invariant::Order),
    (Mistake::PermitsPass, Invariant::Order),
    (Mistake::ReadersRefused, Invariant::Sharing),
    (Mistake::PanicsOnRefusal, Invariant::Panic),
];

impl Mistake {
    /// The history with which to begin: those before it took seconds, and did not show the mistake.
    pub(crate) fn first_shown(self) -> u64 {
        match self {
            Self::EpochKept => 1_460,
            Self::LooksAtEndsOnly => 155,
            Self::CopiedFromOne => 120,
            Self::ForgetfulNodeVotes => 110,
            Self::OlderStateTrusted => 100,
            Self::TwinsUnrecognised | Self::UndoForgotten => 90,
            Self::UndoOnlyWhereGranted
            | Self::ValidityFromReply
            | Self::RolledBackAlone
            | Self::CommittedAborted => 60,
            Self::CopiesAreWitnesses => 50,
            Self::DriftIgnored | Self::TokenReused => 40,
            Self::SkewIgnored | Self::NoBound => 35,
            Self::VotedForAll => 20,
            Self::ReclaimedAtOnce | Self::TurnAssumed => 15,
            Self::AppliedAgain => 2,
            _ => 0,
        }
    }
}
