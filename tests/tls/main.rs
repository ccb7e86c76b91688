//! The library over TLS, on real servers.
//!
//! The modules of other programs in the list below are run here as they are: in this program, all
//! servers, proxies and peers of `support` are reached over TLS. See `support/transport.rs`.
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod connections;
mod handshakes;
mod harness;
mod identities;
mod records;

#[path = "../faults/connecting.rs"]
mod connecting;
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
#[path = "../every_node.rs"]
mod every_node;
#[path = "../extend.rs"]
mod extend;
#[path = "../fencing.rs"]
mod fencing;
#[path = "../force_release.rs"]
mod force_release;
#[path = "../handoff.rs"]
mod handoff;
#[path = "../inspect.rs"]
mod inspect;
#[path = "../keep_alive.rs"]
mod keep_alive;
#[path = "../late.rs"]
mod late;
#[path = "../listing.rs"]
mod listing;
#[path = "../lock.rs"]
mod lock;
#[path = "../nobody_in_vain.rs"]
mod nobody_in_vain;
#[path = "../permits.rs"]
mod permits;
#[path = "../queue.rs"]
mod queue;
#[path = "../queue_faults.rs"]
mod queue_faults;
#[path = "../readers.rs"]
mod readers;
#[path = "../release.rs"]
mod release;
#[path = "../restart_guard.rs"]
mod restart_guard;
#[path = "../restarts.rs"]
mod restarts;
#[path = "../several.rs"]
mod several;
#[path = "../strangers.rs"]
mod strangers;
#[path = "../stray.rs"]
mod stray;
#[path = "../timeout.rs"]
mod timeout;
#[path = "../twice.rs"]
mod twice;
#[path = "../with_lock.rs"]
mod with_lock;
