//! Errors of registers.

use super::{NoQuorum, OTHER_PROCESS, ResourceError};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a register could not be read or changed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The register's name cannot be used.
    Resource(ResourceError),
    /// The value is longer than a register may be.
    TooLong {
        /// How many bytes it has.
        length: usize,
        /// The most that it may have.
        most: usize,
    },
    /// Too few nodes gave an answer that counts.
    NoQuorum {
        /// What each node replied.
        error: NoQuorum,
        /// Was a change sent? Then it may have been made, or be made later: by another client that
        /// finds it on a node.
        may_have_happened: bool,
    },
    /// The change was made, or is made later, or was not: its answer was lost, or some nodes have
    /// refused it, and since then the register was deleted or changed more than eight times, or a
    /// node got a value of another format; or the thread has panicked that was about to send it
    /// together with its own.
    Unknown,
    /// The nodes are no group: [`registers().form`](crate::register::Registers::form) makes them
    /// one.
    NotFormed,
    /// The nodes are a group already: all of them are its members, and it has no others.
    AlreadyFormed,
    /// The nodes belong to more than one group, or to one with another number of nodes: clients
    /// that name other nodes would agree on other values. Or, when they are made a group, one is a
    /// member already, as after a formation that has ended half way.
    NodesDiffer {
        /// The node that belongs to another group.
        url: Arc<str>,
    },
    /// The nodes do not keep what they have answered, so they cannot be formed without being told
    /// that registers are in memory.
    NotDurable {
        /// Each such node, and what it lacks.
        nodes: Vec<(Arc<str>, &'static str)>,
    },
    /// A node has got no vote.
    NotRepaired {
        /// The node.
        url: Arc<str>,
        /// Why.
        why: Arc<str>,
    },
    /// A node has got no vote, since it does not show that it is a member: another server may have
    /// taken its place. [`Registers::replace`](crate::register::Registers::replace) gives it one of
    /// the places that are left.
    PlaceTaken {
        /// The node.
        url: Arc<str>,
        /// The addresses of the members that have these places.
        members: Vec<Arc<str>>,
    },
    /// A node has a value of another format, such as one that a later version of this library has
    /// written, and no majority of the others agrees. Nothing was changed.
    OtherFormat {
        /// The node; `None` if a majority has the value.
        url: Option<Arc<str>>,
        /// The format, if it is a later one.
        format: Option<u8>,
    },
    /// No ballot is left: its number is above 2^53, which takes another program that writes these
    /// keys, as a group in its last epoch repairs no node.
    Exhausted,
    /// A function that makes a change has used a register. It may be called several times, while
    /// other threads wait for it, so that must not be.
    WithinChange,
    /// The operating system had no random numbers.
    NoEntropy,
    /// Registers are on Redis nodes. On ZooKeeper, a znode with its version does the same.
    ZooKeeper,
    /// This is a forked child of the process that built the client, which works only there.
    OtherProcess,
}

impl RegisterError {
    /// May a change have been made, or be made later, although this error was returned?
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::NoQuorum { may_have_happened, .. } => *may_have_happened,
            Self::Unknown => true,
            _ => false,
        }
    }

    /// Was the call refused before the nodes were asked?
    pub(crate) fn is_refusal(&self) -> bool {
        let by_caller =
            matches!(self, Self::Resource(_) | Self::TooLong { .. } | Self::WithinChange);
        by_caller || matches!(self, Self::NoEntropy | Self::ZooKeeper | Self::OtherProcess)
    }
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(error) => error.fmt(f),
            Self::TooLong { length, most } => {
                write!(f, "the value has {length} bytes, a register has {most} at most")
            }
            Self::NoQuorum { error, may_have_happened } => {
                let sent = if *may_have_happened { "the change may have been made: " } else { "" };
                write!(f, "{sent}{error}")
            }
            Self::Unknown => f.write_str(
                "the change was made or was not: its answer was lost, and the register was \
                 deleted or changed often since",
            ),
            Self::NotFormed => {
                f.write_str("the nodes are no group for registers yet (redlatch registers form)")
            }
            Self::AlreadyFormed => f.write_str("the nodes are a group for registers already"),
            Self::NodesDiffer { url } => {
                write!(
                    f,
                    "{url} belongs to another group of nodes, to one of another size, or to one"
                )?;
                f.write_str(
                    " whose formation has ended half way: only if that has kept no registers, \
                     delete the key on it that ends with :redlatch:member, and form it again",
                )
            }
            Self::NotDurable { nodes } => {
                f.write_str("registers would be lost:")?;
                for (index, (url, why)) in nodes.iter().enumerate() {
                    write!(f, "{} {url} has {why}", if index == 0 { "" } else { ";" })?;
                }
                Ok(())
            }
            Self::NotRepaired { url, why } => write!(f, "{url} has got no vote: {why}"),
            Self::PlaceTaken { url, members } if members.is_empty() => {
                write!(f, "{url} has got no vote: each place of the group is another node's")
            }
            Self::PlaceTaken { url, members } => write!(
                f,
                "{url} has got no vote: the place is that of {} (Registers::replace \
                 gives it away)",
                members.join(", or of ")
            ),
            Self::OtherFormat { url, format } => {
                if let Some(url) = url {
                    write!(f, "{url}: ")?;
                }
                match format {
                    Some(format) => write!(
                        f,
                        "a later version of this library has written the value: format {format}"
                    ),
                    None => f.write_str("another program has written the key of the register"),
                }
            }
            Self::Exhausted => f.write_str("no number is left for a ballot"),
            Self::WithinChange => f.write_str("a function that changes a register has used one"),
            Self::NoEntropy => f.write_str("the operating system has no random numbers"),
            Self::ZooKeeper => f.write_str("there are no registers on ZooKeeper"),
            Self::OtherProcess => f.write_str(OTHER_PROCESS),
        }
    }
}

impl Error for RegisterError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resource(error) => error.source(),
            Self::NoQuorum { error, .. } => error.source(),
            _ => None,
        }
    }
}
