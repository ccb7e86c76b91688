//! Runs many histories on all cores, and collects the violations and the statistics.

use crate::checker::Invariant;
use crate::mistake::Mistake;
use crate::options::BrokenAssumption;
use crate::simulation::Simulation;
use crate::tally::Tally;
use std::any::Any;
use std::env;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many histories a thread takes at a time.
const BATCH: u64 = 64;

/// After how many histories a long campaign reports its progress.
const REPORT_EVERY: u64 = 100_000;

/// The campaign ends after this many seeds with violations, by default.
const FAILURES_MAX: usize = 5;

fn failures_max() -> usize {
    let text = env::var("REDLATCH_FAILURES").ok();
    text.map_or(FAILURES_MAX, |most| {
        most.parse().expect("REDLATCH_FAILURES is a number")
    })
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub(crate) struct Campaign {
    pub(crate) tally: Tally,
    /// Seeds with violations, and these.
    pub(crate) failures: Vec<(u64, Vec<(Invariant, String)>)>,
}

/// Runs one history. A panic counts as a violation.
pub(crate) fn run(
    seed: u64,
    broken_assumption: BrokenAssumption,
    mistake: Option<Mistake>,
) -> (Tally, Vec<(Invariant, String)>) {
    let history = || Simulation::new(seed, broken_assumption, mistake, false).run();
    match catch_unwind(AssertUnwindSafe(history)) {
        Ok(result) => (result.tally, result.checker.violations),
        Err(cause) => (Tally::default(), vec![(Invariant::Panic, words(&*cause))]),
    }
}

/// The message of a panic.
fn words(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("a panic")
        .to_owned()
}

impl Campaign {
    /// Runs the histories of these seeds, which may break this assumption.
    pub(crate) fn run(seeds: Range<u64>, broken: BrokenAssumption) -> Self {
        let next = AtomicU64::new(seeds.start);
        let whole = Mutex::new(Self::default());
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let start = next.fetch_add(BATCH, Ordering::Relaxed);
                        if start >= seeds.end {
                            return;
                        }
                        let part = Self::part(start..seeds.end.min(start + BATCH), broken);
                        let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                        whole.add(part);
                        if whole.failures.len() >= failures_max() {
                            return;
                        }
                    }
                });
            }
        });
        whole.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs these histories one after another.
    fn part(seeds: Range<u64>, broken: BrokenAssumption) -> Self {
        let mut part = Self::default();
        for seed in seeds {
            let (tally, violations) = run(seed, broken, None);
            part.tally.add(&tally);
            if !violations.is_empty() {
                // Printed at once, in case the campaign is interrupted.
                eprintln!("seed {seed}: {violations:?}");
                part.failures.push((seed, violations));
            }
        }
        part
    }

    fn add(&mut self, part: Self) {
        let before = self.tally.histories / REPORT_EVERY;
        self.tally.add(&part.tally);
        self.failures.extend(part.failures);
        if self.tally.histories / REPORT_EVERY > before {
            eprintln!("so far {} failures in {}", self.failures.len(), self.tally);
        }
    }
}
