//! The mark by which a node is a member of a group, and may vote on its registers.
//!
//! A node that has forgotten what it promised must not vote. So each script compares the mark in
//! the step that acts: a server that lost its memory has lost the mark as well, and one that was
//! started again has another `run_id`.

use std::fmt;
use std::sync::Arc;

/// How every mark begins, and its format.
const BEGIN: &str = "redlatch 1";

/// How the mark of a node begins that is being made a member. A number that the node has drawn
/// follows.
pub const JOINING: &str = "redlatch 1 joining ";

/// A group of nodes in one of its epochs. Two groups, or two epochs with one number, have other
/// tokens.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "code that writes a mark must give all")]
pub struct Group {
    /// Which group: drawn when it was formed.
    pub id: u64,
    /// The number of its epoch.
    pub epoch: u64,
    /// Drawn for this epoch.
    pub token: u64,
    /// How many members it has.
    pub nodes: usize,
}

impl Group {
    /// How the marks of its members begin: what follows is the `run_id` of the server.
    #[must_use]
    pub fn to_bytes(&self) -> Arc<[u8]> {
        self.to_string().into_bytes().into()
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, epoch, token, nodes } = self;
        write!(f, "{BEGIN} {id:016x} {epoch} {token:016x} {nodes} ")
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_string().trim_end())
    }
}

/// A mark.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "code that reads a mark must know all kinds")]
pub enum Mark {
    /// Of a node that is being made a member, with the number that it has drawn.
    Joining(u64),
    /// Of a member.
    Member(Member),
    /// Of a later version of this library, or of another program.
    Unknown,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "code that writes a mark must give all")]
pub struct Member {
    /// The group, in the epoch that the node has entered last.
    pub group: Group,
    /// The run of the server that has the memory of this member.
    pub run_id: String,
    /// Which member: drawn when it became one.
    pub id: u64,
    /// Has the server, ever since, kept all that it answered, also over a restart?
    pub is_durable: bool,
}

impl Member {
    /// The whole mark.
    #[must_use]
    pub fn to_bytes(&self) -> Arc<[u8]> {
        let Self { group, run_id, id, is_durable } = self;
        let kind = if *is_durable { "durable" } else { "volatile" };
        format!("{group}{run_id} {id:016x} {kind}").into_bytes().into()
    }
}

impl Mark {
    /// Reads a mark that a node keeps.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes).ok().and_then(Self::parse).unwrap_or(Self::Unknown)
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(number) = text.strip_prefix(JOINING) {
            return number.parse().ok().map(Self::Joining);
        }
        let rest = text.strip_prefix(BEGIN)?.strip_prefix(' ')?;
        let words: Vec<&str> = rest.split(' ').collect();
        let [group, epoch, token, nodes, run_id, id, kind] = words[..] else { return None };
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        let is_durable = match kind {
            "durable" => true,
            "volatile" => false,
            _ => return None,
        };
        let (id_of_group, epoch, token) = (hex(group)?, epoch.parse().ok()?, hex(token)?);
        let group = Group { id: id_of_group, epoch, token, nodes: nodes.parse().ok()? };
        let member = Member { group, run_id: run_id.to_owned(), id: hex(id)?, is_durable };
        Some(Self::Member(member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_others_are_unknown() {
        let group = Group { id: 7, epoch: 3, token: u64::MAX, nodes: 5 };
        for is_durable in [false, true] {
            let run_id = "0123456789012345678901234567890123456789".to_owned();
            let member = Member { group: group.clone(), run_id, id: 9, is_durable };
            let bytes = member.to_bytes();
            assert_eq!(Mark::read(&bytes), Mark::Member(member));
            assert_eq!(Mark::read(&[&bytes[..], b" more"].concat()), Mark::Unknown);
            assert_eq!(Mark::read(&bytes[..bytes.len() - 1]), Mark::Unknown);
        }
        assert_eq!(Mark::read(b"redlatch 1 joining 17"), Mark::Joining(17));
        for unknown in ["", "redlatch 2 joining 17", "redlatch 1 joining x", "redlatch 1"] {
            assert_eq!(Mark::read(unknown.as_bytes()), Mark::Unknown, "{unknown}");
        }
    }
}
