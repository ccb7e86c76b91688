//! Has a node a vote on registers, and why not? Errors and statuses of nodes say so.

use std::fmt;

/// Has a node a vote on registers?
///
/// This is how the node is found, and not known if it does not answer, if the user may not use
/// `EVALSHA` or the keys with `:redlatch:` there, and on ZooKeeper. A member that keeps all that it
/// answers has no vote after a restart until the next client that uses a register gives it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterMembership {
    /// It has: it is a member of the group, and has entered its latest epoch.
    Member {
        /// The number of the epoch. It is 1 after the formation, and grows with every node that is
        /// repaired or replaced.
        epoch: u64,
        /// Has the server, ever since it became a member, kept all that it answered, so that it
        /// votes again after a restart?
        is_durable: bool,
    },
    /// It has none.
    NoVote(NoVote),
}

impl RegisterMembership {
    /// Has it a vote?
    #[must_use]
    pub fn is_member(&self) -> bool {
        matches!(self, Self::Member { .. })
    }
}

impl fmt::Display for RegisterMembership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member { epoch, is_durable } => {
                let kept = if *is_durable { "durable" } else { "in memory" };
                write!(f, "a member in epoch {epoch}, {kept}")
            }
            Self::NoVote(why) => write!(f, "no vote on registers: {why}"),
        }
    }
}

/// Why a node has no vote on registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoVote {
    /// It is not a member of a group: it never was, or it has forgotten everything.
    NoMark,
    /// It is being made a member, or that has ended half way.
    Joining,
    /// It was started again since it became a member, and may have forgotten something.
    Restarted,
    /// The server does not tell the user which run of it answers, without the right to `INFO`: so
    /// it is not known whether it was started again.
    RunNotTold,
    /// It is a member of another group, or of another epoch of this one: one that it has not
    /// entered yet, or in which another server has its place.
    OtherGroup,
    /// Another server has its place in this group.
    Replaced,
    /// Its mark is that of a later version of this library, or of another program.
    OtherFormat,
}

impl NoVote {
    /// The reason in a word that can be a label of a metric: `no_mark`, `restarted`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoMark => "no_mark",
            Self::Joining => "joining",
            Self::Restarted => "restarted",
            Self::RunNotTold => "run_not_told",
            Self::OtherGroup => "other_group",
            Self::Replaced => "replaced",
            Self::OtherFormat => "other_format",
        }
    }
}

impl fmt::Display for NoVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMark => "it is not a member, or has forgotten that it is",
            Self::Joining => {
                "it is being made a member, or that has ended half way (redlatch registers \
                 repair, or form)"
            }
            Self::Restarted => "it was started again and may have forgotten something",
            Self::RunNotTold => {
                "the user may not ask which run of the server answers: it lacks the right +info"
            }
            Self::OtherGroup => "it is a member of another group, or of another epoch of this one",
            Self::Replaced => "another server has its place",
            Self::OtherFormat => "its mark is of a later version, or of another program",
        })
    }
}
