//! Readers of one client that wait for a share together, and writers that wait among readers.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{CancelToken, Error, LockClient, LockRequest};
use support::eventually;
use support::locks::{LIMIT, LONG, take};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{BY_PUSH, await_keys, await_queued, holder, pushed};

fn reader(client: &LockClient) -> LockRequest<'_> {
    client.request("name").ttl(LONG).shared()
}

#[test]
fn a_writer_has_its_turn_while_readers_of_one_client_come_and_go() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let readers = holder(servers.urls());
    let writer = pushed(servers.urls());
    let reading = AtomicI32::new(0);
    let reads = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let guard = reader(&readers).lock().unwrap();
                    reading.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(3));
                    reading.fetch_sub(1, Ordering::SeqCst);
                    drop(guard);
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut waits = Vec::new();
        for _ in 0..20 {
            let before = reads.load(Ordering::SeqCst);
            assert!(eventually(LIMIT, || reads.load(Ordering::SeqCst) > before));
            let start = Instant::now();
            let guard = writer.lock("name", LONG).unwrap();
            waits.push(start.elapsed());
            for _ in 0..5 {
                assert_eq!(
                    reading.load(Ordering::SeqCst),
                    0,
                    "a reader beside a writer"
                );
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(guard.release(), Ok(()));
        }
        is_over.store(true, Ordering::SeqCst);
        let longest = waits.iter().max().unwrap();
        assert!(*longest < BY_PUSH, "{waits:?}");
    });
    await_keys(&servers, &[]);
}

/// Threads that wait together: the one in front is cancelled, then one behind it, and the rest get
/// the lock.
#[test]
fn those_that_wait_together_are_cancelled_one_by_one() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let writer = take(&holder(servers.urls()), "name", LONG);
    let tokens: Vec<_> = (0..10).map(|_| CancelToken::new()).collect();
    let waiting: Vec<_> = tokens
        .iter()
        .map(|token| {
            let client = client.clone();
            let token = token.clone();
            spawn_waiter(move || reader(&client).cancelled_by(&token).lock())
        })
        .collect();
    assert!(eventually(LIMIT, || client
        .inspect("name")
        .unwrap()
        .waiter_count
        > 0));
    let mut ended: Vec<_> = waiting.into_iter().zip(&tokens).collect();
    let rest = ended.split_off(5);
    for (thread, token) in ended {
        token.cancel();
        assert!(matches!(finish(thread), Err(Error::Cancelled)));
    }
    drop(writer);
    for (thread, _) in rest {
        assert_eq!(finish(thread).unwrap().release(), Ok(()));
    }
    await_keys(&servers, &[]);
}

/// Readers who wait behind a writer, with deadlines of all lengths, leave nothing behind.
#[test]
fn those_that_wait_together_time_out_one_by_one() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = pushed(servers.urls());
    let writer = holder(servers.urls());
    for _ in 0..5 {
        let held = take(&writer, "name", LONG);
        let waiting: Vec<_> = (0..30_u64)
            .map(|number| {
                let client = client.clone();
                let wait = Duration::from_millis(7 * number);
                thread::spawn(move || {
                    match reader(&client).try_lock_for(wait) {
                        Ok(guard) => guard.is_none_or(|guard| guard.release().is_ok()),
                        // The last round of a short wait may end before the nodes answer.
                        Err(error) => matches!(error, Error::NoQuorum(_)),
                    }
                })
            })
            .collect();
        let last = thread::spawn({
            let client = client.clone();
            move || reader(&client).lock().unwrap().release()
        });
        thread::sleep(Duration::from_millis(100));
        drop(held);
        assert!(waiting.into_iter().all(finish));
        assert_eq!(finish(last), Ok(()));
        await_keys(&servers, &[]);
    }
}

/// A writer that waits is not passed over by readers of a client that has the lock, however many
/// come: after a moment they stand behind it.
#[test]
fn readers_who_come_later_stand_behind_a_writer_that_waits() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let writer = pushed(servers.urls());
    let first = reader(&client).lock().unwrap();
    let writing = spawn_writer(writer);
    let written = Arc::new(AtomicBool::new(false));
    await_queued(&servers, "name", 1);
    // Until the share takes in no one any more.
    assert!(eventually(LIMIT, || reader(&client)
        .try_lock()
        .unwrap()
        .is_none()));
    let reading: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            let written = Arc::clone(&written);
            thread::spawn(move || {
                let guard = reader(&client).lock().unwrap();
                assert!(
                    written.load(Ordering::SeqCst),
                    "a reader overtook the writer"
                );
                guard.release()
            })
        })
        .collect();
    assert!(eventually(LIMIT, || client
        .inspect("name")
        .unwrap()
        .waiter_count
        > 1));
    written.store(true, Ordering::SeqCst);
    assert_eq!(first.release(), Ok(()));
    assert_eq!(finish(writing), Ok(()));
    for thread in reading {
        assert_eq!(finish(thread), Ok(()));
    }
}

fn spawn_writer(client: LockClient) -> thread::JoinHandle<Result<(), Error>> {
    spawn_waiter(move || client.lock("name", LONG).unwrap().release())
}
