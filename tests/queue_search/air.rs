//! What a node tells the connections of its waiters while it carries out a command.

use crate::token::Token;

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

/// Who hears a node, and what it has told.
#[derive(Debug, Default)]
pub(crate) struct Air {
    /// The clients whose connection the server believes to be there, as bits.
    pub(crate) hearing: u8,
    /// Do the entries name no channel? Then nobody is told anything, and every entry stays.
    pub(crate) is_mute: bool,
    pub(crate) told: Vec<(Token, Word)>,
}

impl Air {
    /// Tells a waiter a word. Returns false if its connection is gone.
    pub(crate) fn tell(&mut self, id: Token, word: Word) -> bool {
        let is_heard = self.hearing & 1 << id.client != 0;
        if is_heard && !self.is_mute {
            self.told.push((id, word));
        }
        is_heard || self.is_mute
    }
}
