//! Threads of one client, which hand a lock on to each other.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use redlatch::{Error, LossReason};
use support::backend::Backend;
use support::loss::loss_in;
use support::queue::{finish, spawn_waiter};
use support::{eventually, on_each_backend};

use super::{LIMIT, LONG, SHORT, end_by_force, is_taken, take, take_next};

on_each_backend!(
    threads_are_served_in_the_order_in_which_they_came,
    other_clients_get_the_lock_as_well,
    a_thread_gets_what_another_one_lost,
    a_thread_does_not_wait_for_a_lock_that_an_extension_found_lost,
    whoever_does_not_wait_is_refused_at_once_however_long_the_queue_is,
);

fn threads_are_served_in_the_order_in_which_they_came(backend: &Backend) {
    let client = backend.client();
    let guard = take(&client, "order");
    let served = std::sync::Arc::new(Mutex::new(Vec::new()));
    let arrive = |number: usize| {
        let client = client.clone();
        let served = std::sync::Arc::clone(&served);
        spawn_waiter(move || {
            // With all ways to wait and to release.
            let guard = match number % 3 {
                0 => client.lock("order", LONG).unwrap(),
                _ => take_next(&client, "order"),
            };
            served.lock().unwrap().push(number);
            if number % 2 == 0 {
                drop(guard);
            } else {
                assert_eq!(guard.release(), Ok(()));
            }
        })
    };
    let threads: Vec<_> = (0..9).map(arrive).collect();
    assert!(served.lock().unwrap().is_empty());
    drop(guard);
    threads.into_iter().for_each(finish);
    assert_eq!(*served.lock().unwrap(), (0..9).collect::<Vec<_>>());
}

/// Four threads of a client hold the lock again and again, until another client, as in another
/// process, has got it five times. Never two at once.
fn other_clients_get_the_lock_as_well(backend: &Backend) {
    let millis = Duration::from_millis;
    let limits = [
        (5, LONG, 1),
        (u32::MAX, millis(20), 1),
        (u32::MAX, millis(20), 50),
        (0, LONG, 10),
    ];
    for (count, time, hold) in limits {
        let client = backend
            .builder()
            .handoff_limit(count, time)
            .build()
            .unwrap();
        let other = backend.client();
        let is_inside = AtomicBool::new(false);
        let is_over = AtomicBool::new(false);
        let turns = AtomicUsize::new(0);
        let others = AtomicUsize::new(0);
        let turn = |client: &redlatch::LockClient, turns: &AtomicUsize, hold| {
            let guard = client.lock("shared", LONG).unwrap();
            assert!(!is_inside.swap(true, Ordering::SeqCst), "two at once");
            thread::sleep(hold);
            assert!(is_inside.swap(false, Ordering::SeqCst));
            turns.fetch_add(1, Ordering::SeqCst);
            drop(guard);
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        turn(&client, &turns, millis(hold));
                    }
                });
            }
            assert!(eventually(LIMIT, || turns.load(Ordering::SeqCst) > 0));
            scope.spawn(|| (0..5).for_each(|_| turn(&other, &others, Duration::ZERO)));
            let had_turns = eventually(LIMIT, || others.load(Ordering::SeqCst) == 5);
            is_over.store(true, Ordering::SeqCst);
            assert!(
                had_turns,
                "{others:?} turns beside {turns:?}: {count} {time:?}"
            );
        });
    }
}

fn a_thread_gets_what_another_one_lost(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let lock = client.lock("handed", SHORT).unwrap();
    let waiting = client.clone();
    let waiting = spawn_waiter(move || take_next(&waiting, "handed"));
    // The guard stays until after its end.
    assert!(lock.wait_lost(LIMIT).is_some());
    let next = finish(waiting);
    assert!(matches!(lock.release(), Err(Error::Lost(_))));
    assert!(
        is_taken(&other, "handed"),
        "the release of the first has not freed it"
    );
    assert_eq!(next.release(), Ok(()));
}

fn a_thread_does_not_wait_for_a_lock_that_an_extension_found_lost(backend: &Backend) {
    let client = backend.client();
    let mut guard = take(&client, "lost");
    let waiting = client.clone();
    let waiting = spawn_waiter(move || take_next(&waiting, "lost"));
    end_by_force(&backend.client(), "lost");
    assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Gone));
    // The lock is free, whenever the former holder releases it.
    let next = finish(waiting);
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert_eq!((next.ensure_held(), next.release()), (Ok(()), Ok(())));
}

fn whoever_does_not_wait_is_refused_at_once_however_long_the_queue_is(backend: &Backend) {
    let client = backend.client();
    let guard = take(&client, "passing");
    let wait = || {
        let client = client.clone();
        spawn_waiter(move || drop(take_next(&client, "passing")))
    };
    let threads: Vec<_> = (0..3).map(|_| wait()).collect();
    for _ in 0..20 {
        let client = client.clone();
        assert!(finish(thread::spawn(move || is_taken(&client, "passing"))));
    }
    drop(guard);
    threads.into_iter().for_each(finish);
    drop(take_next(&client, "passing"));
}
