//! Runs each example on embedded nodes, and some on an embedded ensemble too. Their own checks say
//! whether the result is as described.

use redlatch::embedded::{Ensemble, Nodes};
use std::time::{Duration, Instant};

#[path = "../../../examples/catalog.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod catalog;
#[path = "../../../examples/cron_once.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod cron_once;
#[path = "../../../examples/doctor.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod doctor;
#[path = "../../../examples/fenced_register.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod fenced_register;
#[path = "../../../examples/fenced_write.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod fenced_write;
#[path = "../../../examples/leader_election.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod leader_election;
#[path = "../../../examples/leader_epoch.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod leader_epoch;
#[path = "../../../examples/licences.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod licences;
#[path = "../../../examples/once.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod once;
#[path = "../../../examples/once_per.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod once_per;
#[path = "../../../examples/sets_of_nodes.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod sets_of_nodes;
#[path = "../../../examples/transfer.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod transfer;

/// For a very busy machine; on an idle one, each takes a few seconds at most.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs an example, which checks its own result.
#[track_caller]
fn run_example<E: std::fmt::Display>(story: fn(&[String]) -> Result<(), E>) {
    run_on(&Nodes::start(3).expect("nodes can be started"), story);
}

#[track_caller]
fn run_on<E: std::fmt::Display>(nodes: &Nodes, story: fn(&[String]) -> Result<(), E>) {
    let start = Instant::now();
    if let Err(error) = story(&nodes.urls()) {
        panic!("the example failed: {error}");
    }
    assert!(start.elapsed() < LIMIT, "it took {:?}", start.elapsed());
    // It used these nodes and no others: without them, it fails.
    (0..3).for_each(|node| nodes.stop(node));
}

/// The same on ZooKeeper.
#[track_caller]
fn run_on_ensemble<E: std::fmt::Display>(story: fn(&[String]) -> Result<(), E>) {
    let ensemble = Ensemble::start().expect("a server can be started");
    if let Err(error) = story(&[ensemble.url()]) {
        panic!("the example failed: {error}");
    }
}

#[test]
fn a_late_write_is_refused_on_an_ensemble() {
    run_on_ensemble(fenced_write::story);
}

#[test]
fn no_licence_is_used_twice_at_a_time_on_an_ensemble() {
    run_on_ensemble(licences::story);
}

#[test]
fn another_process_becomes_the_leader_on_an_ensemble() {
    run_on_ensemble(leader_election::story);
}

#[test]
fn no_money_is_lost_on_an_ensemble() {
    run_on_ensemble(transfer::story);
}

#[test]
fn a_job_runs_once() {
    run_example(cron_once::story);
}

#[test]
fn nodes_on_one_machine_are_found() {
    run_example(doctor::story);
}

#[test]
fn nobody_reads_a_catalog_that_is_half_written() {
    run_example(catalog::story);
}

#[test]
fn no_licence_is_used_twice_at_a_time() {
    run_example(licences::story);
}

#[test]
fn a_late_write_is_refused() {
    run_example(fenced_write::story);
}

#[test]
fn another_process_becomes_the_leader() {
    run_example(leader_election::story);
}

#[test]
fn no_money_is_lost() {
    run_example(transfer::story);
}

#[test]
fn a_register_refuses_a_holder_that_was_stopped() {
    run_example(fenced_register::story);
}

#[test]
fn a_card_is_charged_once() {
    run_example(once::story);
}

#[test]
fn a_daily_job_runs_on_one_machine() {
    run_example(once_per::story);
}

#[test]
fn a_name_that_moves_to_a_new_set_has_one_holder() {
    run_example(sets_of_nodes::story);
}

#[test]
fn a_deposed_leader_is_refused() {
    run_example(leader_epoch::story);
}
