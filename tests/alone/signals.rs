//! Many signals: they interrupt system calls all the time, which has no other effect.
//!
//! A signal to a process goes to its main thread if that does not block it, and tests do not run
//! there. So the test interrupts one thread of another process, this test program again: Linux
//! delivers a signal that is sent to a thread's number to that thread first.

#![cfg(target_os = "linux")] // other systems have no signal to one thread of another process

use redlatch::Error;
use std::env;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;
use support::locks::without_restart_guard;
use support::peer::Peer;
use support::program::test_process;
use support::servers::Servers;

const URLS: &str = "REDLATCH_TEST_STORM_URLS";
const READY: &str = "ready for the storm, thread";
const TTL: Duration = Duration::from_secs(30);
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

#[test]
fn locks_work_and_time_out_correctly_under_many_signals() {
    let servers = Servers::start(5);
    let mut command = test_process("in_the_storm");
    let mut storm_tossed = command.env(URLS, servers.urls().join(" ")).spawn().unwrap();
    // A signal before the handler is set would end the process.
    let mut lines = BufReader::new(storm_tossed.stdout.take().unwrap()).lines();
    let thread = lines.find_map(|line| line.unwrap().split_once(READY)?.1.trim().parse().ok());
    let thread = Pid::from_raw(thread.expect("it says which thread it is")).unwrap();
    let status = loop {
        if let Some(status) = storm_tossed.try_wait().unwrap() {
            break status;
        }
        // The child was not waited for yet, so its process number cannot belong to another process;
        // but the thread may have ended.
        let _ = kill_process(thread, Signal::USR1);
        std::thread::sleep(Duration::from_micros(200));
    };
    assert!(status.success(), "{status}");
}

/// The code of the process that gets the signals. Does nothing without the environment variable.
#[test]
fn in_the_storm() {
    let Ok(urls) = env::var(URLS) else { return };
    let signals = Arc::new(AtomicUsize::new(0));
    count(&signals);
    let urls: Vec<&str> = urls.split(' ').collect();
    let client = without_restart_guard(urls)
        .node_timeout(NODE_TIMEOUT)
        .build()
        .unwrap();

    println!("{READY} {}", rustix::thread::gettid().as_raw_nonzero());
    expect_interruptions();
    // Enough of them must arrive while locks are acquired.
    let before = signals.load(Ordering::SeqCst);
    let mut pairs = 0;
    while pairs < 300 || signals.load(Ordering::SeqCst) < before + 300 {
        let lock = client.lock("storm", TTL).unwrap();
        assert_eq!(lock.release(), Ok(()));
        pairs += 1;
    }

    // A wait that is interrupted and repeated must not restart its time limit.
    let silent: Vec<_> = (0..3).map(|_| Peer::silent()).collect();
    let urls = silent.iter().map(Peer::url);
    let client = without_restart_guard(urls)
        .node_timeout(NODE_TIMEOUT)
        .build()
        .unwrap();
    let before = signals.load(Ordering::SeqCst);
    let start = Instant::now();
    assert!(matches!(
        client.try_lock("silence", TTL),
        Err(Error::NoQuorum(_))
    ));
    assert!(start.elapsed() >= NODE_TIMEOUT);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "the wait is not begun anew"
    );
    assert!(
        signals.load(Ordering::SeqCst) > before,
        "the wait was interrupted"
    );
}

/// Checks that the signals interrupt the system calls of this thread.
fn expect_interruptions() {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket of ours works");
    // A call with a timeout is not restarted after a signal, whatever the handler's flags.
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a socket of ours works");
    for _ in 0..10 {
        let ended = socket.recv(&mut [0]).expect_err("the peer sends nothing");
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
    }
}

/// Counts the signals. The handler of the counter is what interrupts.
fn count(signals: &Arc<AtomicUsize>) {
    let mut queue = Signals::new([SIGUSR1]).expect("a handler can be set");
    let signals = Arc::clone(signals);
    std::thread::spawn(move || {
        for _ in queue.forever() {
            signals.fetch_add(1, Ordering::SeqCst);
        }
    });
}
