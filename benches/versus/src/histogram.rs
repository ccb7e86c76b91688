//! Durations, counted in buckets that are less than one per cent wide: recording is cheap, and the
//! counts of several processes can be added.

use std::time::Duration;

/// Buckets for each doubling.
const STEPS: u64 = 128;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS as usize;

/// Durations, counted by bucket.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u32>,
}

impl Histogram {
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }

    pub fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// The quantile: this share of all durations is at most so long.
    pub fn quantile(&self, share: f64) -> Duration {
        let total = self.count();
        let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return Duration::from_nanos(middle(index));
            }
        }
        Duration::ZERO
    }

    /// As text, for another process.
    pub fn to_text(&self) -> String {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let words: Vec<_> = filled.map(|(index, count)| format!("{index}:{count}")).collect();
        words.join(",")
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let mut histogram = Self::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (index, count) = word.split_once(':')?;
            *histogram.counts.get_mut(index.parse::<usize>().ok()?)? = count.parse().ok()?;
        }
        Some(histogram)
    }
}

fn bucket(nanos: u64) -> usize {
    // The leading bits say which doubling, the next few which step of it. Below `STEPS`, each value
    // has a bucket of its own.
    let doubling = (64 - nanos.leading_zeros()).saturating_sub(STEP_BITS + 1);
    (u64::from(doubling) * STEPS + (nanos >> doubling)) as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let doubling = (bucket / STEPS).saturating_sub(1);
    let lower = (bucket - doubling * STEPS) << doubling;
    lower + (1 << doubling) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_within_one_per_cent() {
        for nanos in [1, 100, 127, 128, 255, 256, 1000, 123_456, 1_000_000_000, 70_000_000_000] {
            let mut histogram = Histogram::new();
            histogram.record(Duration::from_nanos(nanos));
            let found = histogram.quantile(0.5).as_nanos() as f64;
            assert!((found / nanos as f64 - 1.0).abs() < 0.01, "{nanos} is found as {found}");
        }
    }

    #[test]
    fn the_median_of_a_hundred_is_the_fiftieth() {
        let mut histogram = Histogram::new();
        (1..=100).for_each(|nanos| histogram.record(Duration::from_nanos(nanos)));
        assert_eq!(histogram.quantile(0.5), Duration::from_nanos(50));
        assert_eq!(histogram.quantile(0.99), Duration::from_nanos(99));
    }

    #[test]
    fn text_and_back() {
        let mut histogram = Histogram::new();
        (0..100_000).step_by(77).for_each(|nanos| histogram.record(Duration::from_nanos(nanos)));
        let back = Histogram::from_text(&histogram.to_text()).expect("it is our own text");
        assert_eq!(back.counts, histogram.counts);
    }
}
