//! What can happen to a [`World`](crate::world::World), and what must not come of it.

use crate::server::Command;

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A client begins its next call.
    Begin(usize),
    /// A node carries out the command of a client's round for the first time.
    Arrive(usize, usize),
    /// A node carries out a command of which no client waits for the answer.
    Again(Command, usize),
    /// A client ends its round with the answers of these nodes, as bits.
    Hear(usize, u8),
    /// A node loses all its keys.
    Lose(usize),
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The results of the calls of a register have no linearization.
    NoLinearization,
    /// Without faults, a new client cannot read or change a register.
    Stuck,
}
