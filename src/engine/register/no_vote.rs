//! Why a node has no vote.

use super::{Group, Mark};
use std::fmt;

/// Why a node has no vote on registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoVote {
    /// It is no member of a group: it never was, or it has forgotten everything.
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
    /// Why a node with this mark has no vote in this group, in its epoch. `None` if the nodes are
    /// no group.
    #[must_use]
    pub fn of(mark: Option<&[u8]>, group: Option<&Group>) -> Self {
        match mark.map(Mark::read) {
            None => Self::NoMark,
            Some(Mark::Joining(_)) => Self::Joining,
            Some(Mark::Member(member)) if Some(&member.epoch.group) == group => Self::Restarted,
            Some(Mark::Member(_)) => Self::OtherGroup,
            Some(Mark::Unknown) => Self::OtherFormat,
        }
    }

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
            Self::NoMark => "it is no member, or has forgotten that it is",
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
