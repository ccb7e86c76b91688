//! Random choices of a history.

use redlatch_protocol::engine::Jitter;

/// The random numbers of one seed.
pub(crate) struct Random(Jitter);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Jitter::from_seed(seed))
    }

    /// A number from 0 on and below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// True in one of `times` cases.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// How long a message takes, in milliseconds: as a rule not long.
    pub(crate) fn delay(&mut self) -> u64 {
        match self.below(12) {
            0 => self.below(1_200),
            1 | 2 => self.below(200),
            _ => self.below(10),
        }
    }
}
