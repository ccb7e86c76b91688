//! Masters that were replaced and carry out commands even so: cut off from their group, or stopped
//! for a while. Clients on their side go straight to them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Builder, LockClient, LockGuard};
use support::eventually;
use support::locks::LIMIT;
use support::proxy::Mode;
use support::sentinel::SentinelGroup;

use super::{MAX_TTL, adopt, adopt_for, builder};

const TTL: Duration = MAX_TTL;

/// A client on the side of the first server, and one that asks the Sentinels.
fn both_sides(group: &SentinelGroup, query: &str) -> (LockClient, LockClient) {
    let near = format!(
        "redis://127.0.0.1:{}?failover=true{query}",
        group.servers[0].port()
    );
    let far = format!("{}?{}", group.url(), query.trim_start_matches('&'));
    let client = |url: &str| builder(url).build().unwrap();
    (client(&near), client(far.trim_end_matches('?')))
}

fn keep(client: &LockClient, name: &str) -> LockGuard {
    client
        .request(name)
        .ttl(TTL)
        .keep_alive()
        .try_lock_for(LIMIT)
        .unwrap()
        .unwrap()
}

/// The master is cut off from its group while a client on its side keeps the lock. Returns whether
/// that one still has it when another client has got it on the other side.
fn both_hold(query: &str) -> bool {
    let group = SentinelGroup::start_with_link(2);
    adopt_for(&group.servers[0], query);
    let (near, far) = both_sides(&group, query);
    let held = keep(&near, "orders");
    group.link.as_ref().unwrap().set(Mode::Vanish);
    let got = far
        .request("orders")
        .ttl(TTL)
        .keep_alive()
        .try_lock_for(3 * LIMIT)
        .unwrap()
        .unwrap();
    let is_held = held.ensure_held().is_ok();
    got.ensure_held().unwrap();
    is_held
}

#[test]
fn a_master_that_is_cut_off_has_no_vote_without_a_majority_of_its_group() {
    assert!(!both_hold("&replicas=2"));
}

/// By this the tests of this file can fail.
#[test]
fn without_replicas_that_acknowledge_and_with_default_settings_it_gives_the_lock_twice() {
    assert!(both_hold(""));
}

/// When this client gets the lock, again and again.
fn holds(client: &LockClient, is_over: &AtomicBool) -> Vec<Instant> {
    let mut got = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        if let Ok(Some(guard)) = client.try_lock("orders", TTL) {
            got.push(Instant::now());
            drop(guard);
        }
        thread::sleep(Duration::from_millis(10));
    }
    got
}

#[test]
fn a_master_that_was_stopped_gives_nothing_when_it_continues() {
    let group = SentinelGroup::start(2);
    adopt_for(&group.servers[0], "replicas=2");
    let url = |query| format!("{}?{query}", group.url());
    let build = |builder: Builder| builder.build().unwrap();
    let crowd: Vec<_> = (0..20)
        .map(|_| build(builder(&url("replicas=2"))))
        .collect();
    for client in &crowd {
        drop(client.try_lock("warm", TTL).unwrap());
    }
    let far = build(builder(&url("replicas=2")));
    group.servers[0].pause();
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let work = |client| scope.spawn(move || holds(client, is_over));
        let workers: Vec<_> = crowd.iter().map(work).collect();
        // One of them may have it first.
        let held = far
            .request("orders")
            .ttl(TTL)
            .keep_alive()
            .try_lock_for(3 * LIMIT);
        let from = Instant::now();
        group.servers[0].resume();
        thread::sleep(Duration::from_secs(3));
        let held = held.unwrap().unwrap();
        let is_held = held.ensure_held();
        let until = Instant::now();
        is_over.store(true, Ordering::SeqCst);
        for worker in workers {
            for start in worker.join().unwrap() {
                assert!(start < from || start > until, "two holders");
            }
        }
        is_held.unwrap();
    });
}

#[test]
fn a_master_that_is_elected_again_without_being_told_begins_a_quarantine() {
    let mut group = SentinelGroup::start(1);
    adopt(&group.servers[0], "");
    let client = || builder(&group.url()).build().unwrap();
    let near = client();
    let far = client();
    drop(near.try_lock("orders", TTL).unwrap().unwrap());
    group.servers[0].pause();
    let held = far
        .request("orders")
        .ttl(TTL)
        .try_lock_for(3 * LIMIT)
        .unwrap()
        .unwrap();
    group.servers[1].kill();
    group.servers[0].resume();
    let mut got = None;
    assert!(eventually(3 * LIMIT, || {
        got = near.try_lock("orders", TTL).ok().flatten();
        got.is_some()
    }));
    assert!(held.ensure_held().is_err(), "two holders");
}
