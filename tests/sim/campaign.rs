//! Many histories, on all cores: which of them broke a promise, and what happened in all of them.

use crate::checker::Invariant;
use crate::options::Beyond;
use crate::sabotage::Sabotage;
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

/// How many histories a thread takes on at a time.
const BATCH: u64 = 64;

/// After how many histories a long campaign says how it goes.
const REPORT_EVERY: u64 = 100_000;

/// After how many seeds that broke a promise it ends, unless `REDLATCH_FAILURES` says otherwise.
const FAILURES_MAX: usize = 5;

fn failures_max() -> usize {
    let text = env::var("REDLATCH_FAILURES").ok();
    text.map_or(FAILURES_MAX, |most| most.parse().expect("REDLATCH_FAILURES is a number"))
}

/// What came of a campaign.
#[derive(Debug, Default)]
pub(crate) struct Campaign {
    pub(crate) tally: Tally,
    /// Seeds and what went wrong in their histories.
    pub(crate) failures: Vec<(u64, Vec<(Invariant, String)>)>,
}

/// Runs one history. A panic breaks a promise as well.
pub(crate) fn run(
    seed: u64,
    beyond: Beyond,
    sabotage: Option<Sabotage>,
) -> (Tally, Vec<(Invariant, String)>) {
    let history = || Simulation::new(seed, beyond, sabotage, false).run();
    match catch_unwind(AssertUnwindSafe(history)) {
        Ok(verdict) => (verdict.tally, verdict.checker.violations),
        Err(cause) => (Tally::default(), vec![(Invariant::Panic, words(&*cause))]),
    }
}

/// What a thread said when it panicked.
fn words(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

impl Campaign {
    /// Runs the histories of these seeds, within the assumptions.
    pub(crate) fn run(seeds: Range<u64>) -> Self {
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
                        let part = Self::part(start..seeds.end.min(start + BATCH));
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
    fn part(seeds: Range<u64>) -> Self {
        let mut part = Self::default();
        for seed in seeds {
            let (tally, violations) = run(seed, Beyond::Nothing, None);
            part.tally.add(&tally);
            if !violations.is_empty() {
                // A campaign that is broken off must not take this with it.
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
