//! The library over TLS, on real servers.
//!
//! The modules of other programs in the list below are run here as they are: in this program, all
//! servers, proxies and peers of `support` are reached over TLS. See `support/transport.rs`.
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod harness;

#[path = "../faults/cuts.rs"]
mod cuts;
#[path = "../faults/descriptors.rs"]
mod descriptors;
#[path = "../faults/forks.rs"]
mod forks;
#[path = "../faults/names.rs"]
mod names;
#[path = "../faults/network.rs"]
mod network;
#[path = "../faults/quorums.rs"]
mod quorums;
#[path = "../faults/rights.rs"]
mod rights;
#[path = "../faults/silence.rs"]
mod silence;

#[path = "../bystanders.rs"]
mod bystanders;
#[path = "../late.rs"]
mod late;
#[path = "../nodes.rs"]
mod nodes;
#[path = "../release.rs"]
mod release;
#[path = "../restart_guard.rs"]
mod restart_guard;
#[path = "../restarts.rs"]
mod restarts;
#[path = "../strangers.rs"]
mod strangers;
#[path = "../stray.rs"]
mod stray;
#[path = "../timeout.rs"]
mod timeout;
#[path = "../twice.rs"]
mod twice;
