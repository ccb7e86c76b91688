//! The commands to a node about locks and shares, and its answers.

use crate::node::Slot;
pub(crate) use crate::place::Place;
use crate::scheme::Want;
use crate::token::Token;

/// A command to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// `SET NX`
    Try(Token),
    /// `share.lua` without a waiter
    TryShare { token: Token, want: Want },
    /// `queue.lua`; the number is zero for a waiter that has none.
    Queue { id: Token, number: u8, withdraw: Option<Token>, want: Want },
    /// `claim.lua`
    Turn { id: Token, token: Token },
    /// `share.lua`
    TurnShare { id: Token, token: Token, want: Want, first: Slot },
    /// `keep.lua`, `extend_shared.lua`
    Extend { token: Token, want: Want, slot: Slot },
    /// `keep.lua`
    Restore(Token),
    /// `restore_shared.lua`, and `release_shared.lua` for the waiter where it was refused its turn
    RestoreShare { id: Option<Token>, token: Token, slot: Slot },
    /// `release.lua`
    Release(Token),
    /// `give.lua`, with a waiter
    Leave { id: Token, token: Token },
    /// `release_shared.lua`
    ReleaseShare { id: Option<Token>, token: Token },
    /// The release of a program that knows no queue.
    Delete(Token),
}

impl Request {
    /// Is it repeated on the next connection if this one ends before the answer?
    pub(crate) fn is_removal(self) -> bool {
        matches!(
            self,
            Self::Release(_) | Self::Leave { .. } | Self::ReleaseShare { .. } | Self::Delete(_)
        )
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
