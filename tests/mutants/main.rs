//! Mutation tests: each mutant is a small mistake in the source, and names the test that must fail
//! with it.
//!
//! | to | run |
//! |---|---|
//! | try all mutants, as `./check` does | `cargo test --test mutants -- --ignored --nocapture` |
//! | try those whose names contain a word | the same after `REDLATCH_MUTANT=<word>` |
//!
//! `table.md` lists which test kills which mutant; the `.diff` files beside it contain the changes.
//! The mistakes are made only in copies of the source, below `target`, which are built there.
//!
//! A mutant is killed if it compiles and its test runs and fails, or aborts because of a panic
//! during a panic. A mutant that no longer applies because the source has changed, that does not
//! compile, or that makes its test hang is a defect of the table: this program fails. Plain `cargo
//! test` detects the first of these.

#![expect(clippy::unwrap_used, reason = "a file of ours that cannot be read fails the test")]
#![expect(clippy::print_stdout, reason = "a long run shows its progress")]

mod change;
mod table;
mod workshop;

use change::Change;
use std::collections::BTreeSet;
use std::env;
use std::slice::Iter;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;
use table::{Killer, Row};
use workshop::{Outcome, Workshop};

/// The minimum number of mutants.
const MUTANTS_MIN: usize = 60;

/// How many are tried at a time. Some tests take long to fail, mostly by waiting.
const WORKSHOPS: usize = 2;

/// The rows of the table, each with its change.
fn mutants() -> Vec<(Row, Change)> {
    let mut changes = change::all();
    let rows = table::rows();
    let mutants: Vec<(Row, Change)> = rows
        .into_iter()
        .map(|row| {
            let place = changes.iter().position(|change| change.mutant == row.mutant);
            let place = place.unwrap_or_else(|| panic!("no change is called {:?}", row.mutant));
            (row, changes.remove(place))
        })
        .collect();
    let left: Vec<&str> = changes.iter().map(|change| &*change.mutant).collect();
    assert!(left.is_empty(), "not in the table, or twice in the changes: {left:?}");
    mutants
}

#[test]
fn every_mutant_applies_and_has_a_test_to_kill_it() {
    let mutants = mutants();
    assert!(mutants.len() >= MUTANTS_MIN, "only {} mutants", mutants.len());
    let mut defects = Vec::new();
    for (row, change) in &mutants {
        let source = workshop::original(&change.file);
        if let Err(why) = change.apply(&source) {
            defects.push(format!("{}: {why}", row.mutant));
        }
        if !row.killer.is_written() {
            defects.push(format!("{}: no test is called {}", row.mutant, row.killer));
        }
    }
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

#[test]
#[ignore = "builds the library once for each mutant, which ./check does in a step of its own"]
fn every_mutant_is_killed() {
    let word = env::var("REDLATCH_MUTANT").unwrap_or_default();
    let mut mutants = mutants();
    mutants.retain(|(row, _)| row.mutant.contains(&word));
    assert!(!mutants.is_empty(), "no mutant's name contains {word:?}");

    let start = Instant::now();
    let killers: BTreeSet<&Killer> = mutants.iter().map(|(row, _)| &row.killer).collect();
    expect_all_to_pass(&Workshop::open(0), &killers);
    println!("{} tests pass on the unchanged source, after {}", killers.len(), passed(start));

    let (next, defects) = (Mutex::new(mutants.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for number in 0..WORKSHOPS {
            scope.spawn({
                let (next, defects) = (&next, &defects);
                move || {
                    let workshop = Workshop::open(number);
                    while let Some((row, change)) = take(next) {
                        defects.lock().unwrap().extend(try_mutant(&workshop, row, change));
                    }
                }
            });
        }
    });
    let defects = defects.into_inner().unwrap();
    println!("{} mutants, {} not killed, {}", mutants.len(), defects.len(), passed(start));
    assert!(defects.is_empty(), "not killed:\n\n{}", defects.join("\n\n"));
}

/// The next one, with the lock held no longer than it takes to find it.
fn take<'a>(next: &Mutex<Iter<'a, (Row, Change)>>) -> Option<&'a (Row, Change)> {
    next.lock().unwrap().next()
}

/// Tries one mutant, and says what is wrong if it is not killed.
fn try_mutant(workshop: &Workshop, row: &Row, change: &Change) -> Option<String> {
    let start = Instant::now();
    let outcome = workshop.with(change, || kill(workshop, &row.killer));
    let is_killed = matches!(outcome, Outcome::Failed(_));
    let verdict = if is_killed { "killed by" } else { "NOT KILLED by" };
    let (mutant, breaks, took) = (&row.mutant, &row.breaks, passed(start));
    println!("{mutant:<55} {breaks:>3} {took:>7}  {verdict} {}", row.killer);
    (!is_killed).then(|| format!("{mutant}: {}", outcome.told()))
}

/// Builds with the mistake that has been made, and runs the test that must notice.
fn kill(workshop: &Workshop, killer: &Killer) -> Outcome {
    match workshop.build(&killer.target) {
        Ok(program) => workshop.run(&program, &[&killer.test]),
        Err(outcome) => outcome,
    }
}

/// A test that fails without any mistake would kill everything.
fn expect_all_to_pass(workshop: &Workshop, killers: &BTreeSet<&Killer>) {
    let targets: BTreeSet<&[String]> = killers.iter().map(|killer| &*killer.target).collect();
    // All at once, which is faster than one after another.
    let built = workshop.build(&targets.iter().copied().flatten().cloned().collect::<Vec<_>>());
    assert!(built.is_ok(), "without any mutant: {}", built.unwrap_err().told());
    for target in targets {
        let tests = killers.iter().filter(|killer| *killer.target == *target);
        let tests: Vec<&str> = tests.map(|killer| &*killer.test).collect();
        let program = workshop.build(target);
        let outcome = program.map_or_else(|outcome| outcome, |path| workshop.run(&path, &tests));
        let is_passed = matches!(outcome, Outcome::Passed);
        assert!(is_passed, "without any mutant, {target:?}: {}", outcome.told());
    }
}

fn passed(start: Instant) -> String {
    format!("{:.1} s", start.elapsed().as_secs_f64())
}
