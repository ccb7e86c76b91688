//! The events of registers.

use super::Subject;
use crate::engine::NoVote;
use crate::error::RegisterError;
use crate::name::Name;
use std::fmt;
use std::time::Duration;

/// Something that happened to a register, or to the vote of a node on registers. The fields are
/// those of [`Event`](super::Event).
#[derive(Clone)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the enum and its variants say what each field is")]
pub enum RegisterEvent<'a> {
    /// A node has a vote on [registers](crate::guide::registers): as this client looked at the
    /// group for the first time, or again after it had none.
    #[non_exhaustive]
    NodeVotes { url: &'a str },
    /// A node has answered and has no vote on [registers](crate::guide::registers). Reported once
    /// until it has one. One more such node may be one too many:
    /// [`registers().repair`](crate::register::Registers::repair) gives it its vote. `why`: why it
    /// has none.
    #[non_exhaustive]
    NodeWithoutVote { url: &'a str, why: NoVote },
    /// A call has read a register. `rounds`: how often the nodes were asked: once, unless they
    /// disagreed or some had no vote.
    #[non_exhaustive]
    Read { register: Name<'a>, rounds: u32, took: Duration },
    /// A call that changes a register is over, and a majority agrees: it has changed the value, or
    /// has found that it must not, as
    /// [`compare_and_set`](crate::register::Register::compare_and_set) does. `rounds`: how often
    /// the nodes were asked, together with the changes of other threads of this client that were
    /// sent with this one. More than three: other clients came first.
    #[non_exhaustive]
    Changed { register: Name<'a>, rounds: u32, took: Duration },
    /// A call that reads or changes a register has failed because of the nodes. Calls that are
    /// refused at once, because the value is too long for instance, are not reported.
    #[non_exhaustive]
    Failed { register: Name<'a>, took: Duration, error: &'a RegisterError },
}

impl<'a> RegisterEvent<'a> {
    pub(super) fn kind(&self) -> (&'static str, Subject<'a>) {
        match *self {
            Self::NodeVotes { url } => ("node_votes", Subject::Node(url)),
            Self::NodeWithoutVote { url, .. } => ("node_without_vote", Subject::Node(url)),
            Self::Read { register, .. } => ("register_read", Subject::Resource(register)),
            Self::Changed { register, .. } => ("register_changed", Subject::Resource(register)),
            Self::Failed { register, .. } => ("register_failed", Subject::Resource(register)),
        }
    }

    /// Without what it is about.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeVotes { .. } => f.write_str("has a vote on registers"),
            Self::NodeWithoutVote { why, .. } => write!(f, "has no vote on registers: {why}"),
            Self::Read { rounds, took, .. } => {
                write!(f, "register read: rounds {rounds}, took {took:.1?}")
            }
            Self::Changed { rounds, took, .. } => {
                write!(f, "register changed: rounds {rounds}, took {took:.1?}")
            }
            Self::Failed { took, error, .. } => {
                write!(f, "register failed: took {took:.1?}, {error}")
            }
        }
    }
}

/// As the text of the [`Event`](super::Event).
impl fmt::Debug for RegisterEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&super::Event::Register(self.clone()), f)
    }
}
