//! Readers and permits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use redlatch::{Error, LockClient, LockGuard, LockRequest, LockState};
use support::backend::Backend;
use support::queue::{finish, spawn_waiter};
use support::waiters::await_in_order;
use support::{eventually, on_each_backend};

use super::{LIMIT, LONG, SHORT, WAIT, end_by_force, is_taken, take_next};

on_each_backend!(
    readers_hold_the_lock_together_and_a_writer_alone,
    readers_behind_a_waiting_writer_are_served_after_it_and_together,
    a_reader_that_dies_delays_a_writer_until_its_own_ttl_has_passed,
    a_share_is_extended_and_kept_alive_by_itself,
    an_inspection_shows_all_readers_and_who_waits,
    readers_of_one_client_that_come_together_leave_one_by_one,
    permits_have_slots_of_their_own,
    a_permit_that_is_given_back_goes_to_the_first_waiter,
    permits_exclude_writers_and_readers,
    many_threads_never_have_the_same_permit_at_once,
    many_readers_and_writers_exclude_each_other,
    tokens_of_readers_stand_between_those_of_writers,
    tokens_of_permits_grow,
);

fn shared<'a>(client: &'a LockClient, name: &str) -> LockRequest<'a> {
    client.request(name).ttl(LONG).shared()
}

fn permit(client: &LockClient, name: &str, count: u32) -> Option<LockGuard> {
    client
        .request(name)
        .ttl(LONG)
        .one_of(count)
        .try_lock()
        .unwrap()
}

fn readers_hold_the_lock_together_and_a_writer_alone(backend: &Backend) {
    let clients = [backend.client(), backend.client(), backend.client()];
    let read = |number: usize| shared(&clients[number], "read").try_lock().unwrap();
    let first = read(0).unwrap();
    let second = read(1).unwrap();
    assert_eq!((first.slot(), first.ensure_held()), (None, Ok(())));
    assert!(is_taken(&clients[2], "read"));
    first.release().unwrap();
    assert!(is_taken(&clients[2], "read"));
    second.release().unwrap();
    let writer = take_next(&clients[2], "read");
    assert!(read(0).is_none());
    writer.release().unwrap();
    let mut reader = shared(&clients[0], "read")
        .try_lock_for(LIMIT)
        .unwrap()
        .unwrap();
    reader.extend(LONG).unwrap();
    assert_eq!(reader.release(), Ok(()));
}

fn readers_behind_a_waiting_writer_are_served_after_it_and_together(backend: &Backend) {
    const READERS: usize = 10;
    let client = backend.client();
    let writer = backend.client();
    let other = backend.client();
    let first = shared(&client, "fair").lock().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let writing = Arc::clone(&order);
    let writing = spawn_waiter(move || {
        let guard = writer.lock("fair", LONG).unwrap();
        writing.lock().unwrap().push("writer");
        guard.release()
    });
    await_in_order(&client, "fair", 1);
    assert!(
        shared(&other, "fair").try_lock().unwrap().is_none(),
        "it overtakes nobody"
    );
    let all = Arc::new(Barrier::new(READERS));
    let reading: Vec<_> = (0..READERS)
        .map(|_| {
            let client = backend.client();
            let order = Arc::clone(&order);
            let all = Arc::clone(&all);
            spawn_waiter(move || {
                let guard = shared(&client, "fair").lock().unwrap();
                order.lock().unwrap().push("reader");
                all.wait(); // ends only if all of them hold it at the same time
                guard.release()
            })
        })
        .collect();
    await_in_order(&client, "fair", 1 + READERS);
    assert!(!writing.is_finished(), "a reader has the lock");
    assert_eq!(first.release(), Ok(()));
    assert_eq!(finish(writing), Ok(()));
    assert!(
        reading
            .into_iter()
            .map(finish)
            .all(|released| released == Ok(()))
    );
    assert_eq!(order.lock().unwrap()[..2], ["writer", "reader"]);
}

fn a_reader_that_dies_delays_a_writer_until_its_own_ttl_has_passed(backend: &Backend) {
    let client = backend.client();
    let writer = backend.client();
    std::mem::forget(shared(&client, "dead").ttl(SHORT).lock().unwrap());
    assert_eq!(shared(&client, "dead").lock().unwrap().release(), Ok(()));
    // Not that of the one that has gone.
    drop(take_next(&writer, "dead"));
}

fn a_share_is_extended_and_kept_alive_by_itself(backend: &Backend) {
    let client = backend.client();
    let request = || shared(&client, "alone").ttl(SHORT);
    let kept = request().keep_alive().lock().unwrap();
    let mut extended = request().lock().unwrap();
    extended.extend(LONG).unwrap();
    // With a name of its own, so it is not extended together with the other one.
    let lost = request().owner("other").lock().unwrap();
    assert!(lost.wait_lost(LIMIT).is_some());
    assert!(kept.wait_lost(SHORT).is_none());
    assert_eq!(extended.ensure_held(), Ok(()));
    let held = |state| matches!(state, LockState::Shared(holders) if holders.len() == 2);
    assert!(eventually(LIMIT, || held(
        client.inspect("alone").unwrap().state
    )));
}

fn an_inspection_shows_all_readers_and_who_waits(backend: &Backend) {
    let client = backend.client();
    let writer = backend.client();
    let read = |owner| shared(&client, "seen").owner(owner).lock().unwrap();
    let readers = [read("one"), read("two")];
    let waiting = spawn_waiter(move || {
        writer
            .request("seen")
            .owner("writer")
            .ttl(LONG)
            .lock()
            .map(LockGuard::release)
    });
    await_in_order(&client, "seen", 1);
    let seen = client.inspect("seen").unwrap();
    let LockState::Shared(holders) = &seen.state else {
        panic!("{seen:?}")
    };
    let mut owners: Vec<_> = holders
        .iter()
        .map(|it| it.owner().unwrap().to_string())
        .collect();
    owners.sort();
    assert_eq!(owners, ["one", "two"]);
    assert!(holders.iter().all(|it| it.slot.is_none()));
    let waiters: Vec<_> = seen
        .waiters
        .iter()
        .map(|it| it.owner().unwrap().to_string())
        .collect();
    assert_eq!(waiters, ["writer"]);
    assert!(!seen.waiters[0].is_for_share());
    // An operator ends the readers that were seen.
    end_by_force(&client, "seen");
    assert_eq!(finish(waiting), Ok(Ok(())));
    for reader in readers {
        assert!(matches!(reader.release(), Err(Error::Lost(_))));
    }
}

fn readers_of_one_client_that_come_together_leave_one_by_one(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    for _ in 0..5 {
        let mut readers = [(); 4].map(|()| shared(&client, "crowd").lock().unwrap());
        assert!(
            readers
                .iter()
                .all(|reader| reader.remaining() > Duration::ZERO)
        );
        readers[2].extend(LONG).unwrap();
        let [first, second, third, last] = readers;
        assert_eq!(first.release(), Ok(()));
        drop(second);
        thread::scope(|scope| _ = scope.spawn(|| drop(third)));
        assert!(is_taken(&other, "crowd") && last.ensure_held().is_ok());
        assert_eq!(last.release(), Ok(()));
        assert!(eventually(LIMIT, || !is_taken(&other, "crowd")));
    }
}

fn permits_have_slots_of_their_own(backend: &Backend) {
    let clients = [backend.client(), backend.client()];
    let mut held: Vec<_> = (0..4)
        .map(|it| permit(&clients[it % 2], "gpu", 4).unwrap())
        .collect();
    let slots: BTreeSet<_> = held.iter().map(|permit| permit.slot().unwrap()).collect();
    assert_eq!(slots, BTreeSet::from([0, 1, 2, 3]));
    let fifth = clients[1].request("gpu").ttl(LONG).one_of(4);
    assert!(fifth.clone().try_lock_for(WAIT).unwrap().is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| fifth.lock().unwrap().slot());
        let given = held.swap_remove(1);
        let slot = given.slot();
        given.release().unwrap();
        assert_eq!(waiting.join().unwrap(), slot);
    });
}

fn a_permit_that_is_given_back_goes_to_the_first_waiter(backend: &Backend) {
    let client = backend.client();
    let given = permit(&client, "line", 2).unwrap();
    let kept = permit(&client, "line", 2).unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let wait = |number: usize| {
        let waiter = backend.client();
        let served = Arc::clone(&served);
        let waiting = spawn_waiter(move || {
            let guard = waiter.request("line").ttl(LONG).one_of(2).lock().unwrap();
            served.lock().unwrap().push(number);
            guard.release()
        });
        await_in_order(&client, "line", number + 1);
        waiting
    };
    let waiting: Vec<_> = (0..4).map(wait).collect();
    assert!(permit(&client, "line", 2).is_none());
    assert_eq!(given.release(), Ok(()));
    assert!(
        waiting
            .into_iter()
            .map(finish)
            .all(|released| released == Ok(()))
    );
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3]);
    assert_eq!(kept.release(), Ok(()));
}

fn permits_exclude_writers_and_readers(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let held = [
        permit(&client, "mixed", 3).unwrap(),
        permit(&client, "mixed", 3).unwrap(),
    ];
    assert!(is_taken(&other, "mixed"));
    assert!(shared(&other, "mixed").try_lock().unwrap().is_none());
    let whole = other.clone();
    let waiting = spawn_waiter(move || take_next(&whole, "mixed"));
    await_in_order(&client, "mixed", 1);
    assert!(
        permit(&client, "mixed", 3).is_none(),
        "a permit is free, and somebody waits"
    );
    for permit in held {
        assert!(!waiting.is_finished());
        assert_eq!(permit.release(), Ok(()));
    }
    let writer = finish(waiting);
    assert!(permit(&client, "mixed", 3).is_none());
    writer.release().unwrap();
}

fn many_threads_never_have_the_same_permit_at_once(backend: &Backend) {
    const COUNT: u32 = 3;
    let clients = [(); 4].map(|()| backend.client());
    let in_use: &Mutex<BTreeSet<u32>> = &Mutex::default();
    thread::scope(|scope| {
        for number in 0..12 {
            let client = &clients[number % 4];
            scope.spawn(move || {
                for _ in 0..15 {
                    let guard = client
                        .request("slots")
                        .ttl(LONG)
                        .one_of(COUNT)
                        .lock()
                        .unwrap();
                    let slot = guard.slot().unwrap();
                    assert!(slot < COUNT);
                    assert!(in_use.lock().unwrap().insert(slot), "{slot} is in use");
                    thread::sleep(Duration::from_millis(1));
                    in_use.lock().unwrap().remove(&slot);
                    assert_eq!(guard.release(), Ok(()));
                }
            });
        }
    });
}

fn many_readers_and_writers_exclude_each_other(backend: &Backend) {
    // The number of readers, or -1 for a writer.
    let inside = &AtomicI32::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let client = backend.client();
            scope.spawn(move || {
                for round in 0..8 {
                    if (number + round) % 3 == 0 {
                        let lock = client.lock("crowd", LONG).unwrap();
                        assert_eq!(inside.swap(-1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        assert_eq!(inside.swap(0, Ordering::SeqCst), -1);
                        lock.release().unwrap();
                    } else {
                        let lock = shared(&client, "crowd").lock().unwrap();
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
    let token = |request: LockRequest<'_>| request.fenced().lock().unwrap().fencing_token();
    let write = || token(client.request("tokens").ttl(LONG));
    let before = write();
    let between = token(shared(&client, "tokens"));
    let after = write();
    assert!(
        before.is_some() && before <= between,
        "{before:?} {between:?}"
    );
    assert!(between < after, "{between:?} {after:?}");
}

fn tokens_of_permits_grow(backend: &Backend) {
    let client = backend.client();
    let mut last = None;
    for _ in 0..5 {
        let guard = client
            .request("tokens")
            .ttl(LONG)
            .one_of(2)
            .fenced()
            .lock()
            .unwrap();
        assert!(guard.fencing_token() > last);
        last = guard.fencing_token();
    }
}
