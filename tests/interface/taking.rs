//! Taking a lock, and giving it back.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockGuard};
use support::backend::Backend;
use support::on_each_backend;

use crate::{LIMIT, LONG};

on_each_backend!(
    all_methods_take_a_free_lock,
    all_methods_respect_a_held_lock,
    a_wait_of_zero_is_no_wait_also_for_a_new_client,
    a_dropped_guard_frees_the_lock,
    names_of_all_bytes_are_locks_of_their_own,
    a_prefix_and_a_name_are_one_key,
    a_body_runs_under_the_lock,
    a_body_that_waits_for_its_own_lock_is_told_so,
    a_set_is_taken_as_a_whole,
    sets_in_any_order_make_no_deadlock,
    fencing_tokens_grow_over_clients_and_threads,
);

fn all_methods_take_a_free_lock(backend: &Backend) {
    let client = backend.client();
    let request = client.request("way-until").ttl(LONG);
    let guards = [
        client.try_lock("way", LONG).unwrap().unwrap(),
        client.request("way-for").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap(),
        request.try_lock_until(Instant::now() + LIMIT).unwrap().unwrap(),
        client.lock("way-waiting", LONG).unwrap(),
    ];
    for guard in guards {
        assert_eq!(guard.ensure_held(), Ok(()));
        assert!(guard.remaining() > Duration::ZERO && guard.remaining() < LONG);
        assert_eq!(guard.fencing_token(), None);
        assert_eq!(guard.release(), Ok(()));
    }
}

fn all_methods_respect_a_held_lock(backend: &Backend) {
    let (holder, other) = (backend.client(), backend.client());
    let guard = holder.lock("held", LONG).unwrap();
    let wait = Duration::from_millis(200);
    assert!(other.try_lock("held", LONG).unwrap().is_none());
    let began = Instant::now();
    assert!(other.request("held").ttl(LONG).try_lock_for(wait).unwrap().is_none());
    assert!(began.elapsed() >= wait);
    let request = other.request("held").ttl(LONG);
    assert!(request.try_lock_until(Instant::now() + wait).unwrap().is_none());
    // Also in the same client: the lock is not re-entrant.
    assert!(holder.try_lock("held", LONG).unwrap().is_none());
    let waiting = thread::spawn(move || other.lock("held", LONG).unwrap().ensure_held());
    thread::sleep(wait);
    assert!(!waiting.is_finished());
    assert_eq!(guard.release(), Ok(()));
    assert_eq!(waiting.join().unwrap(), Ok(()));
}

fn a_wait_of_zero_is_no_wait_also_for_a_new_client(backend: &Backend) {
    let taken =
        backend.client().request("zero").ttl(LONG).try_lock_for(Duration::ZERO).unwrap().unwrap();
    assert!(
        backend.client().request("zero").ttl(LONG).try_lock_for(Duration::ZERO).unwrap().is_none()
    );
    let client = backend.client();
    let request = client.request("zero").ttl(LONG);
    assert!(request.try_lock_until(Instant::now() - Duration::from_secs(1)).unwrap().is_none());
    drop(taken);
}

fn a_dropped_guard_frees_the_lock(backend: &Backend) {
    let (first, second) = (backend.client(), backend.client());
    for _ in 0..20 {
        drop(first.lock("dropped", LONG).unwrap());
        drop(second.request("dropped").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap());
    }
}

fn names_of_all_bytes_are_locks_of_their_own(backend: &Backend) {
    let client = backend.client();
    let names: [&[u8]; 12] = [
        b"a",
        b"a/b",
        b"a%2Fb",
        b"..",
        b".",
        b"a~shares",
        b"\0",
        b"\xff\xfe",
        "\u{fffd}".as_bytes(),
        b" ",
        "é😀".as_bytes(),
        b"lock-0000000001",
    ];
    let guards: Vec<LockGuard> =
        names.iter().map(|name| client.try_lock(name, LONG).unwrap().unwrap()).collect();
    for (guard, name) in guards.iter().zip(names) {
        assert_eq!(guard.resource().as_bytes(), name);
        assert!(client.try_lock(name, LONG).unwrap().is_none());
    }
    for guard in guards {
        guard.release().unwrap();
    }
}

fn a_prefix_and_a_name_are_one_key(backend: &Backend) {
    let with_prefix = backend.builder().key_prefix("a:").build().unwrap();
    let without = backend.client();
    let guard = with_prefix.lock("b", LONG).unwrap();
    assert_eq!(guard.resource().as_bytes(), b"b");
    assert!(without.try_lock("a:b", LONG).unwrap().is_none());
    assert!(without.try_lock("b", LONG).unwrap().is_some());
}

fn a_body_runs_under_the_lock(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let value = client.with_lock("body", LONG, |lock| {
        assert_eq!(lock.ensure_held(), Ok(()));
        assert!(other.try_lock("body", LONG)?.is_none());
        Ok::<_, Error>(7)
    });
    assert_eq!(value.unwrap(), 7);
    assert!(other.request("body").ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
}

fn a_body_that_waits_for_its_own_lock_is_told_so(backend: &Backend) {
    let client = backend.client();
    let inner = client.with_lock("own", LONG, |_| Ok::<_, Error>(client.lock("own", LONG).err()));
    assert_eq!(inner.unwrap(), Some(Error::HeldByThisThread));
}

fn a_set_is_taken_as_a_whole(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let single = other.lock("set-b", LONG).unwrap();
    assert!(client.request_all(["set-a", "set-b"]).ttl(LONG).try_lock().unwrap().is_none());
    // Nothing of it is left.
    other.try_lock("set-a", LONG).unwrap().unwrap().release().unwrap();
    single.release().unwrap();
    let set = client.request_all(["set-b", "set-a"]).ttl(LONG).fenced();
    let set = set.try_lock_for(LIMIT).unwrap().unwrap();
    let names: Vec<Vec<u8>> = set.resources().map(|name| name.as_bytes().to_vec()).collect();
    assert_eq!(names, [b"set-a".to_vec(), b"set-b".to_vec()]);
    assert!(set.fencing_token().is_some());
    for name in ["set-a", "set-b"] {
        assert!(other.try_lock(name, LONG).unwrap().is_none());
    }
    assert_eq!(set.release(), Ok(()));
    for name in ["set-a", "set-b"] {
        assert!(other.request(name).ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
    }
}

fn sets_in_any_order_make_no_deadlock(backend: &Backend) {
    let names = [["s1", "s2"], ["s2", "s3"], ["s3", "s1"]];
    thread::scope(|scope| {
        for pair in names {
            let client = backend.client();
            scope.spawn(move || {
                for _ in 0..10 {
                    let set = client.request_all(pair).ttl(LONG).try_lock_for(LIMIT);
                    drop(set.unwrap().expect("each gets its turn"));
                }
            });
        }
    });
}

fn fencing_tokens_grow_over_clients_and_threads(backend: &Backend) {
    let clients = [backend.client(), backend.client()];
    let mut last = None;
    for round in 0..10 {
        let client = &clients[round % 2];
        let lock = client.request("fenced").ttl(LONG).fenced().lock().unwrap();
        let token = lock.fencing_token();
        assert!(token > last, "{token:?} after {last:?}");
        assert_eq!(u64::try_from(i64::from(token.unwrap())), Ok(token.unwrap().as_u64()));
        last = token;
        lock.release().unwrap();
    }
    let client = &clients[0];
    let mut tokens: Vec<_> = thread::scope(|scope| {
        let take = || {
            let lock = client.request("fenced").ttl(LONG).fenced().lock().unwrap();
            lock.fencing_token().unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 8, "each grant has a token of its own");
    assert!(Some(tokens[0]) > last);
}
