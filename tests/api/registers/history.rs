//! Histories of registers: clients in threads and processes read and change registers while
//! servers, the network and the clients fail, and a checker says whether what they saw is
//! linearizable.
//!
//! | to | run |
//! |---|---|
//! | see the counts | `cargo test --test api registers::history:: -- --nocapture` |
//! | run each history for ten minutes | the same with `REDLATCH_HISTORY_SECONDS=600` |
//! | choose the same operations and faults again | the same with the `REDLATCH_HISTORY_SEED` it
//! printed |
//!
//! The seed determines operations and faults, but not the scheduling of threads and processes: it
//! does not replay a history, as the simulator (`tests/sim`) does.

#![cfg(target_os = "linux")]

mod checker;
mod client_process;
mod faulty_servers;
mod journal;
mod operation;
mod run;
mod state;
mod worker;
mod wrong_histories;

use client_process::Clients;
use faulty_servers::{FaultyServers, Memory, doubled};
use redlatch::RegisterError;
use run::Run;
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread;
use std::time::{Duration, Instant};
use support::chance::Chance;
use support::locks::with_long_timeout;
use support::program::in_memory;
use worker::REGISTERS;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

/// How long the faults of a history last.
fn time(default: u64) -> Duration {
    Duration::from_secs(number("REDLATCH_HISTORY_SECONDS").unwrap_or(default))
}

fn seed() -> u64 {
    let seed = number("REDLATCH_HISTORY_SEED")
        .unwrap_or_else(|| RandomState::new().build_hasher().finish());
    eprintln!("REDLATCH_HISTORY_SEED={seed}");
    seed
}

#[test]
fn durable_nodes_are_killed_and_restarted_and_nothing_is_lost() {
    durable_nodes_suffer(3, 5);
}

#[test]
fn a_node_that_has_forgotten_has_no_vote_and_the_others_lose_nothing() {
    let seed = seed();
    let mut chance = Chance::new(seed);
    let mut servers = FaultyServers::formed(3, Memory::Volatile);
    let run = Run::start(&servers.urls(), (3, 2), seed);
    servers.forget(0);
    run.suffer(time(3), &mut servers, &mut chance, |_| ());
    servers.end_all_faults();
    run::check("in memory", &run.finish(), &servers.faults);
    // With a majority that has forgotten there is an error, and no empty register.
    servers.forget(1);
    let client = with_long_timeout(servers.servers.urls()).build().unwrap();
    for name in REGISTERS {
        let error = client.register(name).unwrap().read().unwrap_err();
        let expected = matches!(
            error,
            RegisterError::NoQuorum {
                may_have_happened: false,
                ..
            }
        );
        assert!(expected || error == RegisterError::NotFormed, "{error}");
    }
}

#[test]
fn of_five_nodes_two_may_fail_at_a_time() {
    durable_nodes_suffer(5, 3);
}

/// This many durable nodes have faults for so long.
fn durable_nodes_suffer(nodes: usize, seconds: u64) {
    let seed = seed();
    let mut chance = Chance::new(seed);
    let mut servers = FaultyServers::formed(nodes, Memory::Durable);
    let run = Run::start(&servers.urls(), (3, 2), seed);
    run.suffer(time(seconds), &mut servers, &mut chance, |_| ());
    servers.end_all_faults();
    run::check(
        &format!("{nodes} durable nodes"),
        &run.finish(),
        &servers.faults,
    );
}

#[test]
fn requests_arrive_twice_and_again_much_later() {
    let seed = seed();
    let mut chance = Chance::new(seed);
    let (_servers, relays) = doubled(3);
    let run = Run::start(&support::relay::urls(&relays), (3, 2), seed);
    let start = Instant::now();
    let mut again = 0;
    while run.goes_on(start, time(2)) {
        let relay = &relays[chance.below(relays.len())];
        match chance.below(12) {
            0 => relay.hang_up(),
            1 => relay.repeat_after(Some(chance.millis(0..=20))),
            2..=5 => relay.repeat_after(None),
            _ => {
                // All that clients have written so far, the latest first.
                relay.deliver_again();
                again += 1;
            }
        }
        thread::sleep(chance.millis(20..=150));
    }
    relays.iter().for_each(|relay| relay.repeat_after(None));
    run::check(
        "twice",
        &run.finish(),
        &[("all delivered again", again)].into(),
    );
}

#[test]
fn clients_are_stopped_and_killed_in_the_middle() {
    let seed = seed();
    let mut chance = Chance::new(seed);
    let folder = in_memory();
    let mut servers = FaultyServers::formed(3, Memory::Durable);
    let run = Run::start(&servers.urls(), (2, 2), seed);
    let mut clients = Clients::start(&servers.urls(), folder.path(), seed);
    run.suffer(time(4), &mut servers, &mut chance, |chance| {
        clients.step(chance);
    });
    servers.end_all_faults();
    eprintln!(
        "{} processes stopped, {} killed",
        clients.stopped, clients.killed
    );
    drop(clients);
    let mut operations = run.finish();
    let of_processes = journal::read(folder.path());
    assert!(!of_processes.is_empty(), "the processes did nothing");
    operations.extend(of_processes);
    run::check("processes", &operations, &servers.faults);
}

/// The code of the client processes. Does nothing without the environment variable.
#[test]
fn as_a_client_process() {
    if let Ok(urls) = env::var(client_process::URLS) {
        client_process::run(&urls);
    }
}
