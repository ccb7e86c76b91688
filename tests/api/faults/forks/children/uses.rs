//! Children that use inherited clients and guards, and forks in the middle of an operation.

use std::env;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, Event, LockClient, LockGuard, LossReason, NodeError};

use super::{
    KEPT, URLS, WELL, expect_child_to_end_with, expect_child_to_succeed, fork, with_child,
};
use support::locks::{LIMIT, LONG, all_nodes_client, connected, take, without_restart_guard};
use support::loss::{loss, reason};
use support::program::end_with_parent;
use support::tasks::block_on;

#[test]
fn a_child_of_a_closure_under_a_lock_leaves_the_lock_to_its_parent() {
    with_child(
        "faults::forks::children::uses::as_a_parent_under_a_lock",
        "",
    );
}

#[test]
fn no_child_waits_for_a_lock_that_a_thread_of_its_parent_had() {
    with_child(
        "faults::forks::children::uses::as_a_parent_whose_threads_are_busy",
        "",
    );
}

#[test]
fn a_child_that_is_forked_by_a_callback_leaves_the_call_to_its_parent() {
    with_child(
        "faults::forks::children::uses::as_a_parent_that_forks_in_a_callback",
        "",
    );
}

#[test]
fn a_child_that_an_on_lost_callback_forks_calls_no_other_callback() {
    with_child(
        "faults::forks::children::uses::as_a_parent_that_forks_when_a_lock_is_lost",
        "",
    );
}

/// A ttl that passes during the test.
const SHORT: Duration = Duration::from_millis(500);

/// Calls all methods of the inherited client and guards. All fail at once, and none calls a
/// callback.
pub(super) fn use_all(clients: &[LockClient], guards: Vec<LockGuard>, urls: &[&str]) {
    let start = Instant::now();
    for client in clients {
        let body = |_: &LockGuard| -> Result<(), _> { unreachable!("there is no lock") };
        let ran = client.with_lock("new", LONG, body);
        assert_eq!(ran, Err(Error::OtherProcess));
        assert_eq!(client.lock("new", LONG).err(), Some(Error::OtherProcess));
        let started = block_on(client.request("new").lock_async());
        assert_eq!(started.err(), Some(Error::OtherProcess));
        assert_eq!(
            client.try_lock("plain", LONG).err(),
            Some(Error::OtherProcess)
        );
        assert_eq!(client.inspect("plain").err(), Some(Error::OtherProcess));
        let nodes = client.nodes();
        assert_eq!(nodes.len(), 3);
        for (node, url) in nodes.iter().zip(urls) {
            assert!(node.url.starts_with(url), "{} is not {url}", node.url);
            assert!(!node.is_connected);
            assert_eq!(node.last_error, Some(NodeError::OtherProcess));
        }
    }
    for mut guard in guards {
        assert_eq!(guard.extend(LONG), Err(Error::OtherProcess));
        assert_eq!(loss(&guard), Some(LossReason::OtherProcess));
        assert_eq!(guard.remaining(), Duration::ZERO);
        assert_eq!(
            guard.wait_lost(LIMIT).map(reason),
            Some(LossReason::OtherProcess)
        );
        assert!(
            guard
                .on_lost(|_| unreachable!("the callback is never called"))
                .is_err()
        );
        assert!(
            ["plain", "kept", "served"]
                .iter()
                .any(|name| guard.resource() == name)
        );
        assert_eq!(guard.release(), Err(Error::OtherProcess));
    }
    // The child's own client sees that the locks are held, and removes them only by force.
    let own = all_nodes_client(urls.iter().copied());
    assert!(own.try_lock("plain", LONG).is_ok_and(|lock| lock.is_none()));
    assert_eq!(take(&own, "new", LONG).release(), Ok(()));
    let seen = own.inspect("plain").expect("the servers answer");
    assert_eq!(clients[0].force_release(&seen), Err(Error::OtherProcess));
    assert!(start.elapsed() < LIMIT);
}

/// A child that returns from the closure in which it was forked.
#[test]
fn as_a_parent_under_a_lock() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let client = connected(all_nodes_client(urls.split(' ')));
    let mut seen = None;
    let ran = client.with_lock("under", LONG, |held| {
        let is_child = fork();
        if !is_child {
            expect_child_to_succeed();
        }
        seen = Some((is_child, loss(held)));
        Ok(())
    });
    let (is_child, lost) = seen.expect("the body ran");
    if is_child {
        assert!(
            matches!(ran, Err(Error::Lost(_))),
            "to the child, the lock is lost"
        );
        assert_eq!(lost, Some(LossReason::OtherProcess));
        drop(client);
        process::exit(WELL);
    }
    assert_eq!(lost, None);
    take(&client, "under", LONG).release().unwrap();
}

/// Forks repeatedly while other threads acquire, extend and release locks.
#[test]
fn as_a_parent_whose_threads_are_busy() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let urls: Vec<&str> = urls.split(' ').collect();
    let client = connected(all_nodes_client(urls.iter().copied()));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..6 {
            let client = &client;
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    // Two threads for each lock, so that they wait for each other, and two that
                    // read together.
                    let request = client.request(format!("busy-{}", number / 2)).ttl(LONG);
                    let request = if number < 4 {
                        request
                    } else {
                        request.shared()
                    };
                    let guard = request.lock().unwrap();
                    guard.on_lost(|_| unreachable!("it is held")).unwrap();
                    drop(guard);
                }
            });
        }
        for round in 0..20 {
            let mut guard = take(&client, "own", LONG);
            guard.on_lost(|_| unreachable!("it is held")).unwrap();
            let read = || client.request("read").ttl(LONG).shared().lock();
            let readers = [(); 2].map(|()| read().unwrap());
            if fork() {
                assert_eq!(read().err(), Some(Error::OtherProcess));
                assert_eq!(loss(&readers[1]), Some(LossReason::OtherProcess));
                drop(readers);
                assert_eq!(client.lock("busy-0", LONG).err(), Some(Error::OtherProcess));
                assert_eq!(guard.extend(LONG), Err(Error::OtherProcess));
                assert_eq!(loss(&guard), Some(LossReason::OtherProcess));
                assert!(client.nodes().iter().all(|node| !node.is_connected));
                drop(guard);
                drop(client.clone());
                process::exit(WELL);
            }
            expect_child_to_succeed();
            assert_eq!(guard.release(), Ok(()), "in round {round}");
            assert_eq!(readers.map(LockGuard::release), [Ok(()), Ok(())]);
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

/// Forks in the callback after a failed first attempt, during the call.
#[test]
fn as_a_parent_that_forks_in_a_callback() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let urls: Vec<&str> = urls.split(' ').collect();
    let other = connected(all_nodes_client(urls.iter().copied()));
    let held = take(&other, "busy", LONG);
    let has_forked = AtomicBool::new(false);
    let is_child = Arc::new(AtomicBool::new(false));
    let builder = without_restart_guard(urls.iter().copied())
        .node_timeout(LIMIT)
        .on_event({
            let is_child = Arc::clone(&is_child);
            move |event| {
                if event.name() == "attempt" && !has_forked.swap(true, Ordering::SeqCst) {
                    is_child.store(fork(), Ordering::SeqCst);
                }
            }
        });
    let client = builder.build().unwrap();
    let start = Instant::now();
    let wait = Duration::from_secs(3);
    let outcome = client.request("busy").ttl(LONG).try_lock_for(wait);
    if is_child.load(Ordering::SeqCst) {
        assert_eq!(outcome.err(), Some(Error::OtherProcess));
        drop(client);
        // It does not wait on its own.
        process::exit(if start.elapsed() < wait / 2 { WELL } else { 2 });
    }
    assert!(outcome.unwrap().is_none());
    expect_child_to_succeed();
    assert_eq!(held.release(), Ok(()));
    take(&client, "busy", LONG).release().unwrap();
}

/// Forks in the callback of a loss, with other losses and extensions still to be reported.
#[test]
fn as_a_parent_that_forks_when_a_lock_is_lost() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let itself = process::id();
    let builder = without_restart_guard(urls.split(' ')).node_timeout(Duration::from_secs(1));
    let listen = move |event: &Event<'_>| {
        if process::id() != itself {
            process::exit(if event.name() == "lost" { 2 } else { 3 });
        }
    };
    let client = connected(builder.on_event(listen).build().unwrap());
    let kept = client
        .request("kept")
        .ttl(KEPT)
        .keep_alive()
        .lock()
        .unwrap();
    let (sender, called) = mpsc::channel();
    let short = take(&client, "short", SHORT);
    for number in 0..2 {
        let client = client.clone();
        let sender = sender.clone();
        let on_lost = move |_| {
            if process::id() != itself {
                process::exit(4);
            }
            if number == 0 && fork() {
                if client.try_lock("new", LONG).err() != Some(Error::OtherProcess) {
                    process::exit(5);
                }
                // The only thread of the child ends, if there is nothing else to report.
                return;
            }
            sender.send(number).unwrap();
        };
        short.on_lost(on_lost).unwrap();
    }
    assert_eq!(
        [called.recv_timeout(LIMIT), called.recv_timeout(LIMIT)],
        [Ok(0), Ok(1)]
    );
    expect_child_to_end_with(0);
    assert_eq!(kept.release(), Ok(()));
    assert!(short.ensure_held().is_err());
    // Its key still exists for a moment after the loss.
    client.lock("short", LONG).unwrap().release().unwrap();
}
