//! How a lock is lost, and that each loss is reported once, in time, and without effect on other
//! locks.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Builder, Error, LockClient, LockGuard, LossReason};
use rustix::process::{Pid, Signal, kill_process};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, calls, gone, holders, pause, resume, take, value,
    without_restart_guard,
};
use support::loss::{loss, reason};
use support::servers::Servers;

const TTL: Duration = Duration::from_secs(2);

fn settings(servers: &Servers) -> Builder {
    without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(200))
}

#[track_caller]
fn keep(client: &LockClient, resource: &str, ttl: Duration) -> LockGuard {
    let request = client.request(resource).ttl(ttl).keep_alive();
    request
        .try_lock()
        .expect("a majority answers")
        .expect("no other client holds the lock")
}

/// The argument and the time of each call of `on_lost`.
fn watch(guard: &LockGuard) -> Receiver<(LossReason, Instant)> {
    let (sender, receiver) = channel();
    guard
        .on_lost(move |lost| _ = sender.send((lost.reason(), Instant::now())))
        .expect("there is a thread");
    receiver
}

/// The callback was called once, and then dropped: it cannot be called again.
#[track_caller]
fn assert_called_once(losses: &Receiver<(LossReason, Instant)>, expected: LossReason) {
    assert_eq!(
        losses.recv_timeout(LIMIT).map(|(lost, _)| lost),
        Ok(expected)
    );
    assert_not_called(losses);
}

/// The callback was dropped without a call.
#[track_caller]
fn assert_not_called(losses: &Receiver<(LossReason, Instant)>) {
    assert_eq!(
        losses.recv_timeout(LIMIT),
        Err(RecvTimeoutError::Disconnected)
    );
}

#[test]
fn with_all_nodes_stopped_a_lock_is_lost_when_its_validity_ends() {
    let servers = Servers::start(3);
    let client = settings(&servers).build().unwrap();
    let guard = keep(&client, "stopped", TTL);
    assert!(
        eventually(LIMIT, || calls(&servers[0], "evalsha") > 0),
        "it is renewed"
    );
    let losses = watch(&guard);
    pause(&servers, 3);
    // The last confirmed extension determines the end.
    let left = guard.remaining();
    let end = Instant::now() + left;
    let (lost, when) = losses.recv_timeout(LIMIT).unwrap();
    assert_eq!(lost, LossReason::Expired);
    assert!(
        when + Duration::from_millis(5) >= end,
        "not before its validity has passed"
    );
    assert!(when < end + Duration::from_secs(5), "{:?} late", when - end);
    assert_eq!(loss(&guard), Some(LossReason::Expired));
    assert_eq!(guard.remaining(), Duration::ZERO);
    resume(&servers, 3);
    // Whatever the nodes reply now, it stays lost.
    thread::sleep(TTL);
    assert_eq!(loss(&guard), Some(LossReason::Expired));
    assert_eq!(
        guard.wait_lost(Duration::ZERO).map(reason),
        Some(LossReason::Expired)
    );
    assert_not_called(&losses);
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert!(gone(&servers, "stopped"));
}

#[test]
fn the_next_extension_finds_a_lock_lost_whose_key_a_majority_lost() {
    let servers = Servers::start(5);
    let client = settings(&servers).build().unwrap();
    let ttl = Duration::from_secs(30);
    let guard = keep(&client, "deleted", ttl);
    let losses = watch(&guard);
    let start = Instant::now();
    servers
        .iter()
        .for_each(|server| _ = server.command(&["DEL", "deleted"]));
    assert_called_once(&losses, LossReason::Gone);
    assert!(start.elapsed() < ttl + LIMIT);
    assert_eq!(loss(&guard), Some(LossReason::Gone));
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert!(gone(&servers, "deleted"));
}

#[test]
fn an_automatic_extension_restores_a_key_that_a_minority_lost() {
    let servers = Servers::start(5);
    let client = settings(&servers).build().unwrap();
    let guard = keep(&client, "minority", TTL);
    // A node that was connected to last may have missed the lock, and gets it with a renewal.
    assert!(eventually(LIMIT, || holders(&servers, "minority") == 5));
    servers[..2]
        .iter()
        .for_each(|server| _ = server.command(&["DEL", "minority"]));
    assert!(eventually(LIMIT, || holders(&servers, "minority") == 5));
    assert_eq!(guard.release(), Ok(()));
    assert!(gone(&servers, "minority"));
}

const URLS: &str = "REDLATCH_TEST_FROZEN_URLS";

#[test]
fn a_process_that_was_stopped_does_not_get_its_lock_back() {
    let servers = Servers::start(3);
    let mut frozen = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "keep::loss::in_the_frozen_process",
            "--test-threads=1",
            "--nocapture",
        ])
        .env(URLS, servers.urls().join(" "))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(frozen.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line.contains("frozen: holds it")));
    let pid = Pid::from_child(&frozen);
    kill_process(pid, Signal::STOP).unwrap();
    assert!(gone(&servers, "frozen"), "it expires");
    let own = take(&all_nodes_client(servers.urls()), "frozen", LONG);
    let token = value(&servers[0], "frozen");
    kill_process(pid, Signal::CONT).unwrap();
    let rest: Vec<String> = lines.collect();
    let says = |text: &str| rest.iter().any(|line| line.contains(text));
    assert!(
        says("frozen: lost Expired") && says("frozen: called with Expired"),
        "{rest:?}"
    );
    assert!(frozen.wait().unwrap().success());
    assert_eq!(value(&servers[0], "frozen"), token);
    assert_eq!(own.release(), Ok(()));
}

/// The code of the process that is stopped. Does nothing without the environment variable.
#[test]
fn in_the_frozen_process() {
    let Ok(urls) = env::var(URLS) else { return };
    let urls: Vec<&str> = urls.split(' ').collect();
    let settings = without_restart_guard(urls).node_timeout(Duration::from_millis(200));
    let client = settings.build().unwrap();
    let guard = keep(&client, "frozen", TTL);
    let losses = watch(&guard);
    thread::sleep(2 * TTL);
    assert_eq!(guard.ensure_held(), Ok(()));
    println!("frozen: holds it");
    while guard.ensure_held().is_ok() {
        thread::sleep(Duration::from_millis(1));
    }
    println!("frozen: lost {:?}", loss(&guard).unwrap());
    println!(
        "frozen: called with {:?}",
        losses.recv_timeout(LIMIT).unwrap().0
    );
    thread::sleep(TTL);
    assert!(guard.ensure_held().is_err());
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
}
