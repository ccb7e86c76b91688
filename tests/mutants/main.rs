//! Mutation tests: each mutant is a small mistake in the source, and names the test that must fail
//! with it.
//!
//! | to try | run |
//! |---|---|
//! | all mutants: `./check --all` | `cargo test --test mutants -- --ignored --nocapture` |
//! | those whose names, items or files contain a word | the same after `REDLATCH_MUTANT=<word>` |
//! | those of changed items, and a tenth of the others: `./check` | the same after two variables |
//!
//! The two variables are `REDLATCH_MUTANT_BASE=<commit>`, since which an item has changed, and
//! `REDLATCH_MUTANT_SEED=<any text>`, which draws the tenth.
//!
//! The `.diff` files here have the mutants, and `docs/mutants.md` is their table, which
//! `REDLATCH_WRITE=1 cargo test --test mutants the_page` writes.
//! The mistakes are made only in copies of the source, below `target`, which are built there.
//!
//! A mutant is killed if it compiles and its test runs and fails, or aborts because of a panic
//! during a panic. A mutant that no longer applies because the source has changed, that does not
//! compile, or that makes its test hang is a defect of the table: this program fails. Plain `cargo
//! test` detects the first of these.

#![expect(
    clippy::unwrap_used,
    reason = "a file of ours that cannot be read fails the test"
)]
#![expect(clippy::print_stdout, reason = "a long run shows its progress")]

mod killer;
mod modules;
mod mutant;
mod scripts;
mod source;
mod switch;
mod table;
mod workshop;

use killer::Killer;
use modules::programs_of;
use mutant::Mutant;
use source::{Base, Change, Sources};
use std::collections::BTreeSet;
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::slice::Iter;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;
use switch::Switched;
use workshop::{Outcome, Programs, Workshop};

/// The minimum number of mutants.
const MUTANTS_MIN: usize = 60;

/// One in this many mutants is drawn by the seed.
const TENTH: u64 = 10;

/// How many of the mutants may need a build of their own, which takes most of a minute on a slow
/// machine.
const ALONE_MAX: usize = 4;

/// How often tests run again that failed without any mistake.
const RETRIES: usize = 2;

/// How many tests run at a time. Some take long to fail, mostly by waiting.
const RUNNERS: usize = 12;

/// A mutant with the place of its mistake, and its number.
type Numbered<'a> = (usize, &'a (Mutant, Change));

/// What draws mutants, if not all are to be tried.
fn seed() -> Option<String> {
    env::var("REDLATCH_MUTANT_SEED").ok()
}

fn draw(seed: &String, mutant: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, mutant).hash(&mut hasher);
    hasher.finish()
}

/// The mutants that the environment chooses. Those of changed items come first: not all that need a
/// build of their own get one.
fn chosen() -> Vec<(Mutant, Change)> {
    let word = env::var("REDLATCH_MUTANT").unwrap_or_default();
    let base = env::var("REDLATCH_MUTANT_BASE")
        .ok()
        .map(|commit| Base::of(&commit));
    let seed = seed();
    let sources = Sources::read();
    let mut changed = Vec::new();
    let mut drawn = Vec::new();
    for mutant in table::mutants() {
        let change = sources
            .locate(&mutant)
            .unwrap_or_else(|why| panic!("{}: {why}", mutant.name));
        let is_named = [&mutant.name, &mutant.item, &change.file]
            .iter()
            .any(|it| it.contains(&word));
        let is_changed = base
            .as_ref()
            .is_some_and(|base| base.differs(&sources, &change));
        let is_drawn = seed
            .as_ref()
            .is_none_or(|seed| draw(seed, &mutant.name) % TENTH == 0);
        if is_named && is_changed {
            println!(
                "changed: {}, {} in {}",
                mutant.name, mutant.item, change.file
            );
            changed.push((mutant, change));
        } else if is_named && is_drawn {
            drawn.push((mutant, change));
        }
    }
    if let Some(seed) = seed {
        changed.sort_by_key(|(mutant, _)| draw(&seed, &mutant.name));
        drawn.sort_by_key(|(mutant, _)| draw(&seed, &mutant.name));
    }
    changed.extend(drawn);
    assert!(
        !changed.is_empty(),
        "no mutant's name, item or file contains {word:?}"
    );
    changed
}

#[test]
fn every_mutant_applies_and_has_a_test_to_kill_it() {
    let sources = Sources::read();
    let mutants = table::mutants();
    assert!(
        mutants.len() >= MUTANTS_MIN,
        "only {} mutants",
        mutants.len()
    );
    let mut names = BTreeSet::new();
    let mut defects = Vec::new();
    for mutant in &mutants {
        if let Err(why) = sources.locate(mutant) {
            defects.push(format!("{}: {why}", mutant.name));
        }
        if !mutant.killer.is_written() {
            defects.push(format!(
                "{}: no test is called {}",
                mutant.name, mutant.killer
            ));
        }
        if !names.insert(&mutant.name) {
            defects.push(format!("{}: two mutants have this name", mutant.name));
        }
    }
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

#[test]
fn the_page_is_the_table_of_the_mutants() {
    table::check_page();
}

#[test]
#[ignore = "builds the library many times, which ./check does in a step of its own"]
fn every_mutant_is_killed() {
    let mutants = chosen();
    let start = Instant::now();
    let killers: BTreeSet<&Killer> = mutants.iter().map(|(mutant, _)| &mutant.killer).collect();
    let workshop = Workshop::open(programs_of(&killers));
    let (programs, switched) = build_switched(&workshop, &killers, &mutants);
    let numbered = || mutants.iter().enumerate();
    let (mut together, mut alone): (Vec<Numbered>, Vec<Numbered>) =
        numbered().partition(|(number, _)| switched.mutants.contains(number));
    // Those of forks fail by waiting for a child. First, or nothing would be left to do meanwhile.
    together.sort_by_key(|(_, (mutant, _))| !mutant.killer.test.starts_with("faults::forks"));
    if seed().is_some() {
        alone.truncate(ALONE_MAX);
    }
    let count = together.len() + alone.len();
    let builds = alone.len() + 1;
    println!(
        "{count} mutants in {builds} builds, the first done after {}",
        passed(start)
    );

    let next = Mutex::new(together.iter());
    let defects = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let workshop = &workshop;
        let programs = &programs;
        let next = &next;
        let defects = &defects;
        scope.spawn(move || {
            for (_, (mutant, change)) in alone {
                let kill = || workshop.with(change, || build_and_run(workshop, &mutant.killer));
                // Not in one statement: that would hold the lock while the test runs.
                let defect = try_mutant(mutant, kill);
                defects.lock().unwrap().extend(defect);
            }
        });
        let killers = &killers;
        scope.spawn(move || {
            expect_all_to_pass(workshop, programs, killers);
            println!(
                "{} tests pass without any mistake, after {}",
                killers.len(),
                passed(start)
            );
        });
        for _ in 0..RUNNERS {
            scope.spawn(move || {
                while let Some((number, (mutant, _))) = take(next) {
                    let kill = || run(workshop, programs, &mutant.killer, Some(*number));
                    // Not in one statement: that would hold the lock while the test runs.
                    let defect = try_mutant(mutant, kill);
                    defects.lock().unwrap().extend(defect);
                }
            });
        }
    });
    let defects = defects.into_inner().unwrap();
    println!(
        "{count} mutants, {} not killed, {}",
        defects.len(),
        passed(start)
    );
    assert!(
        defects.is_empty(),
        "not killed:\n\n{}",
        defects.join("\n\n")
    );
}

/// Builds all killers once, with as many mutants behind switches as compile together.
fn build_switched(
    workshop: &Workshop,
    killers: &BTreeSet<&Killer>,
    mutants: &[(Mutant, Change)],
) -> (Programs, Switched) {
    let changes: Vec<&Change> = mutants.iter().map(|(_, change)| change).collect();
    let targets: BTreeSet<&[String]> = killers.iter().map(|killer| &*killer.target).collect();
    let targets: Vec<String> = targets.iter().copied().flatten().cloned().collect();
    let mut excluded = BTreeSet::new();
    loop {
        let switched = Switched::new(&changes, &excluded, source::original);
        match workshop.with_texts(&switched.texts, || workshop.build(&targets)) {
            Ok(programs) => return (workshop.keep(programs), switched),
            Err(Outcome::NotBuilt(output)) => {
                let at_fault = switched.at_fault(&output);
                assert!(!at_fault.is_empty(), "without any mistake: {output}");
                for number in &at_fault {
                    println!("gets a build of its own: {}", mutants[*number].0.name);
                }
                excluded.extend(at_fault);
            }
            Err(other) => panic!("without any mistake: {}", other.text()),
        }
    }
}

/// The next one, with the lock held no longer than it takes to find it.
fn take<'a, 'b>(next: &Mutex<Iter<'a, Numbered<'b>>>) -> Option<&'a Numbered<'b>> {
    next.lock().unwrap().next()
}

/// Tries one mutant. Returns a message if it is not killed.
fn try_mutant(mutant: &Mutant, kill: impl FnOnce() -> Outcome) -> Option<String> {
    let start = Instant::now();
    let outcome = kill();
    let is_killed = matches!(outcome, Outcome::Failed(_));
    let verdict = if is_killed {
        "killed by"
    } else {
        "NOT KILLED by"
    };
    let Mutant {
        name,
        breaks,
        killer,
        ..
    } = mutant;
    let took = passed(start);
    println!("{name:<55} {breaks:>3} {took:>7}  {verdict} {killer}");
    (!is_killed).then(|| format!("{name}: {}", outcome.text()))
}

/// Builds with the mistake that has been made, and runs the test that must notice.
fn build_and_run(workshop: &Workshop, killer: &Killer) -> Outcome {
    match workshop.build(&killer.target) {
        Ok(programs) => run(workshop, &programs, killer, None),
        Err(outcome) => outcome,
    }
}

/// Runs the test that must notice.
fn run(
    workshop: &Workshop,
    programs: &Programs,
    killer: &Killer,
    mistake: Option<usize>,
) -> Outcome {
    workshop.run(&programs[&killer.program()], &[&killer.test], mistake)
}

/// A test that fails without any mistake would kill everything.
fn expect_all_to_pass(workshop: &Workshop, programs: &Programs, killers: &BTreeSet<&Killer>) {
    for (name, program) in programs {
        let tests = killers.iter().filter(|killer| killer.program() == *name);
        let tests: Vec<&str> = tests.map(|killer| &*killer.test).collect();
        // Without a name, the unit tests of a crate would all run.
        if tests.is_empty() {
            continue;
        }
        let mut outcome = workshop.run(program, &tests, None);
        // One of them may fail by chance: as in tests/retry, that is printed.
        for _ in 0..RETRIES {
            if matches!(outcome, Outcome::Passed) {
                break;
            }
            println!(
                "FAILED WITHOUT ANY MISTAKE, runs once more: {name}: {}",
                outcome.text()
            );
            outcome = workshop.run(program, &tests, None);
        }
        let is_passed = matches!(outcome, Outcome::Passed);
        assert!(is_passed, "without any mistake, {name}: {}", outcome.text());
    }
}

fn passed(start: Instant) -> String {
    format!("{:.1} s", start.elapsed().as_secs_f64())
}
