//! Mistakes in the protocol, each of which the search must find.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    None,
    VoteBeforeDisk,
    AbortAlone,
    RemoveAtCommit,
    AbsentIsOpen,
    AbortCommitted,
    VoteTwiceApplies,
    OnlyStarterDecides,
    CommitAtMajority,
    CommittedIsPrepared,
}

/// All, and what each is.
pub(crate) const MISTAKES: [(Mistake, &str); 9] = [
    (Mistake::VoteBeforeDisk, "a side says that it is prepared before its disk says so"),
    (Mistake::AbortAlone, "a side that has voted rolls back alone (3PC in a partition)"),
    (Mistake::RemoveAtCommit, "the record is removed by the first that has finished"),
    (Mistake::AbsentIsOpen, "a vote for a record that is not there begins it again"),
    (Mistake::AbortCommitted, "an abort does not look whether the record is committed"),
    (Mistake::VoteTwiceApplies, "a late request is applied although the side has finished"),
    (Mistake::OnlyStarterDecides, "only the starter may abort (2PC)"),
    (Mistake::CommitAtMajority, "a majority of votes commits"),
    (Mistake::CommittedIsPrepared, "a disk does not tell committed from prepared"),
];
