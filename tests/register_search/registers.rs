//! Histories of registers: those of the library, and those with a mistake.

use crate::expect::{broken, broken_from, sound, sound_walks};
use crate::mistake::Mistake;
use crate::plan::{Plan, Verb};
use crate::step::Violation::NoLinearization;
use Verb::{Append, AppendToAny, Create, Delete, Read, Sweep};

/// How many states of each plan plain `cargo test` searches, and how many walks it takes.
const STATES: u64 = 1_500;
const WALKS: u64 = 128;

#[test]
fn small_histories_are_sound() {
    let plans: [(&str, &[&[Verb]]); 8] = [
        ("two change", &[&[Append], &[Append]]),
        ("one changes, one reads twice", &[&[Append], &[Read, Read]]),
        (
            "changes in one round beside another",
            &[&[Append, Append], &[Append]],
        ),
        (
            "one creates and deletes, one reads",
            &[&[Append, Delete], &[Read]],
        ),
        (
            "one creates and deletes, one changes",
            &[&[Append, Delete], &[Append]],
        ),
        (
            "one creates and deletes, one sweeps",
            &[&[Append, Delete, Append], &[Sweep]],
        ),
        (
            "one creates in one round, one changes what it finds",
            &[&[Create], &[AppendToAny, Read]],
        ),
        (
            "one creates in one round, one deletes and sweeps",
            &[&[Create], &[Delete, Sweep]],
        ),
    ];
    for (name, clients) in plans {
        sound(name, Plan::new(clients).rounds(3), STATES);
    }
}

#[test]
fn random_walks_are_sound() {
    sound_walks("walks", WALKS, Plan::any);
    sound_walks("walks with many changes", WALKS / 4, Plan::many_changes);
    sound_walks(
        "walks in which one creates in one round",
        WALKS / 4,
        Plan::created,
    );
}

/// Clients of which some change a register, and others read it.
fn changed() -> Plan {
    Plan::new(&[
        &[Append, Append, Append],
        &[Append, Append],
        &[Read, Append, Read],
    ])
}

/// Clients that delete what others create.
fn deleted() -> Plan {
    let often = [Append, Delete, Append, Delete];
    Plan::new(&[&often, &often, &often[..3]])
}

#[test]
fn a_node_that_leaves_out_a_rule_of_ballots_is_found() {
    broken(Mistake::AcceptBelowPromise, NoLinearization, changed());
    broken(Mistake::NumberOfTwoOwners, NoLinearization, changed());
}

#[test]
fn a_node_that_leaves_out_a_rule_of_the_floor_is_found() {
    broken(Mistake::NoFloor, NoLinearization, deleted());
    broken_from(1440, Mistake::FloorOfDeletion, NoLinearization, deleted());
    broken(Mistake::AbsentIgnoresFloor, NoLinearization, deleted());
}

#[test]
fn a_node_that_votes_after_a_loss_is_found() {
    let plan = Plan {
        losses: 1,
        ..changed()
    };
    broken_from(470, Mistake::ForgetfulNodeVotes, NoLinearization, plan);
}

#[test]
fn a_client_that_leaves_out_a_rule_of_reading_is_found() {
    let reads = || {
        Plan::new(&[
            &[Append, Append],
            &[Append, Delete],
            &[Read, Read],
            &[Read, Read],
        ])
    };
    broken(Mistake::ReadsNewest, NoLinearization, reads());
    broken_from(260, Mistake::DeletedIsAbsent, NoLinearization, reads());
}

#[test]
fn a_client_that_leaves_out_a_rule_of_changing_is_found() {
    broken(Mistake::NextWithoutMajority, NoLinearization, changed());
    broken(Mistake::MadeAgain, NoLinearization, changed());
    broken(Mistake::ForgetsEarlierBallots, NoLinearization, changed());
    broken(Mistake::CollectsAtMajority, NoLinearization, deleted());
    broken(
        Mistake::CreatesWhatOthersCreate,
        NoLinearization,
        Plan::new(&[&[Create], &[Append]]),
    );
}
