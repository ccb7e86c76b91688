//! Clients wait for one lock while the master fails over.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use support::eventually;
use support::locks::LIMIT;
use support::sentinel::SentinelGroup;

use super::{BOUND, MAX_TTL, adopt_for, builder};

const COUNT: usize = 8;

#[test]
fn nobody_waits_in_vain_and_the_order_stays() {
    let group = SentinelGroup::start(2);
    adopt_for(&group.servers[0], "replicas=2");
    let client = || {
        builder(&format!("{}?replicas=2", group.url()))
            .build()
            .unwrap()
    };
    let holder = client();
    let held = holder
        .request("orders")
        .ttl(MAX_TTL)
        .keep_alive()
        .try_lock_for(LIMIT)
        .unwrap();
    let queue = "orders:redlatch:queue";
    let waiting = |count| {
        let queued = |it: &support::redis::Server| it.command(&["ZCARD", queue]).integer();
        eventually(LIMIT, || group.servers.iter().all(|it| queued(it) == count))
    };
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for number in 0..COUNT {
        let client = client();
        let served = Arc::clone(&served);
        waiters.push(thread::spawn(move || {
            let guard = client
                .request("orders")
                .ttl(MAX_TTL)
                .try_lock_for(4 * LIMIT);
            let guard = guard.unwrap().expect("nobody waits in vain");
            served.lock().unwrap().push((number, Instant::now()));
            guard.release().unwrap();
        }));
        assert!(
            waiting(number as i64 + 1),
            "waiter {number} is in the queue of all"
        );
    }
    group.replace_master();
    let since = Instant::now();
    held.unwrap().release().ok();
    waiters
        .into_iter()
        .for_each(|waiter| waiter.join().unwrap());
    let served = served.lock().unwrap();
    // The first ones may be called before they have a connection to the new master, and are put
    // back when they have.
    let order: Vec<_> = served
        .iter()
        .map(|(number, _)| *number)
        .filter(|it| *it > 2)
        .collect();
    assert!(order.is_sorted(), "{order:?}");
    let took = served
        .iter()
        .map(|(_, at)| at.duration_since(since))
        .collect::<Vec<_>>();
    assert!(took[0] < MAX_TTL + BOUND + LIMIT);
    assert!(
        took[COUNT - 1] - took[0] < Duration::from_secs(5),
        "{took:?}"
    );
}
