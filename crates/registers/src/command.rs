//! What a register's requests ask of a node, and what it answers.

use super::{Accepted, Ballot, InvalidValue};
use redlatch_protocol::engine::{Token, Vote};
use std::sync::Arc;

/// A request about a register, the same to every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRequest {
    pub keys: RegisterKeys,
    /// How the mark of a node begins that may do this, up to the run of its server.
    pub epoch: Arc<[u8]>,
    /// The run of the server that the request is written to: the session adds it. Empty if the
    /// server does not say, and then no mark fits.
    pub run_id: Arc<str>,
    /// What is asked.
    pub command: RegisterCommand,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterKeys {
    /// What was accepted.
    pub value: Arc<[u8]>,
    pub promise: Arc<[u8]>,
    /// The node's mark, of all registers with this prefix.
    pub mark: Arc<[u8]>,
    /// Below which no ballot counts for a register without keys, with this prefix.
    pub floor: Arc<[u8]>,
}

/// A prefix ends where `:redlatch:` begins for the first time, and the register's name is behind
/// it: so registers with different prefixes have different keys, whatever their names, as groups of
/// different prefixes have different marks.
impl RegisterKeys {
    /// What is between the prefix and the register's name in the key of its value.
    pub const VALUE: &[u8] = b":redlatch:register:";
    /// The same of its promise.
    pub const PROMISE: &[u8] = b":redlatch:promise:";
    /// What follows the prefix in the key of the mark.
    pub const MARK: &[u8] = b":redlatch:member";
    /// The same of the floor.
    pub const FLOOR: &[u8] = b":redlatch:register-floor";
    pub fn new(prefix: &[u8], name: &[u8]) -> Self {
        let key = |parts: [&[u8]; 3]| Arc::from(parts.concat());
        Self {
            value: key([prefix, Self::VALUE, name]),
            promise: key([prefix, Self::PROMISE, name]),
            mark: key([prefix, Self::MARK, b""]),
            floor: key([prefix, Self::FLOOR, b""]),
        }
    }
}

/// What is asked about a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterCommand {
    /// What has been accepted?
    Read {
        /// Who waits until that changes. A node that can tell then tells it to the connection on
        /// which it was asked.
        watcher: Option<Token>,
    },
    /// Promise to serve no lower ballot, and say what has been accepted.
    Prepare(Ballot),
    /// Accept this value, and promise the ballot that follows.
    Accept {
        /// The ballot of the value.
        ballot: Ballot,
        /// The ballot that is promised with it.
        next: Ballot,
        /// The value. Empty if the register is deleted.
        value: Arc<[u8]>,
    },
    /// Remove the keys of a register that was deleted with this ballot on all nodes; without one,
    /// of a register for which nothing was ever accepted.
    Collect(Option<Ballot>),
    /// Say what has been accepted, and the floor, and promise nothing.
    Copy,
    /// To a node that is being made a member: have this state, and no floor below this one.
    Install {
        /// The ballot and the value that count as accepted, or nothing at all.
        state: Option<(Ballot, Arc<[u8]>)>,
        floor: u64,
    },
    /// Read or replace the mark.
    Mark(MarkStep),
}

/// What is done with the mark of a node. Each step compares the mark as it was seen, so that a late
/// one does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkStep {
    /// It is read.
    Look,
    /// A node that has the mark that was seen, or no mark, draws a number, and has it in its mark:
    /// see [`JOINING`](super::JOINING). It votes no more.
    Join {
        /// What was seen. Empty: no mark.
        seen: Arc<[u8]>,
    },
    /// The mark that was seen is replaced. The new one names the run of the server that was seen
    /// with it, so that it gives no vote to a server that has been started again meanwhile.
    Enter { seen: Arc<[u8]>, new: Arc<[u8]> },
}

/// The answer of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterReply {
    /// To [`RegisterCommand::Read`].
    State(Option<Accepted>),
    /// To [`RegisterCommand::Prepare`]: the promise; and to [`RegisterCommand::Copy`].
    Promise {
        /// What has been accepted.
        accepted: Option<Accepted>,
        /// Below which no ballot counts for a register without keys.
        floor: u64,
    },
    Done,
    /// Another ballot came first.
    Outbid {
        /// It was promised that no ballot up to this number counts.
        least: u64,
        /// What has been accepted.
        accepted: Option<Accepted>,
        /// Below which no ballot counts for a register without keys.
        floor: u64,
    },
    /// To [`RegisterCommand::Mark`].
    Mark {
        /// The mark as it is now.
        mark: Option<Arc<[u8]>>,
        /// The run of the server.
        run_id: Arc<str>,
    },
    /// The node may not vote: its mark is another one, or missing.
    NoMember(Option<Arc<[u8]>>),
    /// What the node has accepted is nothing that this version of the library knows.
    Invalid(InvalidValue),
}

impl RegisterReply {
    /// Has the node done what was asked of it?
    pub fn vote(&self) -> Vote {
        match self {
            Self::State(_) | Self::Promise { .. } | Self::Done | Self::Mark { .. } => Vote::Granted,
            Self::Outbid { .. } | Self::NoMember(_) | Self::Invalid(_) => Vote::Refused,
        }
    }
}
