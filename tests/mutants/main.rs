//! Sabotage of the real source: each mutant is a small mistake that somebody could make in `src`,
//! and names the test that must fail when it is made.
//!
//! | to | run |
//! |---|---|
//! | try all mutants, as `./check` does | `cargo test --test mutants -- --ignored --nocapture` |
//! | try those whose name contains a word | the same after `REDLATCH_MUTANT=<word>` |
//!
//! Which test kills which mutant is in `table.md`; what each one changes is in the `.diff` files
//! beside it. Nothing of this is in the library: the mistakes are made in a copy of the source,
//! below `target`, which is built there and nowhere else.
//!
//! A mutant counts as killed if it compiles and its test runs and fails. One that no longer applies
//! because the source has changed, that does not compile, or that makes its test hang is a defect
//! of the table: this program fails, and plain `cargo test` sees the first of these at once.

#![expect(clippy::unwrap_used, reason = "a file of ours that cannot be read fails the test")]

mod change;
mod table;
mod workshop;

use change::Change;
use std::collections::BTreeSet;
use std::env;
use std::time::{Duration, Instant};
use table::{Killer, Row};
use workshop::{Outcome, Workshop};

/// No fewer mistakes than this are tried.
const MUTANTS_MIN: usize = 60;

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
    let workshop = Workshop::open();
    let killers: BTreeSet<&Killer> = mutants.iter().map(|(row, _)| &row.killer).collect();
    expect_all_to_pass(&workshop, &killers);
    println!("{} tests pass on the unchanged source, {:?}", killers.len(), rounded(start));

    let mut defects = Vec::new();
    for (row, change) in &mutants {
        let start = Instant::now();
        let outcome = workshop.with(change, || workshop.run(&row.killer));
        let is_killed = matches!(outcome, Outcome::Failed(_));
        let verdict = if is_killed { "killed by" } else { "NOT KILLED by" };
        println!(
            "{:<55} {:>4} {:>5.1} s  {verdict} {}",
            row.mutant,
            row.breaks,
            start.elapsed().as_secs_f64(),
            row.killer
        );
        if !is_killed {
            defects.push(format!("{}: {}", row.mutant, outcome.told()));
        }
    }
    println!("{} mutants in {:?}", mutants.len(), rounded(start));
    assert!(defects.is_empty(), "{} not killed:\n\n{}", defects.len(), defects.join("\n\n"));
}

fn expect_all_to_pass(workshop: &Workshop, killers: &BTreeSet<&Killer>) {
    for killer in killers {
        let outcome = workshop.run(killer);
        let is_passed = matches!(outcome, Outcome::Passed);
        assert!(is_passed, "without any mutant, {killer}: {}", outcome.told());
    }
}

fn rounded(start: Instant) -> Duration {
    Duration::from_secs(start.elapsed().as_secs())
}
