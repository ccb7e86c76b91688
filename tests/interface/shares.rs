//! Readers and permits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use support::backend::Backend;
use support::waiters::await_in_order;
use support::{eventually, on_each_backend};

use crate::{LIMIT, LONG};

on_each_backend!(
    readers_hold_the_lock_together_and_a_writer_alone,
    a_reader_behind_a_waiting_writer_waits,
    readers_of_one_client_that_come_together_leave_one_by_one,
    permits_have_slots_of_their_own,
    permits_exclude_writers_and_readers,
    many_readers_and_writers_exclude_each_other,
    tokens_of_readers_stand_between_those_of_writers,
);

fn readers_hold_the_lock_together_and_a_writer_alone(backend: &Backend) {
    let clients = [backend.client(), backend.client(), backend.client()];
    let read = |number: usize| clients[number].request("read").ttl(LONG).shared().try_lock();
    let (first, second) = (read(0).unwrap().unwrap(), read(1).unwrap().unwrap());
    assert_eq!((first.slot(), first.ensure_held()), (None, Ok(())));
    let write = || clients[2].request("read").ttl(LONG).try_lock().unwrap();
    assert!(write().is_none());
    first.release().unwrap();
    assert!(write().is_none());
    second.release().unwrap();
    let writer = clients[2].request("read").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap();
    assert!(read(0).unwrap().is_none());
    writer.release().unwrap();
    let mut reader =
        clients[0].request("read").ttl(LONG).shared().try_lock_for(LIMIT).unwrap().unwrap();
    reader.extend(LONG).unwrap();
    assert_eq!(reader.release(), Ok(()));
}

fn a_reader_behind_a_waiting_writer_waits(backend: &Backend) {
    let clients = &[backend.client(), backend.client(), backend.client()];
    let first = clients[0].request("fair").ttl(LONG).shared().lock().unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| clients[1].lock("fair", LONG).unwrap());
        await_in_order(&clients[0], "fair", 1);
        let reader = clients[2].request("fair").ttl(LONG).shared();
        assert!(reader.clone().try_lock().unwrap().is_none(), "a writer waits");
        let reader = scope.spawn(|| reader.lock().unwrap());
        first.release().unwrap();
        let writer = writer.join().unwrap();
        assert!(!reader.is_finished());
        writer.release().unwrap();
        assert_eq!(reader.join().unwrap().ensure_held(), Ok(()));
    });
}

fn readers_of_one_client_that_come_together_leave_one_by_one(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let write = || other.try_lock("crowd", LONG).unwrap();
    for _ in 0..5 {
        let request = client.request("crowd").ttl(LONG).shared();
        let mut readers = [(); 4].map(|()| request.clone().lock().unwrap());
        assert!(readers.iter().all(|reader| reader.remaining() > Duration::ZERO));
        readers[2].extend(LONG).unwrap();
        let [first, second, third, last] = readers;
        assert_eq!(first.release(), Ok(()));
        drop(second);
        thread::scope(|scope| _ = scope.spawn(|| drop(third)));
        assert!(write().is_none() && last.ensure_held().is_ok());
        assert_eq!(last.release(), Ok(()));
        assert!(eventually(LIMIT, || write().is_some()));
    }
}

fn permits_have_slots_of_their_own(backend: &Backend) {
    let clients: Vec<_> = (0..4).map(|_| backend.client()).collect();
    let take =
        |number: usize| clients[number].request("gpu").ttl(LONG).one_of(3).try_lock_for(LIMIT);
    let held: Vec<_> = (0..3).map(|number| take(number).unwrap().unwrap()).collect();
    let slots: BTreeSet<_> = held.iter().map(|permit| permit.slot().unwrap()).collect();
    assert_eq!(slots, BTreeSet::from([0, 1, 2]));
    let fourth = clients[3].request("gpu").ttl(LONG).one_of(3);
    assert!(fourth.clone().try_lock_for(Duration::from_millis(200)).unwrap().is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fourth.lock().unwrap().slot());
        let mut held = held;
        let given = held.swap_remove(1);
        let slot = given.slot();
        given.release().unwrap();
        assert_eq!(waiting.join().unwrap(), slot);
    });
}

fn permits_exclude_writers_and_readers(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let permit = client.request("mixed").ttl(LONG).one_of(2).lock().unwrap();
    assert!(other.try_lock("mixed", LONG).unwrap().is_none());
    assert!(other.request("mixed").ttl(LONG).shared().try_lock().unwrap().is_none());
    permit.release().unwrap();
    let writer = other.request("mixed").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap();
    assert!(client.request("mixed").ttl(LONG).one_of(2).try_lock().unwrap().is_none());
    writer.release().unwrap();
}

fn many_readers_and_writers_exclude_each_other(backend: &Backend) {
    // The number of readers, or -1 for a writer.
    let inside = &AtomicI32::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let client = backend.client();
            scope.spawn(move || {
                for round in 0..8 {
                    let request = client.request("crowd").ttl(LONG);
                    if (number + round) % 3 == 0 {
                        let lock = request.lock().unwrap();
                        assert_eq!(inside.swap(-1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        assert_eq!(inside.swap(0, Ordering::SeqCst), -1);
                        lock.release().unwrap();
                    } else {
                        let lock = request.shared().lock().unwrap();
                        assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0);
                        thread::yield_now();
                        assert!(inside.fetch_sub(1, Ordering::SeqCst) > 0);
                        lock.release().unwrap();
                    }
                }
            });
        }
    });
}

fn tokens_of_readers_stand_between_those_of_writers(backend: &Backend) {
    let client = backend.client();
    let write = || {
        let lock = client.request("tokens").ttl(LONG).fenced().lock().unwrap();
        lock.fencing_token().unwrap()
    };
    let read = || {
        let lock = client.request("tokens").ttl(LONG).shared().fenced().lock().unwrap();
        lock.fencing_token().unwrap()
    };
    let (before, between, after) = (write(), read(), write());
    assert!(before <= between && between < after, "{before} {between} {after}");
}
