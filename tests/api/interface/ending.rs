//! How a lock is given up: released, dropped, left to its ttl, or held at least for some time; and
//! the end of a client.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::NotResumable;
use redlatch::{Error, LockGuard};
use support::backend::Backend;
use support::journal::names;
use support::on_each_backend;
use support::queue::{finish, spawn_waiter};

use super::{LIMIT, LONG, SHORT, is_taken, take, take_next};

const LEAST: Duration = Duration::from_millis(1500);

on_each_backend!(
    a_dropped_guard_frees_the_lock,
    a_panic_frees_the_lock_by_dropping_its_guard,
    a_lock_stays_taken_for_as_long_as_its_request_says,
    what_is_held_at_least_for_some_time_is_free_after_it,
    a_lock_that_is_left_ends_with_its_ttl,
    a_lock_that_is_left_is_kept_alive_no_longer,
    a_waiting_thread_gets_a_lock_that_stays_taken_only_after_that_time,
    dropping_the_client_frees_what_it_held,
    a_lock_that_lingers_outlives_its_client,
    clones_share_what_they_hold,
    another_client_resumes_a_lock_or_is_told_that_it_cannot,
);

fn a_dropped_guard_frees_the_lock(backend: &Backend) {
    let first = backend.client();
    let second = backend.client();
    for _ in 0..20 {
        drop(first.lock("dropped", LONG).unwrap());
        drop(take_next(&second, "dropped"));
    }
}

fn a_panic_frees_the_lock_by_dropping_its_guard(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let guard = take(&client, "panic");
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _guard: LockGuard = guard;
        resume_unwind(Box::new("the work went wrong"));
    }));
    assert!(caught.is_err());
    drop(take_next(&other, "panic"));
    // Also in a thread that the panic ends.
    let guard = take_next(&client, "panic");
    let ended = thread::spawn(move || {
        let _guard = guard;
        resume_unwind(Box::new("so did this"));
    });
    assert!(ended.join().is_err());
    drop(take_next(&other, "panic"));
    assert_eq!(take_next(&client, "panic").release(), Ok(()));
}

fn a_lock_stays_taken_for_as_long_as_its_request_says(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let ways: [fn(LockGuard); 2] = [drop, |guard| assert_eq!(guard.release(), Ok(()))];
    // Beyond the ttl, and not until it.
    for (give_up, ttl) in ways.into_iter().flat_map(|way| [(way, SHORT), (way, LONG)]) {
        let least = 2 * SHORT;
        let began = Instant::now();
        let request = client.request("least").ttl(ttl).hold_at_least(least);
        give_up(request.try_lock_for(LIMIT).unwrap().unwrap());
        assert!(is_taken(&other, "least"));
        let next = take_next(&other, "least");
        assert!(
            began.elapsed() >= least && began.elapsed() < LIMIT,
            "{:?}",
            began.elapsed()
        );
        assert_eq!(next.release(), Ok(()));
    }
    // All locks of a set, and that of a body.
    let began = Instant::now();
    let set = client
        .request_all(["a", "b"])
        .ttl(LONG)
        .fenced()
        .hold_at_least(LEAST);
    assert_eq!(set.lock().unwrap().release(), Ok(()));
    let body = client.request("body").ttl(SHORT).hold_at_least(LEAST);
    assert_eq!(body.try_with_lock(|_| Ok::<_, Error>(7)), Ok(Some(7)));
    for name in ["a", "b", "body"] {
        assert!(is_taken(&other, name));
    }
    for name in ["a", "b", "body"] {
        drop(take_next(&other, name));
        assert!(began.elapsed() >= LEAST);
    }
}

fn what_is_held_at_least_for_some_time_is_free_after_it(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let ways: [fn(LockGuard); 2] = [drop, |guard| assert_eq!(guard.release(), Ok(()))];
    for give_up in ways {
        let least = Duration::from_millis(100);
        let guard = client
            .request("slow")
            .ttl(LONG)
            .hold_at_least(least)
            .lock()
            .unwrap();
        thread::sleep(least);
        give_up(guard);
        drop(take_next(&other, "slow"));
    }
    // Under which no job has started.
    let request = || client.request("cron").ttl(LONG).hold_at_least(LEAST);
    for request in [request(), request().shared(), request().one_of(2)] {
        let began = Instant::now();
        let mut guard = request.try_lock_for(LIMIT).unwrap().unwrap();
        guard.waive_hold_at_least();
        assert_eq!(guard.release(), Ok(()));
        let is_free = !is_taken(&other, "cron");
        assert!(is_free || began.elapsed() > LEAST);
    }
}

fn a_lock_that_is_left_ends_with_its_ttl(backend: &Backend) {
    let other = backend.client();
    let (client, journal) = backend.recorded_client();
    for is_extended in [false, true] {
        let began = Instant::now();
        let mut lock = client.lock("left", SHORT).unwrap();
        let ttl = if is_extended { 2 * SHORT } else { SHORT };
        lock.extend(ttl).unwrap();
        lock.let_expire();
        let events = journal.take_lock_events();
        assert_eq!(
            names(&events)[events.len() - 3..],
            ["acquired", "extended", "let_expire"]
        );
        let left = events[events.len() - 1].validity;
        assert!(left > Duration::ZERO && left < ttl, "{left:?}");
        assert!(is_taken(&other, "left"));
        drop(take_next(&other, "left"));
        assert!(began.elapsed() >= ttl && began.elapsed() < LIMIT);
    }
}

fn a_lock_that_is_left_is_kept_alive_no_longer(backend: &Backend) {
    let other = backend.client();
    let (client, journal) = backend.recorded_client();
    let lock = client
        .request("kept")
        .ttl(SHORT)
        .keep_alive()
        .lock()
        .unwrap();
    thread::sleep(SHORT);
    assert_eq!(
        lock.ensure_held(),
        Ok(()),
        "it is extended until it is left"
    );
    lock.let_expire();
    let left = journal.take_lock_events().last().unwrap().validity;
    assert!(left > Duration::ZERO && left <= SHORT, "{left:?}");
    assert!(is_taken(&other, "kept"));
    drop(take_next(&other, "kept"));
    // Also if another reader has the same share for longer.
    let read = || {
        client
            .request("read")
            .ttl(SHORT)
            .shared()
            .keep_alive()
            .lock()
            .unwrap()
    };
    let first = read();
    let second = read();
    first.let_expire();
    assert_eq!(second.release(), Ok(()));
    assert!(is_taken(&other, "read"));
    drop(take_next(&other, "read"));
}

fn a_waiting_thread_gets_a_lock_that_stays_taken_only_after_that_time(backend: &Backend) {
    let client = backend.client();
    let ways: [fn(LockGuard); 3] = [
        LockGuard::let_expire,
        |guard| assert_eq!(guard.release(), Ok(())),
        drop,
    ];
    for give_up in ways {
        let began = Instant::now();
        let request = client.request("line").ttl(LEAST).hold_at_least(LEAST);
        let guard = request.try_lock_for(LIMIT).unwrap().unwrap();
        let waiting = client.clone();
        let waiting = spawn_waiter(move || drop(take_next(&waiting, "line")));
        give_up(guard);
        finish(waiting);
        assert!(
            began.elapsed() >= LEAST,
            "it was handed on: {:?}",
            began.elapsed()
        );
    }
}

fn another_client_resumes_a_lock_or_is_told_that_it_cannot(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let given = client.lock("given", LONG).unwrap().into_token();
    if backend.is_zookeeper() {
        assert!(
            matches!(given, Err(Error::NotResumable(NotResumable::Session))),
            "{given:?}"
        );
        drop(take_next(&other, "given"));
        let of_redis = "redlatch1.abababababababababababababababababababab.60000.x00000000"
            .parse()
            .unwrap();
        let refused = other.request("given").resume(&of_redis).map(drop);
        assert_eq!(refused, Err(Error::NotResumable(NotResumable::Session)));
        return;
    }
    drop(client);
    let lock = other
        .request("given")
        .ttl(LONG)
        .resume(&given.unwrap())
        .unwrap();
    assert_eq!(lock.release(), Ok(()));
}

fn dropping_the_client_frees_what_it_held(backend: &Backend) {
    let other = backend.client();
    let name = |number| format!("drop-{number}");
    // Their order decides nothing: the last one of both ends the client.
    for is_client_first in [false, true] {
        let client = backend.client();
        let locks: Vec<_> = (0..50).map(|number| take(&client, &name(number))).collect();
        if is_client_first {
            drop(client);
            drop(locks);
        } else {
            drop(locks);
            drop(client);
        }
        (0..50).for_each(|number| drop(take(&other, &name(number))));
        (0..50).for_each(|number| drop(take_next(&other, &name(number))));
    }
}

fn a_lock_that_lingers_outlives_its_client(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let began = Instant::now();
    drop(
        client
            .request("lingers")
            .ttl(LONG)
            .hold_at_least(LEAST)
            .lock()
            .unwrap(),
    );
    drop(client);
    assert!(is_taken(&other, "lingers"));
    drop(take_next(&other, "lingers"));
    assert!(began.elapsed() >= LEAST);
}

fn clones_share_what_they_hold(backend: &Backend) {
    let client = backend.client();
    let lock = client.clone().lock("clone", LONG).unwrap();
    drop(client);
    assert_eq!(lock.ensure_held(), Ok(()));
    let moved = thread::spawn(move || lock.release());
    assert_eq!(moved.join().unwrap(), Ok(()));
}
