//! Deterministic simulation: the library's own operations, rounds and sessions, in virtual time,
//! over a network and nodes that fail in every way the algorithm is meant to survive. One seed is
//! one history.
//!
//! | to | run |
//! |---|---|
//! | replay a history, with a trace | `REDLATCH_SEED=<seed> cargo test --test sim -- --nocapture` |
//! | run more histories than usual | `REDLATCH_SEEDS=<count> cargo test --release --test sim` |
//!
//! What is real: `engine` (taking, extending, releasing) and `node` (sessions, rounds, every byte
//! that is written or read). What is simulated: time, the network, the nodes' processes around the
//! model in `embedded`, and the client's loop and driver, which follow `src/client.rs` and
//! `src/net` (see `client.rs` and `worker.rs` for where they differ). What decides is in
//! `checker.rs`.

mod chance;
mod checker;
mod client;
mod clock;
mod network;
mod node;
mod options;
mod queue;
mod sabotage;
mod simulation;
mod stage;
mod worker;

use checker::Invariant;
use options::Beyond;
use sabotage::Sabotage;
use simulation::{Simulation, Verdict};
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How many histories plain `cargo test` runs: about ten seconds in a debug build.
const SEEDS: u64 = 300;
/// How many of seeds that nobody has ever tried.
const FRESH: u64 = 30;

fn run(seed: u64, beyond: Beyond, sabotage: Option<Sabotage>) -> Verdict {
    Simulation::new(seed, beyond, sabotage, false).run()
}

/// Is one history to be replayed, and nothing else done?
fn replayed() -> Option<u64> {
    env::var("REDLATCH_SEED").ok().map(|seed| seed.parse().expect("REDLATCH_SEED is a number"))
}

fn count(otherwise: u64) -> u64 {
    env::var("REDLATCH_SEEDS")
        .map_or(otherwise, |count| count.parse().expect("REDLATCH_SEEDS is a number"))
}

/// Runs the histories of these seeds, which must keep every promise.
fn expect_promises_kept(seeds: Range<u64>) {
    let (mut events, mut faults, mut grants, mut extensions) = (0, 0, 0, 0);
    for seed in seeds.clone() {
        let how_to = format!("REDLATCH_SEED={seed} cargo test --test sim -- --nocapture");
        let history = catch_unwind(AssertUnwindSafe(|| run(seed, Beyond::Nothing, None)));
        let verdict = history.unwrap_or_else(|cause| {
            eprintln!("seed {seed} panicked: {how_to}");
            resume_unwind(cause)
        });
        let violations = &verdict.checker.violations;
        assert!(violations.is_empty(), "seed {seed}: {violations:?}\n{how_to}");
        events += verdict.events;
        faults += verdict.faults;
        grants += verdict.checker.grants;
        extensions += verdict.checker.extensions;
    }
    eprintln!(
        "seeds {seeds:?}: {events} events, {faults} faults, {grants} grants, {extensions} extensions"
    );
    let histories = seeds.end - seeds.start;
    assert!(grants > histories, "histories in which nobody gets a lock prove nothing");
    assert!(
        extensions > histories / 10 && faults > histories,
        "nor those in which nothing happens"
    );
}

/// How many of these histories break which promise.
fn broken(seeds: Range<u64>, beyond: Beyond, sabotage: Option<Sabotage>) -> Vec<Invariant> {
    let verdicts = seeds.map(|seed| run(seed, beyond, sabotage));
    verdicts.flat_map(|verdict| verdict.checker.violations).map(|(which, _)| which).collect()
}

#[test]
fn a_seed_can_be_replayed() {
    let Some(seed) = replayed() else { return };
    let verdict = Simulation::new(seed, Beyond::Nothing, None, true).run();
    let violations = verdict.checker.violations;
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn histories_within_the_assumptions_keep_every_promise() {
    if replayed().is_none() {
        expect_promises_kept(0..count(SEEDS));
    }
}

#[test]
fn so_do_histories_that_nobody_has_seen() {
    if replayed().is_none() {
        let start = RandomState::new().build_hasher().finish() >> 1;
        eprintln!("fresh seeds from {start}");
        expect_promises_kept(start..start + count(FRESH));
    }
}

#[test]
fn one_seed_is_one_history() {
    for seed in 0..5 {
        let (first, second) = (run(seed, Beyond::Nothing, None), run(seed, Beyond::Nothing, None));
        assert_eq!((first.digest, first.events), (second.digest, second.events));
        assert_ne!(first.digest, run(seed + 1, Beyond::Nothing, None).digest);
    }
}

#[test]
fn beyond_the_assumptions_two_clients_hold_one_lock() {
    for beyond in [Beyond::LostData, Beyond::Drift] {
        let seen = (0..200).step_by(20).find(|start| {
            broken(*start..start + 20, beyond, None).contains(&Invariant::MutualExclusion)
        });
        assert!(seen.is_some(), "{beyond:?} is harmless, or the simulator blind");
    }
}

#[test]
fn every_mistake_is_caught() {
    for (mistake, promise) in sabotage::ALL {
        let seen = (0..400).step_by(5).find(|start| {
            broken(*start..start + 5, Beyond::Nothing, Some(mistake)).contains(&promise)
        });
        eprintln!("{mistake:?} breaks {promise:?} by seed {seen:?}");
        assert!(seen.is_some(), "{mistake:?} is not caught");
    }
}
