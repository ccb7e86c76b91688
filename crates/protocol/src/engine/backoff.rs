//! Waiting between attempts: a random time below a ceiling that doubles.
//!
//! "Full jitter" (Marc Brooker, *Exponential Backoff and Jitter*, AWS Architecture Blog, 2015):
//! clients that failed at the same time must not retry at the same time, so the whole delay is
//! random and not just a part of it. For a lock over N nodes this matters twice: clients that ask
//! at the same moment each win some nodes and none wins a majority.

use crate::time::Time;
use std::time::Duration;

/// A small generator of random numbers (`SplitMix64`, Steele et al. 2014), seeded by its owner.
/// Good for spreading delays; no secret may depend on it.
#[derive(Clone, Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// A generator whose numbers follow from `seed` alone.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A duration of more than zero and at most `ceiling`.
    pub fn below(&mut self, ceiling: Duration) -> Duration {
        // The high half of the product maps the number evenly onto 0..ceiling, without a division.
        let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
        let scaled = (u128::from(self.next_u64()) * u128::from(nanos)) >> 64;
        Duration::from_nanos((scaled as u64).saturating_add(1))
    }
}

/// Delays for one operation's attempts, or one connection's.
#[derive(Clone, Debug)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    failures: u32,
    jitter: Jitter,
}

impl Backoff {
    /// Delays below a ceiling that starts at `base` and doubles with each failure up to `cap`.
    pub fn new(base: Duration, cap: Duration, jitter: Jitter) -> Self {
        Self {
            base,
            cap,
            failures: 0,
            jitter,
        }
    }

    /// How long to wait after one more failure. `least_ceiling`, such as the time that the failed
    /// attempt took, replaces the base where it is longer.
    pub fn next_delay(&mut self, least_ceiling: Duration) -> Duration {
        self.next_delay_within(least_ceiling, Duration::MAX)
    }

    /// As [`next_delay`](Self::next_delay), with no ceiling above `most`. The whole delay stays
    /// random: delays that are only cut down to `most` would be the same for all clients.
    pub fn next_delay_within(&mut self, least_ceiling: Duration, most: Duration) -> Duration {
        let doubled = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        let ceiling = self
            .base
            .max(least_ceiling)
            .saturating_mul(doubled)
            .min(self.cap);
        self.jitter.below(ceiling.min(most))
    }

    /// Starts again from the base, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

// How long a caller waits.

/// How long a caller waits for a lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// One attempt; a few more within `node_timeout` if the votes are split between several clients
    /// that asked at once.
    No,
    /// Attempts until this time, and none beyond it. A time that has come means the same as `No`.
    Until(Time),
    /// As long as it takes.
    Forever,
}

impl Wait {
    /// When the wait ends: a time in the past for one attempt, `None` for a wait without an end.
    pub fn deadline(self) -> Option<Time> {
        match self {
            Self::No => Some(Time::ZERO),
            Self::Until(deadline) => Some(deadline),
            Self::Forever => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(2);
    const CAP: Duration = Duration::from_millis(100);

    #[test]
    fn delays_stay_below_a_ceiling_that_doubles_up_to_the_cap() {
        for seed in 0..1_000 {
            let mut backoff = Backoff::new(BASE, CAP, Jitter::from_seed(seed));
            for ceiling in [2, 4, 8, 16, 32, 64, 100, 100].map(Duration::from_millis) {
                let delay = backoff.next_delay(Duration::ZERO);
                assert!(!delay.is_zero() && delay <= ceiling);
            }
        }
    }

    #[test]
    fn delays_grow_with_the_ceiling() {
        let nth = |seed, nth| {
            let mut backoff = Backoff::new(BASE, CAP, Jitter::from_seed(seed));
            (0..nth)
                .map(|_| backoff.next_delay(Duration::ZERO))
                .last()
                .unwrap()
        };
        for (failures, ceiling) in [(1, 2), (2, 4), (3, 8), (6, 64), (9, 100)] {
            let longest = (0..1_000).map(|seed| nth(seed, failures)).max().unwrap();
            assert!(
                longest > Duration::from_millis(ceiling) / 10 * 9,
                "{failures}: {longest:?}"
            );
        }
    }

    #[test]
    fn the_whole_range_is_used() {
        let mut jitter = Jitter::from_seed(7);
        let delays: Vec<_> = (0..1_000).map(|_| jitter.below(CAP)).collect();
        for tenth in 0..10 {
            let range = CAP / 10 * tenth..CAP / 10 * (tenth + 1);
            assert!(delays.iter().filter(|delay| range.contains(*delay)).count() > 50);
        }
    }

    #[test]
    fn a_slow_round_raises_the_ceiling_but_not_above_the_cap() {
        let mut backoff = Backoff::new(BASE, CAP, Jitter::from_seed(1));
        let longest = (0..100).map(|_| {
            backoff.reset();
            backoff.next_delay(Duration::from_millis(50))
        });
        assert!(longest.max().unwrap() > Duration::from_millis(40));
        assert!(backoff.next_delay(Duration::MAX) <= CAP);
    }

    #[test]
    fn no_number_of_failures_and_no_setting_overflows() {
        let mut backoff = Backoff::new(BASE, CAP, Jitter::from_seed(1));
        for _ in 0..100 {
            assert!(backoff.next_delay(Duration::ZERO) <= CAP);
        }
        let mut tight = Backoff::new(Duration::ZERO, Duration::ZERO, Jitter::from_seed(1));
        assert_eq!(tight.next_delay(Duration::ZERO), Duration::from_nanos(1));
        let mut endless = Backoff::new(Duration::MAX, Duration::MAX, Jitter::from_seed(1));
        assert!(endless.next_delay(Duration::MAX) > Duration::ZERO);
    }

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let delays = |seed| {
            let mut backoff = Backoff::new(BASE, CAP, Jitter::from_seed(seed));
            (0..5)
                .map(|_| backoff.next_delay(Duration::ZERO))
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(42), delays(42));
        assert_ne!(delays(42), delays(43));
    }
}
