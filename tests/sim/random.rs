//! All random numbers come from one seed.

use redlatch_protocol::engine::Jitter;

/// Random numbers that follow from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(Jitter);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Consecutive seeds begin at similar states: a few steps make them differ.
        let mut jitter = Jitter::from_seed(seed);
        let apart = jitter.next_u64();
        Self(Jitter::from_seed(apart ^ seed.rotate_left(32)))
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, or zero if `end` is zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `permille` times in a thousand.
    pub(crate) fn chance(&mut self, permille: u64) -> bool {
        self.below(1_000) < permille
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// `count` different numbers below `end`.
    pub(crate) fn subset(&mut self, end: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..end).collect();
        while all.len() > count {
            let other = self.below(all.len() as u64) as usize;
            all.swap_remove(other);
        }
        all
    }
}
