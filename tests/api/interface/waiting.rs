//! Waiting for a lock: order and deadlines.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::backend::Backend;
use support::waiters::await_in_order;
use support::{eventually, on_each_backend};

use super::{LIMIT, LONG, WAIT};

on_each_backend!(
    clients_are_served_in_the_order_in_which_they_came,
    many_clients_exclude_each_other,
    many_threads_of_one_client_exclude_each_other,
    a_wait_ends_at_its_deadline_and_leaves_no_place,
    a_try_overtakes_nobody,
    a_waiter_whose_client_is_gone_is_in_nobodys_way,
    a_waiter_whose_callback_panics_keeps_nothing,
);

fn clients_are_served_in_the_order_in_which_they_came(backend: &Backend) {
    let holder = backend.client();
    let guard = holder.lock("order", LONG).unwrap();
    let served = &Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..5 {
            let client = backend.client();
            scope.spawn(move || {
                let lock = client.lock("order", LONG).unwrap();
                served.lock().unwrap().push(number);
                drop(lock);
            });
            await_in_order(&backend.client(), "order", number + 1);
        }
        guard.release().unwrap();
    });
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 4]);
}

/// Takes the lock so often from each of these, and checks that nobody else has it.
fn exclude(takers: Vec<impl Fn() -> redlatch::LockGuard + Send>, times: usize) {
    let is_taken = &AtomicBool::new(false);
    thread::scope(|scope| {
        for take in takers {
            scope.spawn(move || {
                for _ in 0..times {
                    let lock = take();
                    assert!(!is_taken.swap(true, Ordering::SeqCst), "two holders");
                    thread::yield_now();
                    assert!(is_taken.swap(false, Ordering::SeqCst), "two holders");
                    lock.release().unwrap();
                }
            });
        }
    });
}

fn many_clients_exclude_each_other(backend: &Backend) {
    let clients: Vec<_> = (0..8).map(|_| backend.client()).collect();
    let take = clients
        .into_iter()
        .map(|client| move || client.lock("many", LONG).unwrap());
    exclude(take.collect(), 15);
}

fn many_threads_of_one_client_exclude_each_other(backend: &Backend) {
    let client = &backend.client();
    let take = (0..32).map(|_| || client.lock("threads", LONG).unwrap());
    exclude(take.collect(), 10);
}

fn a_wait_ends_at_its_deadline_and_leaves_no_place(backend: &Backend) {
    let holder = backend.client();
    let other = backend.client();
    let guard = holder.lock("deadline", LONG).unwrap();
    let began = Instant::now();
    assert!(
        other
            .request("deadline")
            .ttl(LONG)
            .try_lock_for(WAIT)
            .unwrap()
            .is_none()
    );
    assert!(began.elapsed() >= WAIT && began.elapsed() < LIMIT);
    let is_alone = || {
        holder
            .inspect("deadline")
            .is_ok_and(|seen| seen.waiter_count == 0)
    };
    assert!(eventually(LIMIT, is_alone));
    guard.release().unwrap();
    assert!(
        backend
            .client()
            .request("deadline")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
}

fn a_try_overtakes_nobody(backend: &Backend) {
    let holder = backend.client();
    let waiter = backend.client();
    let other = backend.client();
    let guard = holder.lock("try", LONG).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| waiter.lock("try", LONG).unwrap());
        await_in_order(&backend.client(), "try", 1);
        guard.release().unwrap();
        let lock = waiting.join().unwrap();
        assert!(other.try_lock("try", LONG).unwrap().is_none());
        lock.release().unwrap();
    });
}

fn a_waiter_whose_client_is_gone_is_in_nobodys_way(backend: &Backend) {
    let holder = backend.client();
    let guard = holder.lock("gone", LONG).unwrap();
    let gone = backend.client();
    let wait = Duration::from_millis(100);
    // Too few nodes may answer a new client in this time to know who has the lock.
    assert!(!matches!(
        gone.request("gone").ttl(LONG).try_lock_for(wait),
        Ok(Some(_))
    ));
    drop(gone);
    guard.release().unwrap();
    assert!(
        backend
            .client()
            .request("gone")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
}

fn a_waiter_whose_callback_panics_keeps_nothing(backend: &Backend) {
    for kind in ["queued", "woken"] {
        let guard = backend.client().lock("panic", LONG).unwrap();
        let settings = backend.builder().on_event(move |event| {
            assert!(event.name() != kind, "on purpose");
        });
        let client = settings.build().unwrap();
        let wait = || client.request("panic").ttl(LONG).keep_alive().lock();
        thread::scope(|scope| {
            let waits = scope.spawn(|| catch_unwind(AssertUnwindSafe(wait)).is_err());
            if kind == "woken" {
                await_in_order(&backend.client(), "panic", 1);
            } else {
                assert!(eventually(LIMIT, || waits.is_finished()));
            }
            guard.release().unwrap();
            assert!(waits.join().unwrap(), "the caller gets the panic");
        });
        let next = backend
            .client()
            .request("panic")
            .ttl(LONG)
            .try_lock_for(LIMIT / 2);
        assert!(next.unwrap().is_some(), "{kind}: the lock is free");
        // Other threads of that client get it, too.
        let next = client.request("panic").ttl(LONG).try_lock();
        assert!(catch_unwind(AssertUnwindSafe(|| next.unwrap().is_some())).unwrap());
    }
}
