//! How an ensemble behaves.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The settings of a server, as its administrator would write them.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Sessions end at whole ticks.
    pub(super) tick: Duration,
    /// Which timeouts are granted as asked for. `None`: two to twenty ticks.
    pub(super) timeouts: Option<RangeInclusive<Duration>>,
    /// How often empty containers are removed.
    pub(super) sweep_interval: Duration,
}

impl Settings {
    pub(super) fn new() -> Self {
        Self {
            tick: Duration::from_millis(50),
            timeouts: Some(Duration::from_millis(100)..=Duration::from_secs(60)),
            sweep_interval: Duration::from_secs(60),
        }
    }

    /// The timeouts of sessions that are granted as asked for.
    pub(super) fn timeouts(&self) -> RangeInclusive<Duration> {
        let ticks = self.tick.saturating_mul(2)..=self.tick.saturating_mul(20);
        self.timeouts.clone().unwrap_or(ticks)
    }
}
