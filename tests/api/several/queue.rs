//! Sets of several resources in the nodes' queue: their place, what is reserved for them while they
//! wait for the rest, and for how long at most.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard};
use support::eventually;
use support::locks::{LIMIT, LONG, gone, holders, take};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{
    BY_PUSH, Line, asked_in, await_keys, await_queued, holder, pushed, queued, with_lease,
};

/// A set that waits for as long as it takes.
fn wait_for_all(client: &LockClient, names: &[&str], ttl: Duration) -> LockGuard {
    client
        .request_all(names)
        .ttl(ttl)
        .lock()
        .expect("it is served in the end")
}

#[test]
fn a_set_is_served_between_those_that_came_before_and_after_it() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "b", LONG);
    let mut line = Line::before("b");
    for place in 0..5 {
        let client = pushed(servers.urls());
        if place % 2 == 0 {
            line.join(&servers, client);
        } else {
            line.join_with(&servers, move |work| {
                work(&wait_for_all(&client, &["a", "b"], LONG));
            });
        }
    }
    assert_eq!(
        servers.iter().map(|server| queued(server, "a")).max(),
        Some(2)
    );
    let start = Instant::now();
    drop(held);
    assert!(
        line.end() - start < BY_PUSH,
        "each is told that it is its turn"
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_set_is_served_although_there_is_always_somebody_who_waits_for_one_of_its_resources() {
    let servers = Servers::start(3);
    let is_over = AtomicBool::new(false);
    let crowd: Vec<LockClient> = (0..6).map(|_| pushed(servers.urls())).collect();
    thread::scope(|scope| {
        for (index, client) in crowd.iter().enumerate() {
            let name = ["a", "b"][index % 2];
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _held = client.lock(name, LONG).unwrap();
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
        assert!(eventually(LIMIT, || queued(&servers[0], "a")
            .min(queued(&servers[0], "b"))
            > 0));
        let client = pushed(servers.urls());
        let served: Vec<_> = (0..10)
            .map(|_| {
                client
                    .request_all(["b", "a"])
                    .ttl(LONG)
                    .try_lock_for(LIMIT)
                    .unwrap()
            })
            .map(|guard| guard.is_some())
            .collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(served, [true; 10]);
    });
    await_keys(&servers, &[]);
}

#[test]
fn a_set_asks_once_a_second_while_a_part_of_it_is_reserved() {
    support::needs!(Tracking);
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "b", LONG);
    let set = pushed(servers.urls());
    let waiting = set.clone();
    let thread = thread::spawn(move || wait_for_all(&waiting, &["a", "b"], LONG));
    await_queued(&servers, "b", 1);
    // Each renewal extends the reservation of "a".
    let asked = asked_in(&servers, Duration::from_secs(3));
    assert!(asked < 20, "{asked} of each node");
    drop(held);
    drop(finish(thread));
    await_keys(&servers, &[]);
}

#[test]
fn a_part_of_a_set_is_reserved_until_it_has_waited_for_its_ttl() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "b", LONG);
    let set = pushed(servers.urls());
    let single = pushed(servers.urls());
    let waiting = set.clone();
    let ttl = Duration::from_secs(3);
    let start = Instant::now();
    let thread = spawn_waiter(move || waiting.request_all(["a", "b"]).ttl(ttl).lock().map(drop));
    await_queued(&servers, "b", 1);
    assert_eq!(
        single.try_lock("a", LONG).unwrap().map(drop),
        None,
        "it is reserved"
    );
    let first = single.lock("a", LONG).unwrap();
    assert!(
        start.elapsed() > ttl / 2,
        "longer than a claim: {:?}",
        start.elapsed()
    );
    assert!(start.elapsed() < ttl + BY_PUSH, "{:?}", start.elapsed());
    // It goes on to wait for the other, and only the holder is left in this queue.
    await_queued(&servers, "a", 1);
    await_queued(&servers, "b", 1);
    drop(held);
    // With the other one reserved for it, it waits for both again.
    await_queued(&servers, "a", 2);
    assert_eq!(
        single.try_lock("b", LONG).unwrap().map(drop),
        None,
        "it is reserved"
    );
    drop(first);
    assert_eq!(finish(thread), Ok(()));
    await_keys(&servers, &[]);
}

#[test]
fn sets_that_wait_for_a_held_resource_keep_others_from_the_rest_for_one_ttl_together() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "b", LONG);
    let ttl = Duration::from_secs(3);
    let mut line = Line::before("b");
    let start = Instant::now();
    for _ in 0..6 {
        let client = pushed(servers.urls());
        line.join_with(&servers, move |work| {
            work(&wait_for_all(&client, &["a", "b"], ttl));
        });
    }
    let single = pushed(servers.urls());
    let joined = Instant::now();
    for turn in 0..3 {
        let guard = single.lock("a", LONG).unwrap();
        drop(guard);
        assert!(
            joined.elapsed() < ttl + BY_PUSH,
            "turn {turn}: {:?}",
            start.elapsed()
        );
    }
    drop(held);
    // They are served in the order in which they came.
    line.end();
    await_keys(&servers, &[]);
}

#[test]
fn a_key_that_a_minority_has_does_not_keep_others_from_it_while_a_set_waits_for_another() {
    let servers = Servers::start(3);
    let _held = take(&holder(servers.urls()), "b", LONG);
    // The first node lacks this one, and the others the one that is held.
    servers[0].command(&["SET", "c", "foreign"]);
    let set = pushed(servers.urls());
    let waiting = set.clone();
    let ttl = Duration::from_secs(2);
    let names = ["a", "b", "c"];
    let thread = spawn_waiter(move || waiting.request_all(names).ttl(ttl).lock().map(drop));
    await_queued(&servers, "b", 1);
    // Until it has waited for its ttl, and for a ttl in which it believes the first node.
    let single = pushed(servers.urls())
        .request("c")
        .ttl(LONG)
        .try_lock_for(BY_PUSH)
        .unwrap();
    assert!(
        single.is_some(),
        "it is kept for as long as the other is held"
    );
    set.cancel_token().cancel();
    assert_eq!(finish(thread), Err(Error::Cancelled));
}

#[test]
fn what_was_reserved_for_a_set_that_leaves_is_for_the_next() {
    let servers = Servers::start(3);
    let lease = Duration::from_secs(2);
    let client = || with_lease(servers.urls(), lease).build().unwrap();
    let held = take(&holder(servers.urls()), "b", LONG);
    let set = client();
    let single = client();
    let waiting = set.clone();
    let thread = spawn_waiter(move || waiting.request_all(["a", "b"]).ttl(LONG).lock().map(drop));
    await_queued(&servers, "b", 1);
    let next = spawn_waiter(move || single.lock("a", LONG).map(drop));
    await_queued(&servers, "a", 2);
    set.cancel_token().cancel();
    assert_eq!(finish(thread), Err(Error::Cancelled));
    assert_eq!(finish(next), Ok(()));
    drop(held);
    assert!(gone(&servers, "a") && eventually(LIMIT, || holders(&servers, "b") == 0));
    await_keys(&servers, &[]);
}

#[test]
fn a_fenced_set_takes_its_turn_with_a_token_above_all_before_it() {
    let servers = Servers::start(5);
    let fenced = |client: &LockClient, names: &[&str]| {
        let request = client.request_all(names).ttl(LONG).fenced();
        request.lock().expect("it is served in the end")
    };
    let client = pushed(servers.urls());
    let held = fenced(&client, &["b"]);
    let before = held.fencing_token().unwrap();
    let other = pushed(servers.urls());
    let thread = spawn_waiter(move || fenced(&other, &["c", "b", "a"]).fencing_token().unwrap());
    await_queued(&servers, "c", 1);
    assert_eq!(held.release(), Ok(()));
    assert!(finish(thread) > before);
    await_keys(&servers, &[]);
}
