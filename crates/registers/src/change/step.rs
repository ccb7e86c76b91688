//! What a change asks for, and how it ends.

use crate::{Ballot, Draft, InvalidValue, RegisterCommand};

/// The next step of a change.
#[derive(Debug)]
pub enum ChangeStep {
    /// Send this to all nodes, and [handle](super::Change::handle) the answers.
    Send(RegisterCommand),
    /// Make the changes, and give the draft [back](super::Change::propose). This may come several
    /// times; what was made of an earlier draft then has no effect.
    Draft(Draft),
    /// Another client came first, for the so manieth time. After a random pause,
    /// [try again](super::Change::try_again).
    Outbid(u32),
    /// It is over.
    Done(ChangeEnd),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeEnd {
    /// A majority has accepted the draft with this ballot.
    Made(Ballot),
    /// There was nothing to change in the draft with this ballot, and it is current.
    Unchanged(Ballot),
    /// Too few nodes answered.
    NoQuorum {
        /// Was a change sent? Then it may be made, now or later.
        may_have_happened: bool,
    },
    /// The change was made or was not: too much has happened since.
    Unknown,
    /// A node has a value of another format, and no majority has told of others.
    Invalid(InvalidValue),
    /// There is no higher number for a ballot.
    Exhausted,
}
