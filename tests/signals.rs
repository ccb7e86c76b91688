//! A storm of signals: system calls end early all the time, and nothing else changes.
//!
//! A signal that is sent to a process goes to its main thread if that does not mind, so what is
//! interrupted here runs in the main thread of a process of its own: this test program again, told
//! to run one test in the thread that it starts in.

mod support;

use redlatch::{LockClient, LockError, Released};
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;
use support::locks::fresh;
use support::peer::Peer;
use support::servers::Servers;

const URLS: &str = "REDLATCH_TEST_STORM_URLS";
const READY: &str = "ready for the storm";
const TTL: Duration = Duration::from_secs(30);
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

#[test]
fn locks_work_and_end_in_time_under_a_storm_of_signals() {
    let servers = Servers::start(5);
    let mut storm_tossed = Command::new(env::current_exe().unwrap())
        .args(["--exact", "in_the_storm", "--test-threads=1", "--nocapture"])
        .env(URLS, servers.urls().join(" "))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A signal that comes before there is a handler would end the process.
    let mut lines = BufReader::new(storm_tossed.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(READY)));
    let pid = Pid::from_child(&storm_tossed);
    let status = loop {
        if let Some(status) = storm_tossed.try_wait().unwrap() {
            break status;
        }
        // It is a child that has not been waited for, so its id is still its own.
        kill_process(pid, Signal::USR1).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    };
    assert!(status.success(), "{status}");
}

/// What the process in the storm does. By itself, without the variable, it has nothing to do.
#[test]
fn in_the_storm() {
    let Ok(urls) = env::var(URLS) else { return };
    let signals = Arc::new(AtomicUsize::new(0));
    count(&signals);
    let urls: Vec<&str> = urls.split(' ').collect();
    let client = fresh(urls).node_timeout(NODE_TIMEOUT).build().unwrap();

    println!("{READY}");
    // Enough of them must come while locks are taken.
    let before = signals.load(Ordering::SeqCst);
    let mut pairs = 0;
    while pairs < 300 || signals.load(Ordering::SeqCst) < before + 300 {
        let lock = client.lock("storm", TTL).unwrap();
        assert_eq!(lock.release(), Ok(Released::InTime));
        pairs += 1;
    }

    // A wait that is interrupted and begun again must not begin its time again.
    let silent: Vec<_> = (0..3).map(|_| Peer::silent()).collect();
    let client = LockClient::builder()
        .nodes(silent.iter().map(Peer::url))
        .node_timeout(NODE_TIMEOUT)
        .build()
        .unwrap();
    let (before, start) = (signals.load(Ordering::SeqCst), Instant::now());
    assert!(matches!(client.try_lock("silence", TTL), Err(LockError::NoQuorum(_))));
    assert!(start.elapsed() >= NODE_TIMEOUT);
    assert!(start.elapsed() < Duration::from_secs(20), "the wait is not begun anew");
    assert!(signals.load(Ordering::SeqCst) > before, "the wait was interrupted");
}

/// Counts the signals. Being counted is what interrupts.
fn count(signals: &Arc<AtomicUsize>) {
    let mut queue = Signals::new([SIGUSR1]).expect("a handler can be set");
    let signals = Arc::clone(signals);
    std::thread::spawn(move || {
        for _ in queue.forever() {
            signals.fetch_add(1, Ordering::SeqCst);
        }
    });
}
