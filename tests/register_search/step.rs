//! What can happen to a [`World`](crate::world::World), and what must not come of it.

use crate::server::Command;

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A client or a repairer begins its next call.
    Begin(usize),
    /// A node carries out the command of an actor's round for the first time.
    Arrive(usize, usize),
    /// A node carries out a command of which nobody waits for the answer.
    Again(Command, usize),
    /// An actor ends its round with the answers of these nodes, as bits.
    Hear(usize, u8),
    /// A node loses all its keys.
    Lose(usize),
    /// A node is started again with an older state: the one with this number.
    Restart(usize, usize),
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The results of the calls of a register have no linearization.
    NoLinearization,
    /// Without faults, a new client cannot read or change a register.
    Stuck,
    /// Without faults, a node does not get its vote, although a majority has forgotten nothing.
    Unrepaired,
}
