//! A thousand automatically extended locks: one thread, few writes, no loss. They run in a process
//! of their own, whose threads and time are counted.

use std::env;
use std::fs;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Builder, LockClient, LockGuard, LockLost, LossReason};
use support::eventually;
use support::locks::{LIMIT, calls, holders, pause, resume, take, without_restart_guard};
use support::loss::loss;
use support::program::{end_with_parent, succeed, test_process};
use support::servers::Servers;

const LOCKS: usize = 1_000;

/// Is this the process whose threads are counted?
const COUNTED: &str = "REDLATCH_TEST_KEEP_MANY";

/// The watchdog threads of this process.
fn watchdogs() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("this is about Linux");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "redlatch-watch").count()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task")
        .expect("this is about Linux")
        .count()
}

fn settings(servers: &Servers, node_timeout: Duration) -> Builder {
    without_restart_guard(servers.urls()).node_timeout(node_timeout)
}

fn keep_many(client: &LockClient, ttl: Duration) -> Vec<LockGuard> {
    let keep = |index: usize| {
        let request = client
            .request(format!("many:{index}"))
            .ttl(ttl)
            .keep_alive();
        request
            .try_lock()
            .expect("a majority answers")
            .expect("no other client holds the lock")
    };
    (0..LOCKS).map(keep).collect()
}

fn renewals(servers: &Servers) -> u64 {
    servers.iter().map(|server| calls(server, "evalsha")).sum()
}

#[test]
fn a_thousand_locks_cost_one_thread_that_ends_with_the_client() {
    succeed(test_process("keep::many::program_with_a_thousand_locks").env(COUNTED, "1"));
}

#[test]
fn program_with_a_thousand_locks() {
    if env::var_os(COUNTED).is_none() {
        return;
    }
    end_with_parent();
    let servers = Servers::start(3);
    let client = settings(&servers, Duration::from_millis(500))
        .build()
        .unwrap();
    let ttl = Duration::from_secs(4);
    drop(take(&client, "plain", ttl));
    let before = threads();
    assert_eq!(watchdogs(), 0, "without watched locks there is no thread");
    let guards = keep_many(&client, ttl);
    let start = Instant::now();
    while start.elapsed() < 2 * ttl {
        guards
            .iter()
            .for_each(|guard| assert_eq!(guard.ensure_held(), Ok(())));
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((watchdogs(), threads()), (1, before + 1));
    drop(client);
    assert_eq!(watchdogs(), 1, "each guard keeps the client alive");
    drop(guards);
    assert_eq!(watchdogs(), 0, "the last drop waits for the thread to end");
    assert!(eventually(LIMIT, || holders(&servers, "many:999") == 0));
}

/// The processor time of this process, in user mode and in the kernel.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("this is about Linux");
    let fields: Vec<&str> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().expect("a number of ticks"))
        .sum();
    // A hundred ticks a second on Linux.
    Duration::from_millis(ticks * 10)
}

/// Measurements: ignored by default, because this takes over a minute and needs an idle machine.
/// `cargo test --release --test api keep::many:: -- --ignored --nocapture --test-threads=1`
#[test]
#[ignore = "takes over a minute"]
fn figures_of_a_thousand_locks_kept_for_a_minute() {
    let servers = Servers::start(5);
    let client = settings(&servers, Duration::from_millis(50))
        .build()
        .unwrap();
    let guards = keep_many(&client, Duration::from_secs(3));
    let (sender, losses) = channel();
    for guard in &guards {
        let sender = sender.clone();
        guard
            .on_lost(move |lost| sender.send(lost).unwrap())
            .unwrap();
    }
    drop(sender);
    let start = Instant::now();
    let spent = processor_time();
    let before = renewals(&servers);
    thread::sleep(Duration::from_secs(60));
    let took = start.elapsed();
    let spent = processor_time() - spent;
    let held = guards
        .iter()
        .filter(|guard| guard.ensure_held().is_ok())
        .count();
    let renewed = renewals(&servers) - before;
    println!(
        "{LOCKS} locks of 3 s for {took:.1?}: {held} held, {} watchdog, {renewed} renewals at 5 \
         nodes, {:.2} % of a core ({spent:?})",
        watchdogs(),
        100.0 * spent.as_secs_f64() / took.as_secs_f64(),
    );
    assert_eq!((held, losses.try_recv().ok()), (LOCKS, None::<LockLost>));
    assert_eq!(watchdogs(), 1);
    drop(guards);
    assert!(eventually(LIMIT, || holders(&servers, "many:999") == 0));
    assert!(client.nodes().iter().all(|node| node.is_connected));
    let after = renewals(&servers);
    thread::sleep(Duration::from_secs(4));
    assert_eq!(
        renewals(&servers),
        after,
        "none is extended after its release"
    );
}

/// How late a loss is reported with all nodes stopped, compared with how late a thread is that
/// sleeps until then and spawns another. The difference is the library's.
#[test]
#[ignore = "a figure, and takes a minute"]
fn figures_of_losses_with_all_nodes_stopped() {
    let servers = Servers::start(5);
    let client = settings(&servers, Duration::from_millis(50))
        .build()
        .unwrap();
    let ttl = Duration::from_millis(600);
    let mut reported = Vec::new();
    let mut woken = Vec::new();
    for round in 0..40 {
        let request = client
            .request(format!("late:{round}"))
            .ttl(ttl)
            .keep_alive();
        let guard = request.lock().unwrap();
        thread::sleep(ttl / 2);
        pause(&servers, 5);
        let (sender, lost) = channel();
        guard
            .on_lost(move |_| sender.send(Instant::now()).unwrap())
            .unwrap();
        // Extensions in flight fail from here on.
        thread::sleep(Duration::from_millis(60));
        let end = Instant::now() + guard.remaining();
        thread::sleep(end.saturating_duration_since(Instant::now()));
        woken.push(thread::spawn(move || end.elapsed()).join().unwrap());
        reported.push(
            lost.recv_timeout(LIMIT)
                .unwrap()
                .saturating_duration_since(end),
        );
        assert_eq!(loss(&guard), Some(LossReason::Expired));
        resume(&servers, 5);
    }
    for (what, mut late) in [
        ("a reported loss", reported),
        ("a thread that just sleeps", woken),
    ] {
        late.sort_unstable();
        let at = |share: usize| late[(late.len() - 1) * share / 100];
        println!(
            "{what}: median {:?}, p90 {:?}, worst {:?} late",
            at(50),
            at(90),
            at(100)
        );
        assert!(at(50) < Duration::from_millis(50), "on any machine");
    }
}
