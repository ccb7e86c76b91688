//! What a client remembers of a register between two changes.

use super::{Ballot, Group, Stored};
use redlatch_protocol::engine::Token;

/// The most that a ballot is above all that were seen, as a number of bits.
const STEP_BITS_MAX: u32 = 12;

/// What a client remembers of a register from one change to the next.
///
/// Its owner must be drawn for it alone, and never be used again: a ballot stands for one value.
#[derive(Clone, Debug)]
pub struct Proposer {
    owner: Token,
    /// The group that has promised, in its epoch.
    group: Option<Group>,
    /// The highest number that was seen.
    highest: u64,
    /// The ballot that a majority has promised with the last change, and the value of that change.
    pub(super) next: Option<(Ballot, Stored)>,
}

impl Proposer {
    /// Knows nothing of the register.
    pub fn new(owner: Token) -> Self {
        Self { owner, group: None, highest: 0, next: None }
    }

    /// From now on ballots are those of this epoch of this group.
    ///
    /// What another group has promised, or the same one in another epoch, says nothing of what this
    /// one has: also if the numbers of the epochs are the same, as those of two groups are of which
    /// the second was formed when the first had lost its memory.
    pub fn enter(&mut self, group: &Group) {
        self.highest = self.highest.max(Ballot::beginning(group.epoch));
        if self.group.as_ref() != Some(group) {
            self.next = None;
            self.group = Some(group.clone());
        }
    }

    /// Begins above this count of the epoch.
    ///
    /// Clients that know nothing of a register count from the time, so that the first ballot of
    /// each is above those that were drawn before it. That only saves a refusal: a clock that is
    /// wrong costs one.
    pub fn count_from(&mut self, count: u64) {
        let beginning = Ballot::beginning(self.group.as_ref().map_or(0, |group| group.epoch));
        self.see(Some(beginning.saturating_add(count.min(Ballot::COUNT_MAX))));
    }

    /// Another ballot has this number.
    pub(super) fn see(&mut self, number: Option<u64>) {
        self.highest = self.highest.max(number.unwrap_or(0));
    }

    /// A ballot above all that were seen. With each refusal it is further above: a client that
    /// changes the register in one round after another has gone on by the time a ballot arrives.
    pub(super) fn draw(&mut self, refusals: u32) -> Option<Ballot> {
        let step = 1_u64 << (2 * refusals).min(STEP_BITS_MAX);
        self.highest = self.highest.saturating_add(step);
        Ballot::new(self.highest, self.owner)
    }
}
