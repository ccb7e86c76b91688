//! Replicated groups as nodes: real servers, promoted by hand, by Sentinels and by their cluster.

#![expect(clippy::unwrap_used, reason = "what a test cannot do fails it")]

mod clusters;
mod findings;
mod names_that_move;
mod people;
mod registers;
mod sentinels;

use std::time::Duration;

use redlatch::{Builder, LockClient, LockGuard};
use support::locks::LIMIT;
use support::transport::trusting;

/// As long as the quarantine after a failover takes, with the bound.
const MAX_TTL: Duration = Duration::from_secs(5);
const BOUND: Duration = Duration::from_secs(1);

/// A client of groups, whose rounds do not time out on a busy machine.
fn builder(url: &str) -> Builder {
    let builder = trusting(LockClient::builder().nodes(url)).node_timeout(Duration::from_secs(1));
    builder.max_ttl(MAX_TTL).failover_bound(BOUND)
}

/// Waits for the lock `orders`, in a quarantine too.
#[track_caller]
fn take(client: &LockClient, ttl: Duration) -> LockGuard {
    client.request("orders").ttl(ttl).try_lock_for(3 * LIMIT).unwrap().expect("it becomes free")
}
