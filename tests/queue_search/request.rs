//! The commands to a node, and its answers.

pub(crate) use crate::place::Place;
use crate::token::Token;

/// A command to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// `SET NX`
    Try(Token),
    /// `queue.lua`; the number is zero for a waiter that has none.
    Queue { id: Token, number: u8, withdraw: Option<Token> },
    /// `claim.lua`
    Turn { id: Token, token: Token },
    /// `release.lua`
    Release(Token),
    /// `give.lua`, with a waiter
    Leave { id: Token, token: Token },
    /// `give.lua`, with a time
    Linger { id: Option<Token>, token: Token },
    /// The release of a program that knows no queue.
    Delete(Token),
}

impl Request {
    /// Is it repeated on the next connection if this one ends before the answer?
    pub(crate) fn is_removal(self) -> bool {
        !matches!(self, Self::Try(_) | Self::Queue { .. } | Self::Turn { .. })
    }
}

/// What a node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    Granted,
    Refused,
    Place(Place),
    Removed,
}
