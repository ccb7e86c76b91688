//! A thread is stopped while it leads, with and without an I/O thread: which other threads must
//! wait for it?
//!
//! The stopped thread is in another process, this test program again. A signal whose handler sleeps
//! stops it (`support/stop.c`).

#![cfg(target_os = "linux")] // other systems have no signal to one thread of another process

use redlatch::error::{NodeAnswer, NodeError, Phase};
use redlatch::{Builder, Error, LockClient, LockGuard, LossReason};
use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::thread::gettid;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use support::cli::{Client, encode};
use support::eventually;
use support::locks::{
    LIMIT, LONG, connected, gone, take, with_long_timeout, without_restart_guard,
};
use support::loss::{loss, reason};
use support::peer::Peer;
use support::program::{end_with_parent, succeed, test_process};
use support::servers::Servers;
use support::shim::Shim;

/// Held by tests with an I/O thread in this process, because they count these threads.
static ALONE: Mutex<()> = Mutex::new(());
const URLS: &str = "REDLATCH_TEST_STOP_URLS";
/// Names the file that says which thread the handler stops, and for how long.
const STOP: &str = "REDLATCH_STOP";
const STOPPED_FOR: Duration = Duration::from_millis(2_500);
const NODE_TIMEOUT: Duration = Duration::from_millis(200);
/// The ttl of an automatically extended lock: shorter than the stop, longer than three rounds.
const KEPT: Duration = Duration::from_millis(1_500);

/// Runs one of the programs below with two servers.
fn run(program: &str) -> Servers {
    let servers = Servers::start(2);
    let shim = Shim::stop();
    let mut command = test_process(program);
    command
        .envs(shim.environment(STOP))
        .env(URLS, servers.urls().join(" "));
    succeed(&mut command);
    servers
}

#[test]
fn without_an_io_thread_a_stopped_leader_delays_all_threads() {
    run("program_without_an_io_thread");
}

#[test]
fn with_an_io_thread_a_stopped_caller_delays_no_other_thread() {
    run("program_with_an_io_thread");
}

#[test]
fn callers_keep_their_deadlines_when_the_io_thread_is_stopped() {
    let servers = run("program_with_the_io_thread_stopped");
    assert!(
        ["left", "after", "dropped"]
            .iter()
            .all(|name| gone(&servers, name))
    );
}

/// The settings of a client of two servers and a silent node: a round over all nodes takes the
/// whole node timeout.
fn builder(urls: &str, silent: &Peer) -> Builder {
    without_restart_guard(urls.split(' '))
        .nodes([silent.url()])
        .node_timeout(NODE_TIMEOUT)
}

/// What another thread sees while a caller is stopped, which leads if there is no I/O thread: how
/// long it took to acquire a lock, and whether an automatically extended lock was lost.
fn beside_a_stopped_caller(client: &LockClient) -> (Duration, Option<LossReason>) {
    assert!(eventually(LIMIT, || client.try_lock("warm", LONG).is_ok()));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, number) = channel();
        scope.spawn({
            let is_over = &is_over;
            move || {
                sender.send(gettid()).expect("the test waits for it");
                while !is_over.load(Ordering::SeqCst) {
                    // Takes the whole node timeout, because one node does not reply.
                    assert_eq!(client.nodes().len(), 3);
                }
            }
        });
        let number = number.recv().expect("it is sent first of all");
        let kept = kept(client);
        // That thread is in a round now.
        thread::sleep(NODE_TIMEOUT / 4);
        let stopped = Instant::now();
        stop(number);
        let start = Instant::now();
        let lock = client.try_lock("beside", LONG);
        let took = start.elapsed();
        assert!(lock.is_ok_and(|lock| lock.is_some()) || took > NODE_TIMEOUT);
        thread::sleep((STOPPED_FOR - NODE_TIMEOUT).saturating_sub(stopped.elapsed()));
        let lost = loss(&kept);
        is_over.store(true, Ordering::SeqCst);
        (took, lost)
    })
}

#[test]
fn program_without_an_io_thread() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let silent = Peer::silent();
    let client = builder(&urls, &silent).build().unwrap();
    let (took, lost) = beside_a_stopped_caller(&client);
    println!("took {took:?}, {lost:?}");
    assert!(took > STOPPED_FOR / 2, "{took:?}");
    assert_eq!(lost, Some(LossReason::Expired));
}

#[test]
fn program_with_an_io_thread() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let silent = Peer::silent();
    let client = builder(&urls, &silent).io_thread(true).build().unwrap();
    let (took, lost) = beside_a_stopped_caller(&client);
    println!("took {took:?}, {lost:?}");
    assert!(took < STOPPED_FOR / 2, "{took:?}");
    assert_eq!(lost, None);
}

#[test]
fn program_with_the_io_thread_stopped() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let client = without_restart_guard(urls.split(' '))
        .node_timeout(NODE_TIMEOUT)
        .io_thread(true);
    let client = connected(client.build().unwrap());
    let left = take(&client, "left", LONG);
    let dropped = take(&client, "dropped", LONG);
    let kept = kept(&client);
    let start = Instant::now();
    stop(io_threads()[0]);
    expect_timeouts(&client, left, dropped);
    let lost = kept.wait_lost(LIMIT).map(reason);
    assert_eq!(lost, Some(LossReason::Expired));
    assert!(
        start.elapsed() < STOPPED_FOR,
        "the loss is reported while the thread is stopped"
    );
    // When it continues, it sends the requests in the inbox in order, as if it had not been
    // stopped.
    assert!(eventually(LIMIT, || client.try_lock("after", LONG).is_ok()));
    assert!(eventually(LIMIT, || client
        .try_lock("left", LONG)
        .is_ok_and(|lock| lock.is_some())));
    drop(client);
}

/// No request gets a reply, each ends at its deadline, and no drop waits.
fn expect_timeouts(client: &LockClient, left: LockGuard, dropped: LockGuard) {
    let in_time = |start: Instant| {
        let took = start.elapsed();
        assert!(
            took < 2 * NODE_TIMEOUT + Duration::from_millis(200),
            "{took:?}"
        );
    };
    let start = Instant::now();
    drop(dropped);
    assert!(start.elapsed() < NODE_TIMEOUT);
    let Err(Error::NoQuorum(error)) = client.try_lock("after", LONG) else {
        panic!("no request can have been sent");
    };
    in_time(start);
    let queued = NodeAnswer::Failed(NodeError::TimedOut(Phase::Queued));
    assert_eq!(error.reports().len(), 2);
    assert!(
        error.reports().iter().all(|report| report.answer == queued),
        "{error}"
    );
    let start = Instant::now();
    assert!(client.nodes().iter().all(|node| !node.is_connected));
    in_time(start);
    let start = Instant::now();
    assert!(client.inspect("left").is_err());
    in_time(start);
    let start = Instant::now();
    assert!(left.release().is_err());
    in_time(start);
}

#[test]
fn the_io_thread_ends_with_the_last_clone_after_all_removals() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .io_thread(true)
        .build()
        .unwrap();
    assert!(
        eventually(LIMIT, || io_threads().len() == 1),
        "the thread sets its name itself"
    );
    let other = client.clone();
    let guards: Vec<_> = (0..50)
        .map(|n| take(&client, format!("many-{n}"), LONG))
        .collect();
    assert_eq!(take(&other, "one", LONG).release(), Ok(()));
    drop(client);
    drop(other);
    assert_eq!(io_threads().len(), 1, "the guards keep it alive");
    drop(guards);
    for server in servers.iter() {
        assert_eq!(
            server.command(&["DBSIZE"]).integer(),
            0,
            "dropping the last clone waits for that"
        );
    }
    assert!(eventually(LIMIT, || io_threads().is_empty()));
}

#[test]
fn the_last_drop_waits_longer_than_a_round_for_a_server_that_replies_slowly() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Several clients, because it is the caller who waits if it lets go of the connections after
    // the I/O thread, which is rare: that thread is what this is about.
    thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(drop_beside_a_slow_server))));
    assert!(eventually(LIMIT, || io_threads().is_empty()));
}

fn drop_beside_a_slow_server() {
    const LOCKS: u32 = 12;
    const PAUSE: Duration = Duration::from_millis(400);
    const TIMEOUT: Duration = Duration::from_secs(2);
    const { assert!(PAUSE.as_millis() * LOCKS as u128 > TIMEOUT.as_millis() + 500) };
    let servers = Servers::start(1);
    let port = servers[0].port();
    let slow = Peer::start(move |conversation| {
        let mut server = Client::connect(port).expect("a running server accepts");
        while let Some(words) = conversation.read_command() {
            if words[0].starts_with(b"EVAL") {
                thread::sleep(PAUSE);
            }
            let Ok(reply) = server.forward(&encode(&words)) else {
                return;
            };
            if !conversation.send(&reply) {
                return;
            }
        }
    });
    let builder = without_restart_guard([slow.url()])
        .node_timeout(TIMEOUT)
        .io_thread(true);
    let client = builder.build().expect("the settings are good");
    let guards: Vec<_> = (0..LOCKS)
        .map(|n| take(&client, format!("slow-{n}"), LONG))
        .collect();
    drop((guards, client));
    assert_eq!(servers[0].command(&["DBSIZE"]).integer(), 0);
}

fn kept(client: &LockClient) -> LockGuard {
    let kept = client.request("kept").ttl(KEPT).keep_alive().lock();
    kept.expect("the nodes answer")
}

/// Stops one thread of this process by the signal whose handler sleeps, and returns once it has
/// stopped.
fn stop(thread: Pid) {
    let orders = PathBuf::from(env::var_os(STOP).expect("it is given"));
    let text = format!("{} {}", thread.as_raw_nonzero(), STOPPED_FOR.as_millis());
    fs::write(&orders, text).expect("the file can be written");
    kill_process(getpid(), Signal::USR2).expect("it is this process");
    assert!(
        eventually(LIMIT, || !orders.exists()),
        "the thread has not stopped"
    );
}

/// The I/O threads in this process.
fn io_threads() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task")
        .expect("Linux lists threads")
        .flatten();
    let named = tasks.filter(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "redlatch-io\n")
    });
    let number = |task: fs::DirEntry| task.file_name().to_str()?.parse().ok();
    named.filter_map(number).filter_map(Pid::from_raw).collect()
}
