//! Thousands of locks while nodes are ill: what the process holds on to stays bounded. One test, so
//! that nothing else in this process takes memory, threads or descriptors meanwhile.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::thread;
use std::time::Duration;

use redlatch::LockClient;
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, LONG, patient, take};
use support::redis::Server;
use support::servers::Servers;

/// Memory in use, in bytes: resident pages.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = text.split(' ').nth(1).expect("a field").parse().expect("a number");
    // The statistics count in pages of 4 KiB or more, and more only raises what is found.
    pages * 4096
}

fn entries(directory: &str) -> usize {
    fs::read_dir(directory).expect("Linux has it").count()
}

/// So many pairs from four threads, each lock under a name of 200 bytes.
fn work(client: &LockClient, pairs: usize) {
    thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                for pair in 0..pairs / 4 {
                    let guard = take(client, format!("{worker}-{pair:0200}"), LONG);
                    if pair % 2 == 0 { drop(guard) } else { drop(guard.release()) }
                }
            });
        }
    });
}

#[test]
fn what_is_held_on_to_stays_bounded() {
    an_ill_minority_costs_no_memory_no_threads_and_no_descriptors();
    trying_for_long_in_vain_costs_nothing_either();
}

fn an_ill_minority_costs_no_memory_no_threads_and_no_descriptors() {
    let mut servers = Servers::start(5);
    let round = Duration::from_secs(2);
    let client =
        patient(servers.urls()).node_timeout(round).build().expect("the settings are good");
    assert!(eventually(LIMIT, || client.nodes().iter().all(|node| node.is_connected)));
    work(&client, 1_000);

    let before = (resident(), entries("/proc/self/fd"), entries("/proc/self/task"));
    servers[0].pause();
    servers[1].kill();
    work(&client, 10_000);
    let (memory, descriptors) = (resident(), entries("/proc/self/fd"));
    // What waits for a stopped node is at most 1 MiB, sent or not; without a bound it would be 6
    // MiB of bytes alone by now.
    assert!(memory < before.0 + 4 * 1024 * 1024, "{} to {memory} bytes", before.0);
    // One connection has gone, and one may be just under way.
    assert!(descriptors <= before.1 + 1, "{} to {descriptors} descriptors", before.1);
    // Those that were joined a moment ago may not be gone yet.
    assert!(eventually(LIMIT, || entries("/proc/self/task") <= before.2));

    // And nothing is forgotten for it: with some traffic, no key is left on any node.
    servers[0].resume();
    servers[1].restart();
    let is_empty = |server: &Server| server.command(&["DBSIZE"]) == Value::Integer(0);
    let clean = || !client.nodes().is_empty() && servers.iter().all(is_empty);
    assert!(eventually(LIMIT, clean));
}

fn trying_for_long_in_vain_costs_nothing_either() {
    let servers = Servers::start(3);
    let (base, cap) = (Duration::from_micros(100), Duration::from_micros(200));
    let client = patient(servers.urls()).retry(base, cap).build().expect("the settings are good");
    let _held = take(&client, "held", LONG);
    let wait = Duration::from_millis(300);
    assert!(matches!(client.try_lock_for("held", LONG, wait), Ok(None)));
    let before = resident();
    assert!(matches!(client.try_lock_for("held", LONG, 5 * wait), Ok(None)));
    let after = resident();
    assert!(after < before + 4 * 1024 * 1024, "{before} to {after} bytes");
}
