//! Ten thousand calls that take no thread: what each takes, how often they wake the machine, in
//! which order they are served, and that nothing is left of those that are cancelled. Linux tells
//! what a process takes.

#![cfg(target_os = "linux")]

use redlatch::{LockClient, LockGuard};
use std::fs;
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use support::eventually;
use support::locks::{LIMIT, LONG, connected, take};
use support::servers::Servers;
use support::tasks::begin;
use support::waiters::{are_queued, await_keys, holder, pushed};

const CALLS: usize = 10_000;

/// Bytes of this process for each.
const MEMORY_MAX: usize = 10 * 1024;

/// Wakes of the thread that goes on with them, in a second, for all.
const WAKES_MAX: f64 = 200.0;

/// One at a time: the memory is that of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the kernel says in a line of this file that begins so.
fn field(file: &str, name: &str) -> usize {
    let text = fs::read_to_string(file).expect("the kernel tells");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next());
    let value = value.expect("it has this line");
    value.parse().expect("it is a number")
}

/// The resident memory of this process, in bytes.
fn memory() -> usize {
    field("/proc/self/status", "VmRSS:") * 1024
}

fn threads() -> usize {
    field("/proc/self/status", "Threads:")
}

/// How often the thread that goes on with calls has slept.
fn wakes() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("this is Linux");
    let folders = tasks.map(|task| task.expect("a thread").path());
    let is_driver = |name: String| name.trim() == "redlatch-wait";
    let driver = folders
        .filter(|folder| fs::read_to_string(folder.join("comm")).is_ok_and(is_driver))
        .last()
        .expect("it runs");
    let status = driver.join("status").display().to_string();
    field(&status, "voluntary_ctxt_switches:")
}

#[expect(
    clippy::print_stdout,
    reason = "the figure is worth seeing, with --nocapture"
)]
fn say(figure: &str) {
    println!("{figure}");
}

/// Begins the calls, and looks at what they take while they wait.
fn expect_little_of<T>(client: &LockClient, start: impl FnOnce() -> T) -> T {
    // The thread, and what is allocated once.
    drop(begin(client.request("first").ttl(LONG).lock_async()));
    let threads_before = threads();
    let memory_before = memory();
    let calls = start();
    let each = memory().saturating_sub(memory_before) / CALLS;
    say(&format!("{each} bytes for each call"));
    assert!(each <= MEMORY_MAX, "{each} bytes for each call");
    // One of the harness may have ended.
    assert!(threads() <= threads_before);
    calls
}

#[test]
fn those_that_wait_for_one_lock_take_little_and_are_served_in_order() {
    let _alone = alone();
    let servers = Servers::start(3);
    let client = connected(pushed(servers.urls()));
    let held = take(&client, "name", LONG);
    // Callbacks have a thread too.
    let (sender, served) = mpsc::channel();
    let first = client.request("other").ttl(LONG).lock_async();
    first.then(move |lock| drop(lock.map(LockGuard::release)));
    await_keys(&servers, &["name"]);
    expect_little_of(&client, || {
        for number in 0..CALLS {
            let sender = sender.clone();
            let call = client.request("name").ttl(LONG).lock_async();
            call.then(move |lock| {
                sender.send((number, lock.is_ok())).expect("the test waits");
            });
        }
    });
    let seen = client.inspect("name").expect("the nodes answer");
    assert_eq!(seen.own_threads.waiting, CALLS);
    let before = wakes();
    let start = Instant::now();
    thread::sleep(Duration::from_secs(2));
    let a_second = (wakes() - before) as f64 / start.elapsed().as_secs_f64();
    say(&format!("{a_second} wakes a second"));
    assert!(a_second <= WAKES_MAX, "{a_second} wakes a second");
    drop(held);
    for number in 0..CALLS {
        let next = served.recv_timeout(LIMIT).expect("all are served");
        assert_eq!(next, (number, true));
    }
    await_keys(&servers, &[]);
}

#[test]
fn those_that_are_cancelled_leave_nothing() {
    const NAMES: usize = 200;
    let _alone = alone();
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let client = connected(pushed(servers.urls()));
    let names: Vec<String> = (0..NAMES).map(|number| format!("n{number}")).collect();
    let held: Vec<_> = names.iter().map(|name| take(&holder, name, LONG)).collect();
    let calls = expect_little_of(&client, || {
        let of = |name: &String| begin(client.request(name).ttl(LONG).lock_async());
        let in_turn = (0..CALLS).map(|number| &names[number % NAMES]);
        in_turn.map(of).collect::<Vec<_>>()
    });
    // The first for each lock waits at the nodes.
    let queued = |count| names.iter().all(|name| are_queued(&servers, name, count));
    assert!(eventually(LIMIT, || queued(1)));
    drop(calls);
    assert!(eventually(LIMIT, || queued(0)));
    drop(held);
    await_keys(&servers, &[]);
}
