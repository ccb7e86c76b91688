//! Times, sorted into bars whose bounds grow as 1, 2, 5, 10.

use crate::duration;
use serde_json::{Value, json};
use std::time::Duration;

/// The longest bar on the terminal.
const BAR_MAX: usize = 40;

pub(crate) struct Histogram {
    pub(crate) name: &'static str,
    /// Sorted.
    times: Vec<Duration>,
}

/// How many times are at most `bound`, and above that of the bar before.
pub(crate) struct Bar {
    pub(crate) bound: Duration,
    pub(crate) count: usize,
}

impl Histogram {
    pub(crate) fn new(name: &'static str, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { name, times }
    }

    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// The time that this share of the times, in per cent, does not exceed. Zero without times.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.times.len() * percent).div_ceil(100);
        self.times
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }

    /// From the first bar that has any time to the last.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        let mut below = 0;
        for bound in bounds() {
            let up_to = self.times.partition_point(|time| *time <= bound);
            if up_to > 0 {
                bars.push(Bar {
                    bound,
                    count: up_to - below,
                });
            }
            below = up_to;
            if up_to == self.times.len() {
                break;
            }
        }
        bars
    }

    /// The percentiles in a line, and a line for each bar.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{} ({} times): {}\n", self.name, self.len(), self.summary());
        let bars = self.bars();
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
        for bar in bars {
            let length = (bar.count * BAR_MAX).div_ceil(most);
            let bound = duration::show(bar.bound);
            text += &format!(
                "  ≤ {bound:>7}  {:<BAR_MAX$}  {}\n",
                "█".repeat(length),
                bar.count
            );
        }
        text
    }

    pub(crate) fn summary(&self) -> String {
        let percentile = |percent| duration::show(self.percentile(percent));
        format!(
            "median {}, 90% within {}, 99% within {}, longest {}",
            percentile(50),
            percentile(90),
            percentile(99),
            percentile(100)
        )
    }

    pub(crate) fn to_json(&self) -> Value {
        let micros = |percent| (self.percentile(percent).as_secs_f64() * 1e8).round() / 1e2;
        json!({
            "count": self.len(),
            "p50_micros": micros(50),
            "p90_micros": micros(90),
            "p99_micros": micros(99),
            "max_micros": micros(100),
        })
    }
}

/// 10 µs, 20 µs, 50 µs, 100 µs and so on, beyond what any lock takes.
fn bounds() -> impl Iterator<Item = Duration> {
    let decades = (1..=12).map(|power| 10_u64.pow(power));
    let micros = decades.flat_map(|decade| [decade, 2 * decade, 5 * decade]);
    micros.map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(micros: &[u64]) -> Histogram {
        Histogram::new(
            "test",
            micros.iter().copied().map(Duration::from_micros).collect(),
        )
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let percentile = |percent| histogram(&hundred).percentile(percent).as_micros();
        assert_eq!([0, 1, 50, 99, 100].map(percentile), [1, 1, 50, 99, 100]);
        assert_eq!(histogram(&[]).median(), Duration::ZERO);
        assert_eq!(histogram(&[7]).percentile(99).as_micros(), 7);
    }

    #[test]
    fn figures_in_json_are_round() {
        let times = [215_590, 215_590, 1_234_567]
            .map(Duration::from_nanos)
            .to_vec();
        let figures = Histogram::new("test", times).to_json();
        assert_eq!(figures["p50_micros"].to_string(), "215.59");
        assert_eq!(figures["max_micros"].to_string(), "1234.57");
    }

    #[test]
    fn every_time_is_in_one_bar() {
        let bars = histogram(&[15, 20, 21, 900, 950]).bars();
        let counts: Vec<_> = bars
            .iter()
            .map(|bar| (bar.bound.as_micros(), bar.count))
            .collect();
        assert_eq!(
            counts,
            [(20, 2), (50, 1), (100, 0), (200, 0), (500, 0), (1_000, 2)]
        );
        assert!(histogram(&[]).bars().is_empty());
        assert!(histogram(&[]).to_text().starts_with("test (0 times)"));
    }
}
