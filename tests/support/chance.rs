//! Random numbers from a seed that is printed.

use std::ops::RangeInclusive;
use std::time::Duration;

/// SplitMix64: small, and good enough for choosing operations and faults.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).expect("a small number");
        usize::try_from(self.number() % count).expect("smaller than a usize")
    }

    /// True once in this many times.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn millis(&mut self, range: RangeInclusive<u64>) -> Duration {
        let width = range.end() - range.start() + 1;
        Duration::from_millis(range.start() + self.number() % width)
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
