//! Waiting in the nodes' queue: clients are served in the order in which they began to wait, and a
//! release tells the next one.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard};
use support::cli::Value;
use support::locks::{LIMIT, LONG, gone, take, value, without_restart_guard};
use support::queue::{finish, spawn_waiter};
use support::relay::{relayed, urls};
use support::servers::Servers;
use support::waiters::{
    BY_PUSH, LONG_LEASE, Line, await_keys, await_queued, holder, pushed, queued, with_lease,
};

#[test]
fn any_number_of_nodes_serves_clients_in_the_order_in_which_they_began_to_wait() {
    for nodes in 1..=5 {
        let servers = Servers::start(nodes);
        let held = take(&holder(servers.urls()), "name", LONG);
        let mut line = Line::before("name");
        (0..6).for_each(|_| line.join(&servers, pushed(servers.urls())));
        assert!(line.is_waiting());
        let start = Instant::now();
        assert_eq!(held.release(), Ok(()));
        // By pushes: nobody renews its entry within this time.
        assert!(
            line.end() - start < BY_PUSH,
            "{nodes} nodes: {:?}",
            start.elapsed()
        );
        await_keys(&servers, &[]);
    }
}

/// Holds back what a waiter writes, so the lock stays reserved for it, and tries to overtake it.
#[test]
fn nobody_overtakes_a_waiter_for_which_the_lock_is_reserved() {
    let servers = Servers::start(3);
    let relays = relayed(&servers);
    let holder = holder(servers.urls());
    let slow = pushed(urls(&relays));
    let without = with_lease(servers.urls(), LONG_LEASE)
        .queue(false)
        .build()
        .unwrap();
    let held = take(&holder, "name", LONG);
    let waiting = spawn_waiter(move || slow.lock("name", LONG).map(LockGuard::release));
    await_queued(&servers, "name", 1);
    relays.iter().for_each(support::relay::Relay::hold);
    assert_eq!(held.release(), Ok(()));
    assert!(
        value(&servers[0], "name")
            .unwrap()
            .starts_with(b"redlatch:reserved:")
    );

    assert!(holder.try_lock("name", LONG).unwrap().is_none());
    assert!(
        holder
            .request_all(["name", "other"])
            .ttl(LONG)
            .try_lock()
            .unwrap()
            .is_none()
    );
    let little = Duration::from_millis(50);
    assert!(without.try_lock("name", LONG).unwrap().is_none());
    assert!(
        without
            .request("name")
            .ttl(LONG)
            .try_lock_for(little)
            .unwrap()
            .is_none()
    );
    for server in servers.iter() {
        let set = server.command(&["SET", "name", "of another program", "NX", "PX", "1000"]);
        assert_eq!(set, Value::Null);
        assert_eq!(queued(server, "name"), 1, "none of them has queued");
    }
    relays.iter().for_each(support::relay::Relay::deliver);
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    await_keys(&servers, &[]);
}

#[test]
fn calls_that_do_not_wait_do_not_queue() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let other = pushed(servers.urls());
    let held = take(&holder, "name", LONG);
    assert!(other.try_lock("name", LONG).unwrap().is_none());
    assert!(
        other
            .request("name")
            .ttl(LONG)
            .try_lock_for(Duration::ZERO)
            .unwrap()
            .is_none()
    );
    assert!(
        other
            .request("name")
            .ttl(LONG)
            .try_lock_until(Instant::now())
            .unwrap()
            .is_none()
    );
    await_keys(&servers, &["name"]);
    drop(held);
}

/// A way to wait for the lock and use it.
type Wait = fn(LockClient, &dyn Fn(&LockGuard));

const WAITS: [Wait; 6] = [
    |client, work| {
        let body = |guard: &LockGuard| {
            work(guard);
            Ok::<_, Error>(())
        };
        client.with_lock("name", LONG, body).unwrap();
    },
    |client, work| {
        let guard = client.request("name").ttl(LONG).fenced().lock().unwrap();
        assert!(guard.fencing_token().is_some());
        work(&guard);
    },
    |client, work| {
        let guard = client
            .request("name")
            .ttl(LONG)
            .owner("billing")
            .lock()
            .unwrap();
        let seen = client.inspect("name").unwrap();
        assert!(format!("{seen:?}").contains("billing"), "{seen:?}");
        work(&guard);
    },
    |client, work| {
        let ttl = Duration::from_millis(1_500);
        // With the round of the keeper in a fraction of the ttl.
        let guard = client.request("name").ttl(ttl).keep_alive().lock().unwrap();
        thread::sleep(ttl * 3 / 2);
        work(&guard);
    },
    |client, work| {
        let guard = client
            .request("name")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .expect("in time");
        work(&guard);
        assert_eq!(guard.release(), Ok(()));
    },
    |client, work| {
        let least = Duration::from_millis(300);
        let request = client.request("name").ttl(LONG).hold_at_least(least);
        work(&request.lock().unwrap());
    },
];

#[test]
fn all_ways_to_wait_stand_in_one_queue() {
    let servers = Servers::start(3);
    let client = || {
        let builder = with_lease(servers.urls(), Duration::from_secs(2));
        builder
            .node_timeout(Duration::from_millis(400))
            .build()
            .unwrap()
    };
    let held = take(&client(), "name", LONG);
    let mut line = Line::before("name");
    for wait in WAITS.into_iter().chain(WAITS) {
        let client = client();
        line.join_with(&servers, move |work| wait(client, work));
    }
    drop(held);
    line.end();
    await_keys(&servers, &[]);
}

#[test]
fn threads_of_two_clients_that_hold_a_lock_for_longer_than_handoffs_last_take_turns() {
    const THREADS: usize = 3;
    const ROUNDS: usize = 8;
    let servers = Servers::start(3);
    let order = Mutex::new(Vec::new());
    let clients = ["one", "other"].map(|owner| {
        let builder = with_lease(servers.urls(), LONG_LEASE).owner(owner);
        (owner, builder.build().unwrap())
    });
    thread::scope(|scope| {
        for (owner, client) in &clients {
            for _ in 0..THREADS {
                let order = &order;
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let guard = client.lock("name", LONG).unwrap();
                        let seen = client.inspect("name").unwrap();
                        let is_waited_for = seen.waiters.iter().any(|waiter| {
                            let is_same = waiter
                                .owner()
                                .is_some_and(|it| it.as_bytes() == owner.as_bytes());
                            !is_same && waiter.nodes * 2 > seen.nodes.len()
                        });
                        order.lock().unwrap().push((*owner, is_waited_for));
                        // Longer than a client may hand it on while another waits.
                        thread::sleep(Duration::from_millis(15));
                        drop(guard);
                    }
                });
            }
        }
    });
    let order = order.into_inner().unwrap();
    for (owner, _) in &clients {
        let count = order.iter().filter(|(holder, _)| holder == owner).count();
        assert_eq!(count, THREADS * ROUNDS);
    }
    // Once the other has its place in the order, those before it are served, and the client may
    // pass the lock on once: it learns that another waits when it is granted the lock. How many are
    // served before the other waits is up to the machine, which may stop its threads.
    for run in order.windows(THREADS + 2) {
        let is_one_clients = run.iter().all(|(holder, _)| *holder == run[0].0);
        let (_, is_waited_for) = run[0];
        assert!(!(is_one_clients && is_waited_for), "{order:?}");
    }
    let waited_for = order.iter().filter(|(_, is_waited_for)| *is_waited_for);
    assert!(waited_for.count() >= THREADS, "{order:?}");
    await_keys(&servers, &[]);
}

#[test]
fn clients_without_the_queue_exclude_each_other_as_before() {
    let servers = Servers::start(3);
    let builder = || without_restart_guard(servers.urls()).node_timeout(Duration::from_secs(2));
    let without = || builder().queue(false).build().unwrap();
    let held = take(&without(), "name", LONG);
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let client = without();
            spawn_waiter(move || client.lock("name", LONG).map(LockGuard::release))
        })
        .collect();
    thread::sleep(Duration::from_millis(200));
    await_keys(&servers, &["name"]);
    assert_eq!(held.release(), Ok(()));
    for waiter in waiting {
        assert_eq!(finish(waiter).unwrap(), Ok(()));
    }
    assert!(gone(&servers, "name"));
    // One of them also gets the lock from a client that queues, and the other way round.
    let queues = pushed(servers.urls());
    let without = without();
    for (holder, waiter) in [(&queues, &without), (&without, &queues)] {
        let held = take(holder, "name", LONG);
        let waiter = waiter.clone();
        let waiting = spawn_waiter(move || waiter.lock("name", LONG).map(drop));
        drop(held);
        assert_eq!(finish(waiting), Ok(()));
    }
}

/// What locks that were once waited for leave on the nodes.
#[test]
fn a_thousand_locks_that_were_waited_for_leave_nothing() {
    const PAIRS: usize = 8;
    let servers = Servers::start(3);
    let [one, two] = [0, 1].map(|_| pushed(servers.urls()));
    thread::scope(|scope| {
        for pair in 0..PAIRS {
            let one = &one;
            let two = &two;
            let servers = &servers;
            scope.spawn(move || {
                let mut watch = servers[pair % 3].client();
                for lock in 0..1000 / PAIRS {
                    let name = format!("{pair}-{lock}");
                    let held = one.lock(&name, LONG).unwrap();
                    thread::scope(|scope| {
                        let next = scope.spawn(|| two.lock(&name, LONG).map(drop).unwrap());
                        let queue = format!("{name}:redlatch:queue");
                        let count = ["ZCARD", &queue];
                        let is_queued = || watch.command(&count) == Value::Integer(1);
                        assert!(support::eventually(LIMIT, is_queued));
                        drop(held);
                        next.join().unwrap();
                    });
                }
            });
        }
    });
    await_keys(&servers, &[]);
}
