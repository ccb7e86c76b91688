//! How long a lock may be relied on.
//!
//! A node keeps the key for the ttl from when it *applied* the command, by its own clock. The
//! client knows neither that moment nor that clock, so it counts from before it sent anything, and
//! subtracts a share of the ttl for clocks that run at different speeds, and a little more for the
//! granularity of expiry:
//!
//! ```text
//! valid_until = started + ttl - (ttl * drift_factor + 2 ms)
//! ```

use crate::time::Time;
use std::time::Duration;

/// The error of the nodes' expiry besides drift: 1 ms granularity at the node, and 1 ms for the
/// truncation of the ttl to whole milliseconds. From the Redlock description.
pub const EXPIRY_GRAIN: Duration = Duration::from_millis(2);

/// The longest ttl that any configuration may allow: 365 days. Redis accepts up to 292 million
/// years, but a ttl that long is usually a number in a wrong unit.
pub const TTL_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A time to live as it is sent to the nodes: whole milliseconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(u64);

impl Ttl {
    pub const SHORTEST: Self = Self(1);

    /// `duration` in whole milliseconds, rounded down. `None` if that is zero, or if `duration` is
    /// above [`TTL_LIMIT`].
    pub fn from_duration(duration: Duration) -> Option<Self> {
        let millis = u64::try_from(duration.as_millis()).ok()?;
        (millis > 0 && duration <= TTL_LIMIT).then_some(Self(millis))
    }

    pub fn as_millis(self) -> u64 {
        self.0
    }

    pub fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// This ttl, or `limit` if that is shorter, but no less than a millisecond.
    pub fn at_most(self, limit: Duration) -> Self {
        if limit > TTL_LIMIT {
            return self;
        }
        Self::from_duration(limit).map_or(Self::SHORTEST, |limit| self.min(limit))
    }

    /// This ttl, or `limit` in whole milliseconds if that is longer.
    pub fn at_least(self, limit: Duration) -> Self {
        Self::from_duration(limit).map_or(self, |limit| self.max(limit))
    }

    /// The rest of this ttl if it began to run at `started`. `None` if less than a millisecond.
    pub fn left(self, started: Time, now: Time) -> Option<Self> {
        Self::from_duration(self.as_duration().saturating_sub(now.since(started)))
    }
}

/// How far two correct clocks may drift apart: a share of the time measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    pub parts_per_billion: u32,
}

impl Drift {
    /// The largest factor: beyond it, most of a lock's ttl would be lost to drift.
    pub const FACTOR_MAX: f64 = 0.5;

    /// A factor of the ttl, such as 0.01. `None` if it is not between 0 and
    /// [`FACTOR_MAX`](Self::FACTOR_MAX).
    pub fn from_factor(factor: f64) -> Option<Self> {
        // Rounded up: the error is on the safe side.
        (0.0..=Self::FACTOR_MAX).contains(&factor).then(|| Self {
            parts_per_billion: (factor * 1e9).ceil() as u32,
        })
    }

    /// How long a lock of this ttl is valid, counted from before its request. Zero if drift and
    /// granularity use it up.
    pub fn validity(self, ttl: Ttl) -> Duration {
        // At most 2^35 ms * 5 * 10^8: far from the end of a u128, and the quotient, being at most
        // half of a ttl below 2^55 ns, fits a u64.
        let nanos = u128::from(ttl.0) * 1_000_000;
        let drift = (nanos * u128::from(self.parts_per_billion)).div_ceil(1_000_000_000);
        let lost = Duration::from_nanos(drift as u64).saturating_add(EXPIRY_GRAIN);
        ttl.as_duration().saturating_sub(lost)
    }

    /// The shortest ttl that leaves a validity of more than `least`.
    pub fn shortest_ttl(self, least: Duration) -> Option<Ttl> {
        // validity() grows with the ttl, so bisection finds the shortest one.
        let mut short = 0;
        let mut long = TTL_LIMIT.as_millis() as u64;
        if self.validity(Ttl(long)) <= least {
            return None;
        }
        while long - short > 1 {
            let middle = short + (long - short) / 2;
            if self.validity(Ttl(middle)) > least {
                long = middle;
            } else {
                short = middle;
            }
        }
        Some(Ttl(long))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Ttl {
        Ttl::from_duration(Duration::from_millis(millis)).unwrap()
    }

    #[test]
    fn the_formula_of_the_algorithm_in_literal_numbers() {
        let drift = Drift::from_factor(0.01).unwrap();
        assert_eq!(
            drift.validity(millis(10_000)),
            Duration::from_millis(10_000 - 100 - 2)
        );
        assert_eq!(
            drift.validity(millis(100)),
            Duration::from_millis(100 - 1 - 2)
        );
        assert_eq!(drift.validity(millis(3)), Duration::from_micros(970));
        assert_eq!(drift.validity(millis(2)), Duration::ZERO);
        assert_eq!(drift.validity(millis(1)), Duration::ZERO);
    }

    #[test]
    fn the_share_lost_to_drift_is_rounded_up() {
        // The share of 3 ms is less than a nanosecond, and counts as one.
        let drift = Drift::from_factor(1e-10).unwrap();
        assert_eq!(drift.validity(millis(3)), Duration::from_nanos(999_999));
    }

    #[test]
    fn no_ttl_and_no_factor_wraps() {
        for factor in [0.0, 0.01, 0.123_456_789, 0.5] {
            let drift = Drift::from_factor(factor).unwrap();
            let limit = Ttl::from_duration(TTL_LIMIT).unwrap();
            let validity = drift.validity(limit);
            assert!(validity < TTL_LIMIT && validity >= TTL_LIMIT.mul_f64(0.499_999));
        }
    }

    #[test]
    fn a_ttl_is_whole_milliseconds_within_the_limit() {
        assert_eq!(Ttl::from_duration(Duration::ZERO), None);
        assert_eq!(Ttl::from_duration(Duration::from_micros(999)), None);
        assert_eq!(
            Ttl::from_duration(Duration::from_micros(1999))
                .unwrap()
                .as_millis(),
            1
        );
        assert_eq!(
            Ttl::from_duration(TTL_LIMIT + Duration::from_nanos(1)),
            None
        );
        assert_eq!(Ttl::from_duration(Duration::MAX), None);
    }

    #[test]
    fn a_limit_beyond_all_ttls_limits_nothing() {
        let ttl = Ttl::from_duration(Duration::from_secs(1)).unwrap();
        for limit in [
            TTL_LIMIT,
            TTL_LIMIT + Duration::from_nanos(1),
            Duration::MAX,
        ] {
            assert_eq!(ttl.at_most(limit), ttl);
        }
        assert_eq!(ttl.at_most(Duration::from_millis(20)).as_millis(), 20);
        assert_eq!(ttl.at_most(Duration::ZERO).as_millis(), 1);
    }

    #[test]
    fn odd_drift_factors_are_refused() {
        for factor in [-0.01, 0.51, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Drift::from_factor(factor), None);
        }
    }

    #[test]
    fn the_shortest_ttl_is_the_first_that_leaves_more_than_the_least() {
        for factor in [0.0, 0.01, 0.5] {
            for least in [0, 1, 7, 1000].map(Duration::from_millis) {
                let drift = Drift::from_factor(factor).unwrap();
                let shortest = drift.shortest_ttl(least).unwrap();
                assert!(drift.validity(shortest) > least);
                assert!(drift.validity(Ttl(shortest.0 - 1)) <= least);
            }
        }
        assert_eq!(
            Drift::from_factor(0.01).unwrap().shortest_ttl(TTL_LIMIT),
            None
        );
    }

    #[test]
    fn the_rest_of_a_ttl_never_grows_and_ends() {
        let start = Time::from_millis(1_000);
        assert_eq!(millis(10).left(start, start), Some(millis(10)));
        assert_eq!(
            millis(10).left(start, Time::from_millis(1_004)),
            Some(millis(6))
        );
        assert_eq!(millis(10).left(start, Time::from_millis(1_010)), None);
        assert_eq!(millis(10).left(start, Time::MAX), None);
        assert_eq!(millis(10).left(start, Time::ZERO), Some(millis(10)));
        assert_eq!(millis(10).at_most(Duration::from_millis(4)), millis(4));
        assert_eq!(millis(10).at_most(TTL_LIMIT), millis(10));
        assert_eq!(millis(10).at_most(Duration::ZERO), millis(1));
    }
}
