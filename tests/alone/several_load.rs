//! Overlapping sets of resources, locked by many threads of several clients: no deadlock in any
//! order of the names, and no lost update of the protected data.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockClient;
use support::chance::Chance;
use support::locks::{LIMIT, LONG, gone, with_long_timeout};
use support::servers::Servers;

const RESOURCES: [&str; 5] = ["r0", "r1", "r2", "r3", "r4"];

/// The data that the locks protect. They are incremented by reading, waiting and writing, so two
/// threads at once lose an update.
#[derive(Default)]
struct Counters([AtomicU64; RESOURCES.len()]);

impl Counters {
    fn count(&self, chosen: &[usize]) {
        let before = chosen
            .iter()
            .map(|index| self.0[*index].load(Ordering::SeqCst));
        let before: Vec<u64> = before.collect();
        thread::yield_now();
        for (index, before) in chosen.iter().zip(before) {
            self.0[*index].store(before + 1, Ordering::SeqCst);
        }
    }
}

/// One to three different resources in any order.
fn choose(chance: &mut Chance) -> Vec<usize> {
    let mut all: Vec<usize> = (0..RESOURCES.len()).collect();
    let count = 1 + chance.below(3);
    (0..count)
        .map(|_| all.swap_remove(chance.below(all.len())))
        .collect()
}

/// Locks sets until the time is over, and returns how often it incremented each counter.
fn work(
    client: &LockClient,
    counters: &Counters,
    mut chance: Chance,
    end: Instant,
) -> [u64; RESOURCES.len()] {
    let mut counted = [0; RESOURCES.len()];
    let mut turns = 0;
    // Each thread gets at least one set, however long that takes.
    while turns < 3 || Instant::now() < end {
        let chosen = choose(&mut chance);
        let names: Vec<&str> = chosen.iter().map(|index| RESOURCES[*index]).collect();
        let request = match (&names[..], chance.below(2)) {
            // Including locks of a single resource.
            ([name], 0) => client.request(name),
            _ => client.request_all(&names),
        };
        let request = if chance.below(2) == 0 {
            request.fenced()
        } else {
            request
        };
        let guard = request
            .ttl(LONG)
            .try_lock_for(3 * LIMIT)
            .expect("a majority answers");
        let guard = guard.expect("no thread waits for ever");
        counters.count(&chosen);
        chosen.iter().for_each(|index| counted[*index] += 1);
        turns += 1;
        if chance.below(2) == 0 {
            drop(guard);
        } else {
            assert_eq!(guard.release(), Ok(()));
        }
    }
    counted
}

#[test]
fn overlapping_sets_in_any_order_neither_deadlock_nor_lose_an_update() {
    let servers = Servers::start(3);
    let counters = Counters::default();
    let end = Instant::now() + Duration::from_secs(3);
    let clients: Vec<LockClient> = (0..3)
        .map(|_| {
            with_long_timeout(servers.urls())
                .build()
                .expect("the settings are good")
        })
        .collect();
    let counted = thread::scope(|scope| {
        let workers: Vec<_> = (0..12)
            .map(|number| {
                let client = &clients[number % clients.len()];
                let counters = &counters;
                let chance = Chance::new(number as u64 + 1);
                scope.spawn(move || work(client, counters, chance, end))
            })
            .collect();
        let counted = workers
            .into_iter()
            .map(|worker| worker.join().expect("it does not panic"));
        counted.collect::<Vec<_>>()
    });
    for (index, counter) in counters.0.iter().enumerate() {
        let expected: u64 = counted.iter().map(|counted| counted[index]).sum();
        assert_eq!(
            counter.load(Ordering::SeqCst),
            expected,
            "{}",
            RESOURCES[index]
        );
        assert!(expected > 0, "{} was never locked", RESOURCES[index]);
    }
    drop(clients);
    assert!(RESOURCES.iter().all(|name| gone(&servers, name)));
}

#[test]
fn threads_of_one_client_with_one_set_lose_no_update() {
    let servers = Servers::start(3);
    let counters = Counters::default();
    let client = with_long_timeout(servers.urls())
        .handoff_limit(5, LONG)
        .build()
        .unwrap();
    let other = with_long_timeout(servers.urls()).build().unwrap();
    thread::scope(|scope| {
        for number in 0..6 {
            let client = if number < 4 { &client } else { &other };
            let counters = &counters;
            scope.spawn(move || {
                for turn in 0..40 {
                    let names = if turn % 2 == 0 {
                        ["r0", "r1"]
                    } else {
                        ["r1", "r0"]
                    };
                    let guard = client.request_all(names).ttl(LONG).lock().unwrap();
                    counters.count(&[0, 1]);
                    drop(guard);
                }
            });
        }
    });
    assert_eq!(counters.0[0].load(Ordering::SeqCst), 240);
    assert_eq!(counters.0[1].load(Ordering::SeqCst), 240);
    drop((client, other));
    assert!(gone(&servers, "r0") && gone(&servers, "r1"));
}
