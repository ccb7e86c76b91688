//! Replicated groups as nodes: real servers, promoted by hand, by Sentinels and by their cluster.

#![expect(clippy::unwrap_used, reason = "what a test cannot do fails it")]

mod clocks;
mod clusters;
mod crowd;
mod failovers;
mod findings;
mod masters_that_go_on;
mod names_that_move;
mod people;
mod planned_failovers;
mod proofs;
mod registers;
mod rights;
mod rivals;
mod scripts;
mod sentinels;
mod servers_of_urls;
mod shapes;
mod slots_that_move;
mod waiters;
mod wrong_promotions;
mod wrong_servers;

use std::time::Duration;

use redlatch::{Builder, LockClient, LockGuard};
use support::cli::Value;
use support::locks::LIMIT;
use support::redis::Server;
use support::sentinel::info as info_of;
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
    client
        .request("orders")
        .ttl(ttl)
        .try_lock_for(3 * LIMIT)
        .unwrap()
        .expect("it becomes free")
}

/// Has the group's reign last for ever already, as an operator may say who knows that no client has
/// a lock there.
#[track_caller]
fn adopt(master: &Server, tag: &str) {
    let run = run_of(master);
    let marker = format!(
        "redlatch1 {run} {} 0 0 adopted",
        info_of(master, "master_replid")
    );
    let key = format!("{tag}redlatch:reign");
    assert_eq!(master.command(&["SET", &key, &marker]), Value::ok());
}

/// The same of a group whose replicas acknowledge each vote.
#[track_caller]
fn adopt_acknowledged(master: &Server, replicas: u32) {
    let run = run_of(master);
    let id = info_of(master, "master_replid");
    let fields = format!(
        "run {run} id {id} epoch 0 since 0 nonce adopted replicas {replicas} former 0 former_run 0 \
         after 0"
    );
    let mut words = vec!["HSET", "redlatch:reign"];
    words.extend(fields.split(' '));
    assert_eq!(master.command(&words), Value::Integer(9));
}

/// Has the reign of a group with this query in its URL last for ever already.
#[track_caller]
fn adopt_for(master: &Server, query: &str) {
    if query.contains("replicas=2") {
        adopt_acknowledged(master, 2);
    } else {
        adopt(master, "");
    }
}

#[track_caller]
fn run_of(server: &Server) -> String {
    let info = server.command(&["INFO", "server"]);
    info.field("run_id").unwrap()
}
