//! Client processes that protect a counter and a log with a lock, while the nodes, the network and
//! the processes fail in all ways that the library must survive; and a checker that reads the
//! counter and the log afterwards.
//!
//! | to | run |
//! |---|---|
//! | see the counts | `cargo test --test soak -- --nocapture` |
//! | run for half an hour | the same with `REDLATCH_SOAK_SECONDS=1800` |
//! | choose the same faults again | the same with the `REDLATCH_SOAK_SEED` it printed |
//!
//! The seed determines the faults, but not the scheduling of processes: it does not replay a
//! history, as the simulator (`tests/sim`) does. The assumptions of the lock hold: servers lose
//! their data, but the clients' restart guard is on, and no clock jumps.

#![cfg(target_os = "linux")]

mod checker;
mod client;
mod clients;
mod faulty_servers;
mod figures;
mod journal;

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread;
use std::time::{Duration, Instant};

use checker::Findings;
use clients::Clients;
use faulty_servers::FaultyServers;
use figures::Figures;
use journal::{Journal, RESOURCES};
use support::chance::Chance;
use support::locks::{LIMIT, all_nodes_client, take};
use support::program::in_memory;

const NODES: usize = 5;
const STEP: Duration = Duration::from_millis(25);

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

#[test]
fn the_protected_data_stays_consistent_under_all_faults() {
    let time = Duration::from_secs(number("REDLATCH_SOAK_SECONDS").unwrap_or(12));
    let seed =
        number("REDLATCH_SOAK_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    eprintln!("{} s of faults, REDLATCH_SOAK_SEED={seed}", time.as_secs());
    let mut chance = Chance::new(seed);
    let folder = in_memory();
    (0..RESOURCES.len()).for_each(|resource| Journal::create(folder.path(), resource));
    let mut servers = FaultyServers::open(NODES);
    let mut clients = Clients::start(&servers.urls(), folder.path());

    let start = Instant::now();
    let mut figures = Vec::new();
    while start.elapsed() < time {
        servers.step(&mut chance);
        clients.step(&mut chance);
        if figures.len() < (20 * start.elapsed().as_millis() / time.as_millis()) as usize {
            figures.push(clients.figures_of_the_oldest());
        }
        thread::sleep(STEP);
    }
    servers.end_all_faults();
    let tally = clients.finish();
    let left = servers.keys();
    let leaked = servers.leaked();
    let found = checker::check(folder.path());

    let (early, late) = figures.split_at(figures.len() / 2);
    let early = Figures::most(&early[early.len() / 4..]);
    let late = Figures::most(late);
    eprintln!("by clients that ran to their end: {tally:?}");
    eprintln!("keys left by the clients: {left}, after their ttl: {leaked}");
    report(&found, &servers, &clients, &figures);

    assert_eq!((found.overlaps, found.lost_updates, leaked), (0, 0, 0));
    assert!(found.torn <= clients.killed && found.open <= clients.killed * 3);
    assert!(found.counted > 0 && !servers.faults.is_empty());
    assert!(
        late.written <= early.written + 1024 * 1024,
        "{early} grew to {late}"
    );
    // One connection may be closing while the next one opens.
    assert!(
        late.descriptors <= early.descriptors + 1,
        "{early} grew to {late}"
    );
    assert!(late.threads <= early.threads, "{early} grew to {late}");
    let after = all_nodes_client(servers.urls());
    RESOURCES
        .iter()
        .for_each(|name| drop(take(&after, name, LIMIT)));
}

/// Prints what has happened.
fn report(found: &Findings, servers: &FaultyServers, clients: &Clients, figures: &[Figures]) {
    eprintln!(
        "acquisitions: {}, of which counted: {}",
        found.sections, found.counted
    );
    eprintln!("faults: {}", servers.faults.values().sum::<u64>());
    servers
        .faults
        .iter()
        .for_each(|(name, count)| eprintln!("  {count:6} {name}"));
    eprintln!(
        "  {:6} clients killed, {} frozen",
        clients.killed, clients.frozen
    );
    eprintln!(
        "overlaps: {}, lost updates: {}",
        found.overlaps, found.lost_updates
    );
    for (name, index) in [
        ("start", 0),
        ("middle", figures.len() / 2),
        ("end", figures.len() - 1),
    ] {
        eprintln!("oldest client at its {name}: {}", figures[index]);
    }
}

/// The code of the client processes. Does nothing without the environment variable.
#[test]
fn as_a_client() {
    if let Ok(urls) = env::var(client::URLS) {
        client::run(&urls);
    }
}
