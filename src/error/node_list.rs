//! Errors of lists of nodes.

use super::{NodeUrlError, NodeUrlErrorKind};
use std::fmt;

/// Why a comma-separated list of node URLs cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeListError {
    /// The environment variable is not set.
    NotSet,
    /// The value of the environment variable is not UTF-8.
    NotUnicode,
    /// The list is empty.
    Empty,
    /// An entry of the list is empty.
    EmptyEntry {
        /// Which one, from 1.
        number: usize,
    },
    /// The first entry of the list has no scheme, or an unknown one. No part of a password is in
    /// front of that.
    FirstScheme(NodeUrlErrorKind),
    /// A later entry of the list has no scheme, or an unknown one, and does not follow a `zk://`
    /// URL as one more host. It is not shown: it may be the part of a password that follows a
    /// comma.
    NoScheme {
        /// Which one, from 1.
        number: usize,
    },
    /// An entry of the list is a URL that cannot be used.
    Url(NodeUrlError),
}

impl fmt::Display for NodeListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSet => f.write_str("not set"),
            Self::NotUnicode => f.write_str("not UTF-8"),
            Self::Empty => f.write_str("no URL in it"),
            Self::EmptyEntry { number } => write!(f, "entry {number} is empty"),
            Self::FirstScheme(kind) => write!(f, "entry 1: {kind}"),
            Self::NoScheme { number } => write!(
                f,
                "entry {number} does not begin with redis:// or another scheme of a node (a comma \
                 in a password is written as %2C)"
            ),
            Self::Url(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NodeListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url(error) => error.source(),
            _ => None,
        }
    }
}
