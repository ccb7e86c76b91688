//! A waiter in the nodes' queue that gives up leaves nothing, and whatever frees the lock serves
//! the next one.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockGuard};
use support::eventually;
use support::locks::{LIMIT, LONG, holders, take};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{
    BY_PUSH, LONG_LEASE, Line, await_keys, await_queued, holder, keys, pushed, with_lease,
};

#[test]
fn a_waiter_leaves_the_queue_at_its_deadline() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let client = pushed(servers.urls());
    let held = take(&holder, "name", LONG);
    let wait = Duration::from_millis(400);
    let start = Instant::now();
    assert!(
        client
            .request("name")
            .ttl(LONG)
            .try_lock_for(wait)
            .unwrap()
            .is_none()
    );
    let waited = start.elapsed();
    assert!(waited >= wait * 9 / 10 && waited < BY_PUSH, "{waited:?}");
    // Long before its lease is over.
    await_keys(&servers, &["name"]);
    assert_eq!(held.release(), Ok(()));
    await_keys(&servers, &[]);
}

#[test]
fn a_waiter_that_leaves_does_not_hold_up_those_behind_it() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    let first = pushed(servers.urls());
    let leaving = spawn_waiter(move || {
        first
            .request("name")
            .ttl(LONG)
            .try_lock_for(Duration::from_secs(3))
            .unwrap()
            .is_none()
    });
    await_queued(&servers, "name", 1);
    let client = pushed(servers.urls());
    let next = spawn_waiter(move || client.lock("name", LONG).map(LockGuard::release));
    await_queued(&servers, "name", 2);
    assert!(finish(leaving), "it does not get the lock");
    await_queued(&servers, "name", 1);
    let start = Instant::now();
    drop(held);
    assert_eq!(finish(next).unwrap(), Ok(()));
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    await_keys(&servers, &[]);
}

#[test]
fn cancelling_wakes_all_waiters_at_once_and_leaves_nothing() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let client = pushed(servers.urls());
    let held = ["a", "b"].map(|name| take(&holder, name, LONG));
    let waiting: Vec<_> = ["a", "b", "a", "b"]
        .into_iter()
        .map(|name| {
            let client = client.clone();
            spawn_waiter(move || client.lock(name, LONG).map(drop))
        })
        .collect();
    ["a", "b"]
        .iter()
        .for_each(|name| await_queued(&servers, name, 1));
    let start = Instant::now();
    client.cancel_token().cancel();
    for waiter in waiting {
        assert_eq!(finish(waiter), Err(Error::Cancelled));
    }
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    ["a", "b"]
        .iter()
        .for_each(|name| await_queued(&servers, name, 0));
    assert!(["a", "b"].iter().all(|name| holders(&servers, name) == 3));
    drop(held);
    await_keys(&servers, &[]);
}

#[test]
fn a_cancelled_waiter_for_which_the_lock_is_reserved_passes_it_on() {
    for _ in 0..20 {
        let servers = Servers::start(1);
        let [holder, first, next] = [0, 1, 2].map(|_| holder(servers.urls()));
        let held = take(&holder, "name", LONG);
        let cancel = first.cancel_token();
        let cancelled = spawn_waiter(move || first.lock("name", LONG).map(drop));
        await_queued(&servers, "name", 1);
        let start = Instant::now();
        let served = spawn_waiter(move || next.lock("name", LONG).map(drop));
        await_queued(&servers, "name", 2);
        let releasing = thread::spawn(move || drop(held.release()));
        cancel.cancel();
        // It may have got the lock before.
        let _ = finish(cancelled);
        finish(releasing);
        assert_eq!(finish(served), Ok(()));
        assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
        await_keys(&servers, &[]);
    }
}

#[test]
fn a_set_s_release_serves_the_waiters_of_its_resources() {
    for is_fenced in [false, true] {
        let servers = Servers::start(3);
        let holder = holder(servers.urls());
        let request = holder.request_all(["a", "b"]).ttl(LONG);
        let request = if is_fenced { request.fenced() } else { request };
        let held = request.lock().unwrap();
        let mut a = Line::before("a");
        let mut b = Line::before("b");
        (0..2).for_each(|_| a.join(&servers, pushed(servers.urls())));
        b.join(&servers, pushed(servers.urls()));
        let start = Instant::now();
        assert_eq!(held.release(), Ok(()));
        assert!(a.end() - start < BY_PUSH && b.end() - start < BY_PUSH);
        await_keys(&servers, &[]);
    }
}

#[test]
fn a_set_gets_its_resources_after_those_who_wait_for_them() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    let mut line = Line::before("name");
    (0..3).for_each(|_| line.join(&servers, pushed(servers.urls())));
    let client = pushed(servers.urls());
    let set = spawn_waiter(move || {
        let guard = client
            .request_all(["name", "other"])
            .ttl(LONG)
            .lock()
            .unwrap();
        (Instant::now(), guard.release())
    });
    drop(held);
    let last = line.end();
    let (locked, released) = finish(set);
    assert_eq!(released, Ok(()));
    assert!(locked > last);
    await_keys(&servers, &[]);
}

#[test]
fn a_lock_that_expires_is_given_to_the_next_waiter_soon() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let ttl = Duration::from_secs(4);
    let start = Instant::now();
    std::mem::forget(take(&holder, "name", ttl));
    let mut line = Line::before("name");
    (0..2).for_each(|_| line.join(&servers, pushed(servers.urls())));
    let served = line.end() - start;
    assert!(
        served >= ttl * 9 / 10 && served < ttl + BY_PUSH,
        "{served:?}"
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_lock_got_in_turn_that_expires_is_given_to_the_next_waiter_soon() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    let ttl = Duration::from_secs(1);
    let mut line = Line::before("name");
    for _ in 0..2 {
        let client = pushed(servers.urls());
        line.join_with(&servers, move |work| {
            let guard = client.lock("name", ttl).expect("it is served in the end");
            work(&guard);
            // As if the process were killed.
            std::mem::forget(guard);
        });
    }
    line.join(&servers, pushed(servers.urls()));
    let start = Instant::now();
    drop(held);
    let served = line.end() - start;
    assert!(
        served >= ttl * 9 / 5 && served < 2 * ttl + BY_PUSH,
        "{served:?}"
    );
    // A node that was behind the majority keeps a dead waiter's place until its lease ends.
    assert!(eventually(2 * LONG_LEASE, || servers
        .iter()
        .all(|server| keys(server).is_empty())));
}

#[test]
fn a_key_that_another_program_deletes_is_found_free_at_the_next_renewal() {
    let servers = Servers::start(3);
    let lease = Duration::from_millis(900);
    let client = || with_lease(servers.urls(), lease).build().unwrap();
    let held = take(&client(), "name", LONG);
    let mut line = Line::before("name");
    (0..2).for_each(|_| line.join(&servers, client()));
    let start = Instant::now();
    for server in servers.iter() {
        server.command(&["DEL", "name"]);
    }
    let served = line.end() - start;
    assert!(served < lease + LIMIT / 4, "{served:?}");
    assert!(matches!(held.release(), Err(Error::Lost(_))));
    await_keys(&servers, &[]);
}

#[test]
fn a_waiter_that_one_node_refuses_its_turn_leaves_it_after_a_handoff() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let client = pushed(servers.urls());
    let held = take(&holder, "name", LONG);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let client = client.clone();
            spawn_waiter(move || client.lock("name", LONG).map(drop))
        })
        .collect();
    await_queued(&servers, "name", 1);
    // The first thread gets the lock from the two others, and hands it off to the second.
    servers[2].command(&["SET", "name", "of another program", "PX", "50000"]);
    drop(held);
    threads
        .into_iter()
        .for_each(|thread| assert_eq!(finish(thread), Ok(())));
    await_keys(&servers[..2], &[]);
    await_keys(&servers[2..], &["name"]);
}

/// Everything that threads may do with two locks, all at once.
#[test]
fn whatever_clients_do_at_once_no_waiter_stays_behind() {
    let servers = Servers::start(5);
    let little = Duration::from_millis(5);
    thread::scope(|scope| {
        for number in 0..4 {
            let client = pushed(servers.urls());
            for thread in 0..3 {
                let client = client.clone();
                scope.spawn(move || {
                    for round in 0..40 {
                        let name = ["a", "b"][(round / 3 + number) % 2];
                        let request = client.request(name).ttl(LONG);
                        let guard = match (round * 7 + number * 3 + thread) % 6 {
                            0 => request.lock().map(Some),
                            1 => request.try_lock_for(little),
                            2 => request.fenced().lock().map(Some),
                            3 => request.fenced().try_lock_for(little * 4),
                            4 => client
                                .request_all(["b", "a"])
                                .ttl(LONG)
                                .try_lock_for(little),
                            _ => request.try_lock(),
                        };
                        let guard = match guard {
                            // On a busy machine nothing may be known after so little time.
                            Err(Error::NoQuorum(_)) => None,
                            guard => guard.expect("no other error is possible"),
                        };
                        if round % 2 == 0 {
                            guard
                                .into_iter()
                                .for_each(|guard| guard.release().expect("a majority answers"));
                        }
                    }
                });
            }
        }
    });
    await_keys(&servers, &[]);
}
