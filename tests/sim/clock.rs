//! Clocks with different speeds. Only the simulation knows the true time.

pub(crate) use redlatch_protocol::time::Time;
use std::cell::Cell;

pub(crate) const MICROS: u64 = 1_000;
pub(crate) const MILLIS: u64 = 1_000_000;
pub(crate) const SECONDS: u64 = 1_000_000_000;

/// Nanoseconds in a second.
const PARTS: i128 = 1_000_000_000;

/// Later than the end of any history: never.
const NEVER: u64 = 600 * SECONDS;

thread_local! {
    static NOW: Cell<Time> = const { Cell::new(Time::ZERO) };
    static WALL: Cell<u64> = const { Cell::new(0) };
}

/// The time of the client that runs, for code that reads a clock.
pub(crate) fn now() -> Time {
    NOW.get()
}

pub(crate) fn set_now(now: Time) {
    NOW.set(now);
}

/// Microseconds since 1970 by the wall clock of the client that runs.
pub(crate) fn wall_micros() -> u64 {
    WALL.get()
}

pub(crate) fn set_wall(micros: u64) {
    WALL.set(micros);
}

/// The clock of one client or node, with its own origin and speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    offset: u64,
    /// How much faster than true time, in parts per billion.
    drift: i64,
    /// For how long it was stopped. A correct clock never stops.
    stopped: u64,
}

impl Clock {
    pub(crate) fn new(offset: u64, drift: i64) -> Self {
        Self {
            offset,
            drift,
            stopped: 0,
        }
    }

    /// Its time at this true time.
    pub(crate) fn read(&self, now: u64) -> Time {
        let run = i128::from(now - self.stopped);
        Time::from_nanos(self.offset + (run + run * i128::from(self.drift) / PARTS) as u64)
    }

    /// The first true time at which its time is `time` or later.
    pub(crate) fn when(&self, time: Time) -> u64 {
        let shown = time.as_nanos().saturating_sub(self.offset);
        if shown >= NEVER {
            return NEVER;
        }
        let shown = i128::from(shown);
        let drift = i128::from(self.drift);
        let run = (shown - shown * drift / (PARTS + drift)) as u64;
        // The division may have cut off a nanosecond or two.
        let mut when = (run + self.stopped).saturating_sub(3).max(self.stopped);
        while self.read(when) < time {
            when += 1;
        }
        when
    }

    /// Stops for `pause`, like a clock that does not count suspended time.
    pub(crate) fn stop(&mut self, pause: u64) {
        self.stopped += pause;
    }

    /// Jumps forward by `leap`. A correct clock never does.
    pub(crate) fn jump(&mut self, leap: u64) {
        self.offset += leap;
    }
}

#[test]
fn the_true_time_follows_from_the_time_of_a_clock() {
    for drift in [-5_000_000, 0, 1, 5_000_000, 100_000_000] {
        let clock = Clock::new(77 * SECONDS, drift);
        for now in [0, 1, 999, 12_345_678_901, 79 * SECONDS] {
            let shown = clock.read(now);
            let when = clock.when(shown);
            assert!(when <= now && clock.read(when) >= shown);
        }
    }
}
