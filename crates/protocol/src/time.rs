//! Points in time. The pure layers take them as arguments, so that a simulator can pass any.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A point in time: nanoseconds since an arbitrary origin (on Linux, ten years before the
/// machine booted).
///
/// All arithmetic saturates: [`Time::MAX`] means "never", and nothing wraps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    pub const ZERO: Self = Self(0);
    /// Later than every time that a clock will show: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The point `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` until this one; zero if `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This time minus `duration`; the origin if that would be before the origin.
    pub const fn before(self, duration: Duration) -> Self {
        let nanos = duration.as_nanos();
        if nanos > u64::MAX as u128 {
            Self::ZERO
        } else {
            Self(self.0.saturating_sub(nanos as u64))
        }
    }

    /// This time plus `duration`; [`Time::MAX`] if that would overflow.
    pub const fn after(self, duration: Duration) -> Self {
        let nanos = duration.as_nanos();
        if nanos > u64::MAX as u128 {
            Self::MAX
        } else {
            Self(self.0.saturating_add(nanos as u64))
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Time({}.{:09})",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}

/// A point in time that one thread moves and others read.
#[derive(Debug, Default)]
pub struct SharedTime(AtomicU64);

impl SharedTime {
    /// This point in time, until it is moved.
    pub fn new(time: Time) -> Self {
        Self(AtomicU64::new(time.0))
    }

    /// The point in time.
    pub fn get(&self) -> Time {
        Time(self.0.load(Ordering::Acquire))
    }

    /// Moves it.
    pub fn set(&self, time: Time) {
        self.0.store(time.0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::MAX.after(Duration::from_nanos(1)), Time::MAX);
        assert_eq!(Time::ZERO.after(Duration::MAX), Time::MAX);
        assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
        assert_eq!(
            Time::from_millis(3).before(Duration::from_millis(2)),
            Time::from_millis(1)
        );
        assert_eq!(Time::from_millis(3).before(Duration::MAX), Time::ZERO);
        assert_eq!(Time::ZERO.since(Time::from_millis(5)), Duration::ZERO);
        assert_eq!(
            Time::from_millis(7).since(Time::from_millis(5)),
            Duration::from_millis(2)
        );
    }
}
