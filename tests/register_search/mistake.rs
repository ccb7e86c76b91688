//! The wrong ways of the protocol. Those of a client are in its loop. Those of a node are changes
//! of its scripts.

use crate::change::Change;
use redlatch::internal::node::script::{ACCEPT, COLLECT, PREPARE, READ_REGISTER, Script};

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// An accept is carried out although a higher ballot was promised.
    AcceptBelowPromise,
    /// Two owners of one number are both served.
    NumberOfTwoOwners,
    /// A key that is removed leaves no floor.
    NoFloor,
    /// The floor is the ballot of the deletion, and not what was promised since.
    FloorOfDeletion,
    /// A register without keys serves ballots below the floor.
    AbsentIgnoresFloor,
    /// A node that has lost its keys votes.
    ForgetfulNodeVotes,
    /// A read in one round returns the newest value of a majority that disagrees.
    ReadsNewest,
    /// A read in one round takes a deleted register and one without keys for the same.
    DeletedIsAbsent,
    /// The next change begins with accept although no majority has accepted the last one.
    NextWithoutMajority,
    /// A change whose answer was lost is made again without a look.
    MadeAgain,
    /// A ballot that was not found once is not looked for again.
    ForgetsEarlierBallots,
    /// The keys are removed when a majority has accepted the deletion.
    CollectsAtMajority,
}

/// The scripts of which `member.lua` is the beginning.
const VOTING: &[Script] = &[PREPARE, ACCEPT, READ_REGISTER, COLLECT];

impl Mistake {
    /// The changes of scripts that make this mistake. None if it is one of a client.
    pub(crate) fn changes(self) -> Vec<Change> {
        let change = |scripts, from, to| vec![Change { scripts, from, to }];
        match self {
            Self::AcceptBelowPromise => change(
                &[ACCEPT],
                "local refusal = outbid(ARGV[2])",
                "local refusal = not promise and outbid(ARGV[2])",
            ),
            Self::NumberOfTwoOwners => change(
                VOTING,
                "number_of(ballot) <= least",
                "number_of(ballot) < least + (promise and 0 or 1)",
            ),
            Self::NoFloor => change(&[COLLECT], "if least > floor() then", "if false then"),
            Self::FloorOfDeletion => change(
                &[COLLECT],
                "local least = number_of(promise)",
                "local least = number_of(accepted or promise)",
            ),
            Self::AbsentIgnoresFloor => change(VOTING, "or floor()\n", "or 0\n"),
            Self::ForgetfulNodeVotes => change(VOTING, "if not mark or", "if mark and"),
            _ => Vec::new(),
        }
    }
}
