//! Real faults on real servers. The table in `rows.md` lists which fault is tested where, also in
//! other files, and which cannot be injected here and why; `rows.rs` checks the table.

#[path = "../support/mod.rs"]
mod support;

mod clocks;
mod connecting;
mod cuts;
mod descriptors;
#[cfg(target_os = "linux")] // its shim calls Linux itself, and it reads /proc
mod forks;
mod holders;
mod names;
mod network;
mod quorums;
mod rights;
mod rows;
mod silence;

use redlatch::LockClient;
use support::locks::{LONG, connected};
use support::proxy::Proxy;
use support::redis::Server;

/// Each server behind a proxy of its own, and the URLs of the proxies.
fn proxied(servers: &[Server]) -> (Vec<Proxy>, Vec<String>) {
    let proxies: Vec<_> = servers.iter().map(|server| Proxy::start(server.port())).collect();
    let urls = proxies.iter().map(Proxy::url).collect();
    (proxies, urls)
}

/// Can the lock be acquired now?
fn can_be_acquired(client: &LockClient, name: &str) -> bool {
    client.try_lock(name, LONG).is_ok_and(|guard| guard.is_some())
}
