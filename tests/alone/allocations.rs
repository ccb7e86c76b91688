//! How often acquiring and releasing a lock calls the memory allocator, after the connections were
//! made and the buffers have grown: a small constant number, for any key and any number of locks.
//!
//! Allocations are counted in the calling thread. With one calling thread, the client uses no
//! other.

use allocation_counter::{AllocationInfo, measure};
use redlatch::{Builder, Event, LockClient, LockGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::locks::with_long_timeout;
use support::servers::Servers;

/// How many locks are acquired before anything is counted.
const WARM_UP: u64 = 500;

/// How many are acquired while it is. What is allocated once in some pairs shows only in many.
fn counted() -> u64 {
    1_000 * support::times()
}

const TTL: Duration = Duration::from_secs(10);

/// The key, which the guard owns. A release allocates nothing: it waits as a follower that is used
/// again.
const RELEASED: u64 = 1;

/// The same.
const DROPPED: u64 = 1;

/// A node that lags behind the majority makes buffers double their size from time to time, and
/// commands in flight to it are freed later than they were allocated. This allows for that many
/// allocations and bytes, over a thousand pairs as over a million.
const SLACK: u64 = 200;
const SLACK_BYTES: i64 = 1024 * 1024;

/// The default settings, except that rounds do not end because the machine is busy.
fn builder(servers: &Servers) -> Builder {
    with_long_timeout(servers.urls()).restart_guard(false)
}

fn release(guard: LockGuard) {
    assert_eq!(guard.release(), Ok(()));
}

/// In one of how many runs there must be no more. A node that falls further behind than ever makes
/// the memory for commands in flight grow, once.
const RUNS: u32 = 5;

/// The allocations for acquiring and releasing a lock `count` times.
fn pairs(client: &LockClient, key: &[u8], count: u64, give_back: fn(LockGuard)) -> AllocationInfo {
    measure(|| {
        for _ in 0..count {
            let guard = client.try_lock(key, TTL).expect("a majority answers");
            give_back(guard.expect("the lock is free"));
        }
    })
}

/// Expects that `count` pairs make so many allocations each.
#[track_caller]
fn expect(
    per_pair: u64,
    (client, key, count): (&LockClient, &[u8], u64),
    give_back: fn(LockGuard),
) -> AllocationInfo {
    let expected = per_pair * count;
    let is_counted =
        |info: &AllocationInfo| (expected..=expected + SLACK).contains(&info.count_total);
    // The buffer for a node that lags on a busy machine grows once; what is never freed grows in
    // each run.
    let is_freed = |info: &AllocationInfo| info.bytes_current.abs() < SLACK_BYTES;
    let mut info = pairs(client, key, count, give_back);
    for _ in 1..RUNS {
        if !(is_counted(&info) && is_freed(&info)) {
            info = pairs(client, key, count, give_back);
        }
    }
    assert!(is_counted(&info), "{expected} expected, and it is {info:?}");
    assert!(is_freed(&info), "memory is not freed: {info:?}");
    info
}

#[expect(
    clippy::print_stdout,
    reason = "the figure is worth seeing, with --nocapture"
)]
fn check(give_back: fn(LockGuard), per_pair: u64) {
    let servers = Servers::start(5);
    let client = builder(&servers).build().expect("the settings are good");
    pairs(&client, b"orders:42", WARM_UP, give_back);

    let info = expect(per_pair, (&client, b"orders:42", counted()), give_back);
    println!("{per_pair} per pair: {info:?}");

    // A key of any length is allocated once, for the guard.
    let of_length = |length: usize| {
        let key = vec![b'k'; length];
        pairs(&client, &key, 200, give_back);
        let info = expect(per_pair, (&client, &key, 500), give_back);
        i64::try_from(info.bytes_total).expect("no machine has so much memory")
    };
    // As above: the buffer for a node that lags grows with such keys.
    let is_once = |more: i64| (more - 5_900 * 500).abs() < SLACK_BYTES;
    let mut more = of_length(6_000) - of_length(100);
    for _ in 1..RUNS {
        if !is_once(more) {
            more = of_length(6_000) - of_length(100);
        }
    }
    assert!(is_once(more), "{more} bytes more for 5900 more in the key");
}

#[test]
fn acquiring_and_releasing_a_lock_allocates_once() {
    check(release, RELEASED);
}

#[test]
fn acquiring_and_dropping_a_lock_allocates_once() {
    check(drop, DROPPED);
}

#[test]
fn a_listener_costs_no_allocation() {
    let servers = Servers::start(5);
    let events = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&events);
    let count = move |_: &Event<'_>| _ = counting.fetch_add(1, Ordering::Relaxed);
    let client = builder(&servers)
        .on_event(count)
        .build()
        .expect("the settings are good");
    for (give_back, per_pair) in [(release as fn(LockGuard), RELEASED), (drop, DROPPED)] {
        pairs(&client, b"orders:42", WARM_UP, give_back);
        let before = events.load(Ordering::Relaxed);
        expect(per_pair, (&client, b"orders:42", counted()), give_back);
        assert!(
            events.load(Ordering::Relaxed) - before >= 3 * counted(),
            "an attempt, a lock, its end"
        );
    }
}

#[test]
fn logs_and_metrics_that_nobody_wants_cost_no_allocation() {
    let servers = Servers::start(5);
    let client = builder(&servers)
        .tracing()
        .metrics()
        .build()
        .expect("the settings are good");
    for (give_back, per_pair) in [(release as fn(LockGuard), RELEASED), (drop, DROPPED)] {
        pairs(&client, b"orders:42", WARM_UP, give_back);
        expect(per_pair, (&client, b"orders:42", counted()), give_back);
    }
}
