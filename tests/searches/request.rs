//! The commands to a node, its answers, and what it tells the connections of waiters.

use crate::node::Slot;
use crate::token::Token;
use crate::want::Want;

/// A command to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// An attempt of a client that has no place in the queue.
    Try { token: Token, want: Want },
    /// The number is zero for a waiter that has none.
    Queue {
        id: Token,
        number: u8,
        withdraw: Option<Token>,
        want: Want,
    },
    /// The attempt of a waiter, which may name the slot that it wants.
    Turn {
        id: Token,
        token: Token,
        want: Want,
        slot: Slot,
    },
    Extend {
        token: Token,
        want: Want,
        slot: Slot,
    },
    /// The waiter leaves the queue where it was refused its turn.
    Restore {
        id: Option<Token>,
        token: Token,
        want: Want,
        slot: Slot,
    },
    /// The waiter leaves the queue too. A lock may stay taken for a while.
    Release {
        id: Option<Token>,
        token: Token,
        want: Want,
        keeps: bool,
    },
    /// The release of a program that knows no queue.
    Delete(Token),
}

impl Request {
    /// The waiter that it concerns.
    pub(crate) fn waiter(self) -> Option<Token> {
        match self {
            Self::Queue { id, .. } | Self::Turn { id, .. } => Some(id),
            Self::Restore { id, .. } | Self::Release { id, .. } => id,
            Self::Try { .. } | Self::Extend { .. } | Self::Delete(_) => None,
        }
    }

    /// Is it repeated on the next connection if this one ends before the answer?
    pub(crate) fn is_removal(self) -> bool {
        matches!(self, Self::Release { .. } | Self::Delete(_))
    }
}

/// What a node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    Granted(Slot),
    Refused,
    Place(Place),
    Removed,
}

/// What a waiter learns of its place in a node's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) number: u8,
    /// How many are before it.
    pub(crate) before: u8,
    pub(crate) is_mine: bool,
    /// If a part of a set is: which of its locks it waits for longest.
    pub(crate) lacks: Option<u8>,
    pub(crate) was_out: bool,
    /// Does a reservation of another one last, so that it is to ask when that is over?
    pub(crate) ends: bool,
    /// The slots that are free if it is called for a permit, as bits.
    pub(crate) free: u8,
}

/// What a node tells a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Word {
    /// The lock is reserved for it, or a share.
    Reserved,
    /// It is to ask when the time of a reservation for another one is over.
    AskLater,
    /// It is to ask.
    AskNow,
}
