//! Memory, threads and descriptors stay bounded over thousands of locks while nodes fail. One test
//! function, so that nothing else in this process uses any meanwhile.

#![cfg(target_os = "linux")]

use std::fs;
use std::thread;
use std::time::Duration;

use redlatch::LockClient;
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, LONG, take, with_long_timeout};
use support::redis::Server;
use support::servers::Servers;

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .expect("a field")
        .parse()
        .expect("a number");
    // A page has 4 KiB or more. A lower estimate only weakens the check.
    pages * 4096
}

fn entries(directory: &str) -> usize {
    fs::read_dir(directory).expect("Linux has it").count()
}

/// Acquires and releases `pairs` locks in four threads, each with a name of 200 bytes.
fn work(client: &LockClient, pairs: usize) {
    thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                for pair in 0..pairs / 4 {
                    let guard = take(client, format!("{worker}-{pair:0200}"), LONG);
                    if pair % 2 == 0 {
                        drop(guard);
                    } else {
                        drop(guard.release());
                    }
                }
            });
        }
    });
}

#[test]
fn memory_threads_and_descriptors_stay_bounded() {
    a_failed_minority_costs_no_memory_no_threads_and_no_descriptors();
    a_long_wait_for_a_held_lock_costs_no_memory();
}

fn a_failed_minority_costs_no_memory_no_threads_and_no_descriptors() {
    let mut servers = Servers::start(5);
    let round = Duration::from_secs(2);
    let client = with_long_timeout(servers.urls())
        .node_timeout(round)
        .build()
        .expect("the settings are good");
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    work(&client, 1_000);

    let before = (
        resident(),
        entries("/proc/self/fd"),
        entries("/proc/self/task"),
    );
    servers[0].pause();
    servers[1].kill();
    work(&client, 10_000);
    let memory = resident();
    let descriptors = entries("/proc/self/fd");
    // At most 1 MiB waits for a stopped node, sent or not. Without a bound, it would be 6 MiB of
    // bytes by now.
    assert!(
        memory < before.0 + 4 * 1024 * 1024,
        "{} to {memory} bytes",
        before.0
    );
    // One connection was closed, and one may be opening.
    assert!(
        descriptors <= before.1 + 1,
        "{} to {descriptors} descriptors",
        before.1
    );
    // Threads that were just joined may still be listed.
    assert!(eventually(LIMIT, || entries("/proc/self/task") <= before.2));

    // No removal is forgotten either: with some traffic, no key is left on any node.
    servers[0].resume();
    servers[1].restart();
    let is_empty = |server: &Server| server.command(&["DBSIZE"]) == Value::Integer(0);
    let clean = || !client.nodes().is_empty() && servers.iter().all(is_empty);
    assert!(eventually(LIMIT, clean));
}

fn a_long_wait_for_a_held_lock_costs_no_memory() {
    let servers = Servers::start(3);
    let base = Duration::from_micros(100);
    let cap = Duration::from_micros(200);
    let client = with_long_timeout(servers.urls())
        .retry(base, cap)
        .build()
        .expect("the settings are good");
    let _held = take(&client, "held", LONG);
    let wait = Duration::from_millis(300);
    assert!(matches!(
        client.request("held").ttl(LONG).try_lock_for(wait),
        Ok(None)
    ));
    let before = resident();
    assert!(matches!(
        client.request("held").ttl(LONG).try_lock_for(5 * wait),
        Ok(None)
    ));
    let after = resident();
    assert!(
        after < before + 4 * 1024 * 1024,
        "{before} to {after} bytes"
    );
}
