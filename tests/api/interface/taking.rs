//! Taking a lock, and giving it back.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockGuard;
use support::backend::Backend;
use support::on_each_backend;
use support::waiters::await_in_order;

use super::{LIMIT, LONG, SHORT, WAIT, is_taken, take, take_next};

on_each_backend!(
    all_methods_take_a_free_lock,
    all_methods_respect_a_held_lock,
    a_request_without_a_ttl_has_one_of_ten_seconds,
    a_wait_of_zero_is_no_wait_also_for_a_new_client,
    names_of_all_bytes_are_locks_of_their_own,
    a_prefix_and_a_name_are_one_key,
    a_set_is_taken_as_a_whole,
    sets_in_any_order_make_no_deadlock,
    fencing_tokens_grow_over_clients_and_threads,
);

fn all_methods_take_a_free_lock(backend: &Backend) {
    let client = backend.client();
    let request = client.request("way-until").ttl(LONG);
    let guards = [
        client.try_lock("way", LONG).unwrap().unwrap(),
        client
            .request("way-for")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .unwrap(),
        request
            .try_lock_until(Instant::now() + LIMIT)
            .unwrap()
            .unwrap(),
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
    let holder = backend.client();
    let other = backend.client();
    let guard = take(&holder, "held");
    let request = || other.request("held").ttl(LONG);
    assert!(is_taken(&other, "held"));
    let began = Instant::now();
    assert!(request().try_lock_for(WAIT).unwrap().is_none());
    assert!(began.elapsed() >= WAIT);
    assert!(
        request()
            .try_lock_until(Instant::now() + WAIT)
            .unwrap()
            .is_none()
    );
    assert!(began.elapsed() >= 2 * WAIT && began.elapsed() < LIMIT);
    // Also in the same client: the lock is not re-entrant.
    assert!(is_taken(&holder, "held"));
    thread::scope(|scope| {
        let endless = scope.spawn(|| request().try_lock_for(Duration::MAX).map(drop));
        let waiting = scope.spawn(|| request().lock().map(drop));
        await_in_order(&holder, "held", 1);
        assert!(!endless.is_finished() && !waiting.is_finished());
        assert_eq!(guard.release(), Ok(()));
        assert_eq!(
            (endless.join().unwrap(), waiting.join().unwrap()),
            (Ok(()), Ok(()))
        );
    });
}

fn a_request_without_a_ttl_has_one_of_ten_seconds(backend: &Backend) {
    let lock = backend.client().request("default").lock().unwrap();
    assert!(lock.remaining() > SHORT && lock.remaining() < Duration::from_secs(10));
}

fn a_wait_of_zero_is_no_wait_also_for_a_new_client(backend: &Backend) {
    let taken = backend
        .client()
        .request("zero")
        .ttl(LONG)
        .try_lock_for(Duration::ZERO)
        .unwrap()
        .unwrap();
    assert!(
        backend
            .client()
            .request("zero")
            .ttl(LONG)
            .try_lock_for(Duration::ZERO)
            .unwrap()
            .is_none()
    );
    let client = backend.client();
    let request = client.request("zero").ttl(LONG);
    assert!(
        request
            .try_lock_until(Instant::now() - Duration::from_secs(1))
            .unwrap()
            .is_none()
    );
    drop(taken);
}

fn names_of_all_bytes_are_locks_of_their_own(backend: &Backend) {
    let client = backend.client();
    let names: [&[u8]; 16] = [
        b"a",
        b"a/b",
        b"a%2Fb",
        b"..",
        b".",
        b"a~shares",
        b"\0",
        b"nul\0inside",
        b"\r\n",
        b"a\r\n$3\r\nfoo\r\n",
        b"{tag}\"'\\",
        b"\xff\xfe",
        "\u{fffd}".as_bytes(),
        b" ",
        "é😀".as_bytes(),
        b"lock-0000000001",
    ];
    let mut guards: Vec<LockGuard> = names
        .iter()
        .map(|name| client.try_lock(name, LONG).unwrap().unwrap())
        .collect();
    for (guard, name) in guards.iter().zip(names) {
        assert_eq!(guard.resource().as_bytes(), name);
        assert!(client.try_lock(name, LONG).unwrap().is_none());
    }
    // The end of one changes nothing for the others.
    drop(guards.swap_remove(0));
    drop(take_next(&client, "a"));
    for mut guard in guards {
        assert_eq!(guard.extend(LONG), Ok(()));
        assert_eq!(guard.release(), Ok(()));
    }
    assert!(format!("{:?}", client.request([0xFF, b'\n'])).contains("\\\\xff\\\\n"));
}

fn a_prefix_and_a_name_are_one_key(backend: &Backend) {
    let with_prefix = backend.builder().key_prefix("a:").build().unwrap();
    let without = backend.client();
    let guard = with_prefix.lock("b", LONG).unwrap();
    assert_eq!(guard.resource().as_bytes(), b"b");
    assert!(without.try_lock("a:b", LONG).unwrap().is_none());
    assert!(without.try_lock("b", LONG).unwrap().is_some());
}

fn a_set_is_taken_as_a_whole(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let single = take(&other, "set-b");
    let set = || client.request_all(["set-b", "set-a"]).ttl(LONG);
    assert!(set().try_lock().unwrap().is_none());
    let began = Instant::now();
    assert!(set().try_lock_for(WAIT).unwrap().is_none());
    assert!(began.elapsed() > WAIT / 2 && began.elapsed() < LIMIT);
    // Nothing of it is left.
    take_next(&other, "set-a").release().unwrap();
    single.release().unwrap();
    let held = set().fenced().try_lock_for(LIMIT).unwrap().unwrap();
    let names: Vec<Vec<u8>> = held
        .resources()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    assert_eq!(names, [b"set-a".to_vec(), b"set-b".to_vec()]);
    assert!(held.fencing_token().is_some());
    for name in ["set-a", "set-b"] {
        assert!(is_taken(&other, name));
    }
    // A thread of the same client waits for the same set, for one that overlaps, and for a part.
    for names in [&["set-a", "set-b"][..], &["set-b", "set-c"], &["set-b"]] {
        let began = Instant::now();
        let refused = client.request_all(names).ttl(LONG).try_lock_for(WAIT);
        assert!(refused.unwrap().is_none(), "{names:?}");
        assert!(began.elapsed() > WAIT / 2 && began.elapsed() < LIMIT);
    }
    assert_eq!(held.release(), Ok(()));
    for name in ["set-a", "set-b", "set-c"] {
        drop(take_next(&other, name));
    }
    let held = set().lock().unwrap();
    drop(held);
    drop(take_next(&other, "set-b"));
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
    let clients = &[backend.client(), backend.client()];
    let fenced = |number: usize, ttl| clients[number % 2].request("fenced").ttl(ttl).fenced();
    let mut last = None;
    let mut grows = |lock: &LockGuard| {
        let token = lock.fencing_token();
        assert!(token > last, "{token:?} after {last:?}");
        assert_eq!(
            u64::try_from(i64::from(token.unwrap())),
            Ok(token.unwrap().as_u64())
        );
        last = token;
    };
    // After a release, a drop and an expiry, of which its holder has not noticed.
    for round in 0..10 {
        let lock = fenced(round, LONG).lock().unwrap();
        grows(&lock);
        if round % 3 == 0 {
            drop(lock);
        } else {
            lock.release().unwrap();
        }
    }
    let lock = fenced(0, SHORT).lock().unwrap();
    grows(&lock);
    let next = fenced(1, LONG).lock().unwrap();
    grows(&next);
    drop((lock, next));
    let tokens = Mutex::new(vec![last.unwrap()]);
    thread::scope(|scope| {
        for thread in 0..6 {
            let tokens = &tokens;
            scope.spawn(move || {
                for _ in 0..10 {
                    let lock = fenced(thread, LONG).lock().unwrap();
                    tokens.lock().unwrap().push(lock.fencing_token().unwrap());
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert!(
        tokens.len() == 61 && tokens.is_sorted_by(|one, next| one < next),
        "{tokens:?}"
    );
}
