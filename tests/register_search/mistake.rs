//! The wrong ways of the protocol. Those of a client are in its loop. Those of a node are changes
//! of its scripts.

use models::Change;
use redlatch_registers::script::{
    ACCEPT, COLLECT, INSTALL, MARK, PREPARE, RAISE, READ_REGISTER, Script,
};

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
    /// A client creates in one round what others may create.
    CreatesWhatOthersCreate,
    /// A node that is refilled gets its vote in the epoch that there is.
    RefillKeepsEpoch,
    /// Two repairs may each have an epoch of their own that follows.
    NextEpochUndecided,
    /// The members are copied before they enter the next epoch.
    CopiedBeforeEntered,
    /// A member that is in a later epoch serves earlier ones.
    ServesOtherEpochs,
    /// A register is copied from one node.
    CopiedFromOne,
    /// A node that is refilled keeps what it had.
    NotWiped,
    /// A late copy of an earlier refill counts.
    JoinsUnnumbered,
}

/// The scripts of which `member.lua` is the beginning.
const VOTING: &[Script] = &[PREPARE, ACCEPT, READ_REGISTER, COLLECT, RAISE];

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
            Self::ServesOtherEpochs => change(
                VOTING,
                "string.sub(mark, 1, #ARGV[1]) ~= ARGV[1]",
                "(string.match(mark, ' joining ') or '') \
                 ~= (string.match(ARGV[1], ' joining ') or '')",
            ),
            Self::JoinsUnnumbered => vec![
                Change {
                    scripts: &[INSTALL],
                    from: "string.sub(mark, 1, #ARGV[1]) ~= ARGV[1]",
                    to: "not string.match(mark, ' joining ')",
                },
                Change {
                    scripts: &[MARK],
                    from: "(mark or '') == ARGV[2]",
                    to: "(mark or '') == ARGV[2] or ARGV[1] == 'enter' and mark \
                         and string.match(mark, ' joining ') \
                         and string.match(ARGV[2], ' joining ')",
                },
            ],
            Self::ForgetfulNodeVotes => change(VOTING, "if not mark or", "if mark and"),
            _ => Vec::new(),
        }
    }
}
