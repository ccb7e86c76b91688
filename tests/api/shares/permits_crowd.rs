//! Permits by the hundred: many are given back at once, and each node has other ones free.

use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use support::eventually;
use support::locks::{LIMIT, LONG, without_restart_guard};
use support::redis::Server;
use support::servers::Servers;
use support::waiters::{await_keys, holder, queued};

const PERMITS: u32 = 400;
const WAITERS: usize = 50;
const ROUNDS: usize = 7;

/// How many times as long as most waiters the last one may wait, on a machine of any speed.
const LAST: u32 = 4;

/// A tenth of what the last one waited that asked for permits that no majority had free.
const SOON: Duration = Duration::from_millis(600);

/// On a busy machine too, a waiter whose round ends late stays in the queue.
fn client(servers: &Servers) -> LockClient {
    without_restart_guard(servers.urls())
        .node_timeout(Duration::from_secs(2))
        .build()
        .expect("the settings are good")
}

fn lock(client: &LockClient) -> LockGuard {
    client
        .request("name")
        .ttl(LONG)
        .one_of(PERMITS)
        .lock()
        .expect("it is served")
}

/// Releases these at once, for as many waiters. Returns the permits of the waiters, and how long
/// they waited, in order.
fn hand_on(
    servers: &Servers,
    clients: &[LockClient],
    given: Vec<LockGuard>,
) -> (Vec<LockGuard>, Vec<Duration>) {
    let barrier = Barrier::new(given.len());
    thread::scope(|scope| {
        let waiting: Vec<_> = clients
            .iter()
            .map(|client| scope.spawn(move || (lock(client), Instant::now())))
            .collect();
        // A node that has other permits free than the others calls waiters in vain, which are out
        // of its queue until they ask again.
        let are_there = |server: &&Server| queued(server, "name") >= WAITERS / 2;
        let is_majority = || servers.iter().filter(are_there).count() >= 2;
        assert!(eventually(LIMIT, is_majority), "they stand in the queue");
        let start = Instant::now();
        for guard in given {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                // The nodes may answer too late on a busy machine.
                drop(guard);
            });
        }
        let served = waiting
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        let waited = |(guard, time): (_, Instant)| (guard, time.saturating_duration_since(start));
        let (guards, mut waits): (Vec<_>, Vec<_>) = served.map(waited).unzip();
        waits.sort_unstable();
        (guards, waits)
    })
}

#[test]
fn fifty_of_many_permits_that_are_given_back_at_once_are_soon_taken_by_fifty_waiters() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let clients: Vec<_> = (0..WAITERS).map(|_| client(&servers)).collect();
    let owner = client(&servers);
    let mut held: Vec<_> = (0..PERMITS).map(|_| lock(&owner)).collect();
    let mut waited = Vec::new();
    for _ in 0..ROUNDS {
        // The farthest apart, and in the rounds that follow those of many clients.
        let index = |place| place * (held.len() / WAITERS - 1);
        let given = (0..WAITERS).rev().map(index).collect::<Vec<_>>();
        let given = given.into_iter().map(|index| held.remove(index)).collect();
        let (taken, waits) = hand_on(&servers, &clients, given);
        held.extend(taken);
        waited.push((waits[WAITERS / 2], waits[WAITERS - 1]));
    }
    let is_soon = |(most, last): &&(Duration, Duration)| *last < (*most * LAST).max(SOON);
    let soon = waited.iter().filter(is_soon).count();
    assert!(soon > ROUNDS / 2, "most waiters, and the last: {waited:?}");
    drop(held);
    await_keys(&servers, &[]);
}

/// This node has lost the holders of these permits.
fn forget(server: &Server, permits: Range<u32>) {
    let source = "for _, holder in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
          local number = tonumber(string.match(holder, '^%d+'))
          if number >= tonumber(ARGV[1]) and number < tonumber(ARGV[2]) then
            redis.call('ZREM', KEYS[1], holder)
          end
        end";
    let [from, to] = [permits.start, permits.end].map(|number| number.to_string());
    server.command(&["EVAL", source, "1", "name:redlatch:holders", &from, &to]);
}

#[test]
fn the_permit_that_a_majority_has_free_is_found_although_each_node_has_others() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let owner = holder(servers.urls());
    let other = holder(servers.urls());
    let request = |client: &LockClient| client.request("name").ttl(LONG).one_of(64).try_lock();
    let take = |client| request(client).expect("the nodes are up");
    let mut held: Vec<_> = (0..64).map(|_| take(&owner).expect("it is free")).collect();
    held.sort_by_key(LockGuard::slot);
    for (server, from) in servers.iter().zip([1, 22, 43]) {
        forget(server, from..from + 21);
    }
    assert_eq!(held.remove(0).release(), Ok(()));
    for round in 0..30 {
        let found = take(&other);
        assert_eq!(
            found.as_ref().and_then(LockGuard::slot),
            Some(0),
            "round {round}"
        );
        assert!(take(&owner).is_none(), "all others are held");
        assert_eq!(found.map(LockGuard::release), Some(Ok(())));
    }
}
