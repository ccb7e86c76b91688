//! What the test programs share: real redis-server, ZooKeeper and PostgreSQL processes, a client
//! without the crate's own decoder, proxies that inject faults, and peers that are not Redis.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "nothing outside the tests uses it"
)]
#![allow(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "likewise"
)]

mod acceptor;
pub mod backend;
pub mod bad_network;
pub mod capability;
#[cfg(target_os = "linux")]
pub mod certificates;
pub mod chance;
pub mod claims;
pub mod cli;
pub mod cluster;
pub mod cluster_node;
pub mod deaf_port;
pub mod fencing;
pub mod journal;
pub mod locks;
pub mod loss;
pub mod peer;
pub mod port;
pub mod postgres;
mod process;
pub mod program;
pub mod proxy;
mod proxy_mode;
pub mod queue;
pub mod redis;
pub mod relay;
pub mod secret;
mod secure_port;
pub mod sentinel;
pub mod server_choice;
pub mod server_program;
pub mod servers;
pub mod shim;
pub mod skip;
mod socket_queues;
pub mod tasks;
#[cfg(target_os = "linux")]
pub mod terminator;
#[cfg(target_os = "linux")]
pub mod tls_client;
pub mod transport;
mod urls;
pub mod waiters;
mod wire;
pub mod zookeeper;

use std::env;
use std::thread;
use std::time::{Duration, Instant};

/// How many times as much as plain `cargo test` a test looks at: `REDLATCH_TIMES`, which `./check`
/// sets.
pub fn times() -> u64 {
    let times = env::var("REDLATCH_TIMES");
    times.map_or(1, |times| {
        times.parse().expect("REDLATCH_TIMES is a number")
    })
}

/// Repeats `condition` until it holds or `limit` has passed. Returns whether it held.
pub fn eventually(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}
