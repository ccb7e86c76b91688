//! What is remembered of the last run of a job, and when the next one is due.

use super::nodes_time::NodesTime;
use crate::error::{OncePerError, RegisterError};
use std::str;
use std::time::Duration;

/// The format of the value, as text: what it is, the number of the format, since when the period
/// counts in microseconds since 1970, and whether the run counts.
const FORMAT: (&str, &str) = ("once_per", "1");
const COUNTS: &str = "counts";
const OPEN: &str = "open";

/// The last run of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastRun {
    /// Since when the period counts: not earlier than the run began, and later if it began early.
    counted_from: u64,
    /// It does not count unless its end is noted.
    is_open: bool,
}

impl LastRun {
    pub(super) fn begun(self, is_open: bool) -> Self {
        Self { is_open, ..self }
    }

    pub(super) fn ended(self) -> Self {
        Self { is_open: false, ..self }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (name, format) = FORMAT;
        let state = if self.is_open { OPEN } else { COUNTS };
        format!("{name} {format} {} {state}", self.counted_from).into_bytes()
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, RegisterError> {
        let words: Vec<&str> = str::from_utf8(bytes).unwrap_or_default().split(' ').collect();
        let (name, format) = FORMAT;
        let read = match words[..] {
            [one, other, micros, state] if (one, other) == (name, format) => {
                let is_open = state == OPEN;
                let counted_from = micros.parse().ok().filter(|_| is_open || state == COUNTS);
                counted_from.map(|counted_from| Self { counted_from, is_open })
            }
            _ => None,
        };
        let later = || {
            let is_ours = words.first() == Some(&name);
            words.get(1).filter(|_| is_ours)?.parse().ok().filter(|format| *format > 1)
        };
        read.ok_or_else(|| RegisterError::OtherFormat { url: None, format: later() })
    }
}

/// Part of the period: the tolerance, unless it is set, and the most doubt about the time.
const TOLERANCE_PART: u32 = 10;

/// How often a job runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) period: Duration,
    /// How much earlier a run may begin.
    pub(super) tolerance: Duration,
}

impl Schedule {
    pub(super) fn every(period: Duration) -> Self {
        Self { period, tolerance: period / TOLERANCE_PART }
    }

    pub(super) fn doubt_max(self) -> Duration {
        self.period / TOLERANCE_PART
    }

    pub(super) fn check(self) -> Result<(), OncePerError> {
        let Self { period, tolerance } = self;
        if tolerance < period { Ok(()) } else { Err(OncePerError::Period { period, tolerance }) }
    }

    /// The next run, if it may begin now; or else when it may, and how long that is from now.
    pub(super) fn next(
        self,
        last: Option<&LastRun>,
        now: &NodesTime,
    ) -> Result<LastRun, (u64, u64)> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let Some(last) = last else {
            return Ok(LastRun { counted_from: now.latest, is_open: false });
        };
        let due = last.counted_from.saturating_add(micros(self.period));
        let earliest = due.saturating_sub(micros(self.tolerance));
        if now.earliest >= earliest {
            // One that begins early does not move the next one.
            Ok(LastRun { counted_from: due.max(now.latest), is_open: false })
        } else if last.is_open {
            Ok(last.clone())
        } else {
            Err((earliest, earliest - now.earliest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000;
    const SCHEDULE: Schedule =
        Schedule { period: Duration::from_micros(DAY), tolerance: Duration::from_micros(DAY / 10) };

    fn at(micros: u64) -> NodesTime {
        NodesTime { earliest: micros, latest: micros }
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for is_open in [false, true] {
            let run = LastRun { counted_from: 1_764_032_063_000_000, is_open };
            assert_eq!(LastRun::read(&run.to_bytes()), Ok(run));
        }
        let run = LastRun { counted_from: 7, is_open: true };
        assert_eq!(run.to_bytes(), b"once_per 1 7 open");
        assert_eq!(run.ended().to_bytes(), b"once_per 1 7 counts");
    }

    #[test]
    fn anything_else_is_refused_and_a_later_format_is_named() {
        for text in [
            "",
            "once_per",
            "once_per 1 7",
            "once_per 1 7 open ",
            "x 2 7",
            "once_per 1 x open",
            "once_per 1 7 shut",
            "once_per 0 7 open",
            "\u{e9}",
        ] {
            let error = RegisterError::OtherFormat { url: None, format: None };
            assert_eq!(LastRun::read(text.as_bytes()), Err(error), "{text}");
        }
        let later = Err(RegisterError::OtherFormat { url: None, format: Some(2) });
        assert_eq!(LastRun::read(b"once_per 2 anything"), later);
    }

    #[test]
    fn calls_that_come_a_little_early_each_day_run_each_day_and_others_between_do_not() {
        let mut last = SCHEDULE.next(None, &at(100 * DAY)).unwrap();
        for day in 101..200 {
            let minute = DAY / 1440;
            // Two machines call: one by a clock that is five minutes ahead.
            let early = day * DAY - 5 * minute - day % 7;
            last = SCHEDULE.next(Some(&last), &at(early)).unwrap();
            let (next, left) = SCHEDULE.next(Some(&last), &at(day * DAY)).unwrap_err();
            assert_eq!(next, day * DAY + left);
        }
    }

    #[test]
    fn runs_take_as_many_periods_less_one_tolerance_whenever_it_is_called() {
        let mut random = 7_u64;
        for _ in 0..200 {
            let (mut now, mut last, mut begun) = (DAY, None, Vec::new());
            while begun.len() < 30 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now += (random >> 33) % (DAY / 3);
                if let Ok(run) = SCHEDULE.next(last.as_ref(), &at(now)) {
                    last = Some(run);
                    begun.push(now);
                }
            }
            for (first, from) in begun.iter().enumerate() {
                for (runs, to) in begun[first..].iter().enumerate() {
                    let runs = u64::try_from(runs).unwrap();
                    assert!(to - from + DAY / 10 >= runs * DAY, "{begun:?}");
                }
            }
        }
    }

    #[test]
    fn an_open_run_is_tried_again_at_once_and_its_period_counts_from_the_first_try() {
        let first = SCHEDULE.next(None, &at(DAY)).unwrap().begun(true);
        let second = SCHEDULE.next(Some(&first), &at(DAY + 5)).unwrap();
        assert_eq!(second, first);
        // Many periods later it is a run of its own.
        let late = SCHEDULE.next(Some(&first), &at(9 * DAY)).unwrap();
        assert_eq!(late, LastRun { counted_from: 9 * DAY, is_open: false });
        assert!(SCHEDULE.next(Some(&second.ended()), &at(DAY + 6)).is_err());
    }

    #[test]
    fn doubt_about_the_time_makes_a_period_longer_and_never_shorter() {
        let exact = Schedule { tolerance: Duration::ZERO, ..SCHEDULE };
        let first = exact.next(None, &NodesTime { earliest: 0, latest: 100 }).unwrap();
        let doubtful = NodesTime { earliest: DAY + 99, latest: DAY + 200 };
        assert!(exact.next(Some(&first), &doubtful).is_err());
        assert!(exact.next(Some(&first), &at(DAY + 100)).is_ok());
    }
}
