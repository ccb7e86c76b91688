//! Mistakes in the protocol, each of which the search must find.

use crate::Search;
use crate::schedules::{STATES_MAX, both_are_asked_and_forget};
use models::explore::{self, Order};

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
    ForgottenBeforeFinished,
    /// Of a process: the following are found only where a side has several.
    DiskNotAskedAgain,
    DiskAskedBefore,
    OwnIsAborted,
    RefusedIsAborted,
    /// Of a process that has all sides.
    BegunWithVotes,
    VotesBeforeLast,
    FinishBeforeLast,
    AllForgottenBeforeFinished,
}

impl Mistake {
    /// Is it one that is harmless where each side is one process?
    pub(crate) fn needs_two_processes(self) -> bool {
        use Mistake::{DiskAskedBefore, DiskNotAskedAgain, OwnIsAborted, RefusedIsAborted};
        matches!(
            self,
            DiskNotAskedAgain | DiskAskedBefore | OwnIsAborted | RefusedIsAborted
        )
    }

    /// Is it one of a process that has all sides?
    pub(crate) fn needs_whole(self) -> bool {
        use Mistake::{
            AllForgottenBeforeFinished, BegunWithVotes, FinishBeforeLast, VotesBeforeLast,
        };
        matches!(
            self,
            BegunWithVotes | VotesBeforeLast | FinishBeforeLast | AllForgottenBeforeFinished
        )
    }
}

/// All, and what each is.
pub(crate) const MISTAKES: [(Mistake, &str); 18] = [
    (
        Mistake::VoteBeforeDisk,
        "a side says that it is prepared before its disk says so",
    ),
    (
        Mistake::AbortAlone,
        "a side that has voted rolls back alone (3PC in a partition)",
    ),
    (
        Mistake::RemoveAtCommit,
        "the record is removed by the first that has finished",
    ),
    (
        Mistake::AbsentIsOpen,
        "a vote for a record that is not there begins it again",
    ),
    (
        Mistake::AbortCommitted,
        "an abort does not look whether the record is committed",
    ),
    (
        Mistake::VoteTwiceApplies,
        "a late request is applied although the side has finished",
    ),
    (
        Mistake::OnlyStarterDecides,
        "only the starter may abort (2PC)",
    ),
    (Mistake::CommitAtMajority, "a majority of votes commits"),
    (
        Mistake::CommittedIsPrepared,
        "a disk does not tell committed from prepared",
    ),
    (
        Mistake::ForgottenBeforeFinished,
        "a side forgets before it knows that the record has that it has finished",
    ),
    (
        Mistake::DiskNotAskedAgain,
        "no record means what the disk said when the call began",
    ),
    (
        Mistake::DiskAskedBefore,
        "the disk is asked before the record is",
    ),
    (
        Mistake::OwnIsAborted,
        "what a call has prepared itself is aborted without a record",
    ),
    (
        Mistake::RefusedIsAborted,
        "a side that cannot prepare calls it aborted without a record",
    ),
    (
        Mistake::BegunWithVotes,
        "who has all sides begins the record with their votes, behind prepare",
    ),
    (
        Mistake::VotesBeforeLast,
        "who has all sides votes for all when the first is prepared",
    ),
    (
        Mistake::FinishBeforeLast,
        "who has all sides finishes all when the first has committed",
    ),
    (
        Mistake::AllForgottenBeforeFinished,
        "who has all sides has them forget before it knows that the record has that they have \
         finished",
    ),
];

/// What the record has of a side that has finished is for those that are asked late: not only for
/// whoever cleans up.
#[test]
fn a_side_that_has_forgotten_what_the_record_waits_for_commits_it_once_more() {
    let mut late = Search {
        mistake: Mistake::ForgottenBeforeFinished,
        ..both_are_asked_and_forget()
    };
    explore::broken("asked late", &mut late, STATES_MAX, Order::Depth);
}
