//! Handoffs: the lock passes from one thread of a client to the next waiter in one round.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use support::locks::{LONG, all_nodes_client, calls, gone, pause, resume, take, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::redis::Server;
use support::servers::Servers;

/// A client that hands a lock off as long as threads wait for it, without limit.
fn endless(urls: Vec<String>) -> LockClient {
    let endless = with_long_timeout(urls)
        .wait_for_all(true)
        .handoff_limit(u32::MAX, LONG);
    endless.build().expect("the settings are good")
}

/// A thread that waits for the lock and keeps it.
#[track_caller]
fn stand_for(client: &LockClient, name: &'static str) -> thread::JoinHandle<LockGuard> {
    let client = client.clone();
    spawn_waiter(move || client.lock(name, LONG).expect("it is got in the end"))
}

/// How often the server has run a script, deleted a key, and set one. `INFO commandstats` also
/// counts the commands that a script calls.
fn work(server: &Server) -> (u64, u64, u64) {
    let scripts = calls(server, "eval") + calls(server, "evalsha");
    (scripts, calls(server, "del"), calls(server, "set"))
}

fn difference(before: (u64, u64, u64), after: (u64, u64, u64)) -> (u64, u64, u64) {
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

#[test]
fn a_handoff_takes_one_round_and_no_release() {
    const HANDOFFS: u64 = 6;
    let servers = Servers::start(3);
    let client = endless(servers.urls());
    let guard = take(&client, "rounds", LONG);
    let threads: Vec<_> = (0..HANDOFFS)
        .map(|_| stand_for(&client, "rounds"))
        .collect();
    let before: Vec<_> = servers.iter().map(work).collect();
    assert_eq!(guard.release(), Ok(()));
    let mut last = None;
    for thread in threads {
        // The former guard is dropped here: a handoff to this thread.
        drop(last.take());
        last = Some(finish(thread));
    }
    for (server, before) in servers.iter().zip(before) {
        // One script for each handoff, which sets the key. No key was deleted, and none was set
        // without a script: there was no `SET NX`.
        let work = difference(before, work(server));
        assert_eq!(
            work,
            (HANDOFFS, 0, HANDOFFS),
            "scripts, deletions, settings"
        );
    }
    assert_eq!(last.unwrap().release(), Ok(()));
    assert!(gone(&servers, "rounds"));
}

#[test]
fn a_lock_is_never_free_between_handoffs() {
    let servers = Servers::start(3);
    let client = endless(servers.urls());
    let guard = take(&client, "busy", LONG);
    let is_inside = Arc::new(AtomicBool::new(false));
    let arrive = |_| {
        let client = client.clone();
        let is_inside = Arc::clone(&is_inside);
        spawn_waiter(move || {
            for _ in 0..10 {
                let guard = client.lock("busy", LONG).unwrap();
                assert!(!is_inside.swap(true, Ordering::SeqCst), "two at once");
                thread::sleep(Duration::from_micros(300));
                assert!(is_inside.swap(false, Ordering::SeqCst));
                drop(guard);
            }
        })
    };
    let threads: Vec<_> = (0..10).map(arrive).collect();
    let last = Arc::new(AtomicBool::new(false));
    let other = with_long_timeout(servers.urls()).build().unwrap();
    let poller = {
        let last = Arc::clone(&last);
        thread::spawn(move || {
            let mut attempts = 0;
            while !last.load(Ordering::SeqCst) {
                assert!(
                    other.try_lock("busy", LONG).unwrap().is_none(),
                    "it was free"
                );
                attempts += 1;
            }
            attempts
        })
    };
    // This thread acquires the lock less often than the others do, so there is always a waiter.
    let keeper = spawn_waiter(move || {
        (0..7).for_each(|_| drop(client.lock("busy", LONG).unwrap()));
        client.lock("busy", LONG).unwrap()
    });
    drop(guard);
    let kept = finish(keeper);
    last.store(true, Ordering::SeqCst);
    assert!(finish(poller) > 0);
    drop(kept);
    threads.into_iter().for_each(finish);
    assert!(gone(&servers, "busy"));
}

#[test]
fn with_a_handoff_limit_of_zero_each_lock_is_released_before_the_next() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .handoff_limit(0, LONG);
    let client = client.build().unwrap();
    let guard = take(&client, "zero", LONG);
    let next = stand_for(&client, "zero");
    let before: Vec<_> = servers.iter().map(work).collect();
    assert_eq!(guard.release(), Ok(()));
    let guard = finish(next);
    for (server, before) in servers.iter().zip(before) {
        assert_eq!(
            difference(before, work(server)),
            (1, 1, 1),
            "release, its DEL, a SET"
        );
    }
    drop(guard);
}

#[test]
fn after_an_extension_waiters_wait_beyond_the_old_ttl() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "extended", Duration::from_secs(2));
    let next = stand_for(&client, "extended");
    let settings = calls(&servers[0], "set");
    guard.extend(LONG).unwrap();
    let extended = calls(&servers[0], "set") - settings;
    thread::sleep(Duration::from_millis(2_300));
    assert!(!next.is_finished());
    assert_eq!(
        calls(&servers[0], "set") - settings,
        extended,
        "no waiter has sent a request"
    );
    assert_eq!(guard.release(), Ok(()));
    drop(finish(next));
    assert!(gone(&servers, "extended"));
}

#[test]
fn a_handoff_to_another_thread_does_not_delay_a_deadline() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "deadline", LONG);
    let next = stand_for(&client, "deadline");
    let start = Instant::now();
    let waiting = client.clone();
    let wait = Duration::from_secs(2);
    let waiting = spawn_waiter(move || {
        waiting
            .request("deadline")
            .ttl(LONG)
            .try_lock_for(wait)
            .map(|it| it.is_some())
    });
    // The nodes do not reply to the thread that takes the lock over.
    pause(&servers, 3);
    drop(guard);
    assert_eq!(finish(waiting), Ok(false));
    assert!(start.elapsed() < 2 * wait, "{:?}", start.elapsed());
    resume(&servers, 3);
    drop(finish(next));
}
