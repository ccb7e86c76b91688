//! A group that Sentinels watch.

use std::thread;
use std::time::{Duration, Instant};

use support::eventually;
use support::journal::Journal;
use support::locks::{LIMIT, can_be_acquired};
use support::sentinel::SentinelGroup;

use super::{builder, take};

const TTL: Duration = Duration::from_secs(5);

#[test]
fn a_lock_goes_on_when_the_master_is_killed() {
    let mut group = SentinelGroup::start(2);
    // Longer than the failover takes.
    let ttl = Duration::from_secs(12);
    let build = || builder(&group.url()).max_ttl(ttl).build().unwrap();
    let holder = build();
    let other = build();
    let guard = holder
        .request("orders")
        .ttl(ttl)
        .keep_alive()
        .try_lock_for(3 * LIMIT)
        .unwrap()
        .unwrap();
    let before = group.master();
    group.servers[before].kill();
    assert!(eventually(LIMIT, || group.master() != before));
    let start = Instant::now();
    while start.elapsed() < 2 * ttl {
        guard.ensure_held().unwrap();
        assert!(!can_be_acquired(&other, "orders"));
        thread::sleep(Duration::from_millis(50));
    }
    guard.release().unwrap();
    drop(take(&other, ttl));
}

#[test]
fn a_forced_failover_costs_a_quarantine_and_no_lock() {
    let group = SentinelGroup::start(1);
    let journal = Journal::default();
    let client = builder(&group.url())
        .on_event(journal.recorder())
        .build()
        .unwrap();
    let reigns = || {
        journal
            .entries()
            .iter()
            .filter(|entry| entry.name == "new_reign")
            .count()
    };
    drop(take(&client, TTL));
    assert_eq!(reigns(), 0, "the first one is not new");
    group.replace_master();
    drop(take(&client, TTL));
    // The old master may have granted that, before it was told.
    assert!(eventually(LIMIT, || client.nodes()[0].is_connected && reigns() > 0));
    assert!(support::sentinel::info(&group.servers[group.master()], "role") == "master");
}
