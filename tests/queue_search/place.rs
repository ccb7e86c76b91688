//! What a waiter learns of its place in a node's queue.

/// What `queue.lua` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) number: u8,
    /// How many are before it.
    pub(crate) before: u8,
    pub(crate) is_mine: bool,
    pub(crate) was_out: bool,
    /// Does a reservation of another one last, so that it is to ask when that is over?
    pub(crate) ends: bool,
}
