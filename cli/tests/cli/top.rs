//! `redlatch top`.

use super::program::{Ended, Running, end, redlatch};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, pause, resume, take};
use support::servers::Servers;
use support::waiters::await_queued;

fn top(servers: &Servers, more: &[&str]) -> Ended {
    end(&mut redlatch(servers, &[&["top"], more].concat()))
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// A command that waits for the lock.
#[track_caller]
fn waiter(servers: &Servers, name: &str, place: usize) -> Running {
    let running = Running::start(&mut redlatch(servers, &["run", name, "--", "true"]));
    await_queued(servers, name, place);
    running
}

#[test]
fn the_lock_for_which_somebody_waits_longest_comes_first() {
    let servers = Servers::start(3);
    assert_eq!(top(&servers, &[]).stdout, "0 locks, 0 waiting\n");
    let client = all_nodes_client(servers.urls());
    let free = take(&client, "a", LONG);
    let held = [take(&client, "b", LONG), take(&client, "c\n", LONG)];
    let owned = client
        .request("d")
        .owner("host-7")
        .ttl(LONG)
        .one_of(3)
        .try_lock()
        .unwrap();
    // What a failed attempt has left on one node is not a lock.
    servers[0].command(&["SET", "left", "value", "PX", "50000"]);
    let waiters = [
        waiter(&servers, "c\n", 1),
        waiter(&servers, "b", 1),
        waiter(&servers, "b", 2),
    ];

    expect_table(&servers);
    expect_json(&servers);
    drop((free, held, owned));
    waiters
        .into_iter()
        .for_each(|running| assert_eq!(running.end().code, 0));
    assert!(eventually(LIMIT, || top(&servers, &[]).stdout
        == "0 locks, 0 waiting\n"));
}

/// The four locks of that test, as a table.
#[track_caller]
fn expect_table(servers: &Servers) {
    let shown = top(servers, &[]);
    assert_eq!((shown.code, &*shown.stderr), (0, ""));
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(
        (lines[0], lines[1]),
        ("4 locks, 3 waiting", ""),
        "{}",
        shown.stdout
    );
    assert!(
        lines[2].starts_with("LOCK  WAITERS  LONGEST WAIT  STATE"),
        "{}",
        shown.stdout
    );
    let first = |line: &str| {
        line.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let rows: Vec<String> = lines[3..].iter().map(|line| first(line)).collect();
    assert_eq!(rows, [r"c\n 1", "b 2", "a 0", "d 0"], "{}", shown.stdout);
    assert!(
        lines[6].contains("shared by host-7 with permit "),
        "{}",
        lines[6]
    );
}

/// The same as JSON.
#[track_caller]
fn expect_json(servers: &Servers) {
    let list = json(&top(servers, &["--json", "--limit", "3"]).stdout);
    let field = |name: &str| {
        list.as_array()
            .expect("a list")
            .iter()
            .map(|row| row[name].clone())
            .collect()
    };
    assert_eq!(Value::Array(field("waiters")), json("[1, 2, 0]"));
    let waits: Vec<Value> = field("longest_wait_millis");
    assert!(
        waits[0].as_u64() >= waits[1].as_u64() && waits[2].is_null(),
        "{waits:?}"
    );
    assert_eq!(
        Value::Array(field("state")),
        json(r#"["held", "held", "held"]"#)
    );
    let one = json(&top(servers, &["[d-z]", "--json"]).stdout);
    assert_eq!(
        (&one[0]["name"], one.as_array().map(Vec::len)),
        (&"d".into(), Some(1))
    );
    assert_eq!(one[0]["holders"][0]["owner"], "host-7");
    let exact = json(&top(servers, &["c*", "--json"]).stdout);
    assert_eq!(exact[0]["name"], "c\n", "JSON has escapes of its own");
}

#[test]
fn nodes_that_are_slow_now_and_then_do_not_end_it() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held: Vec<_> = (0..2_000)
        .map(|number| take(&client, number.to_string(), LONG))
        .collect();
    let arguments = [
        "top",
        "--watch",
        "--json",
        "--limit",
        "1",
        "--node-timeout",
        "200ms",
    ];
    let mut watching = Running::start(&mut redlatch(&servers, &arguments));
    watching.next_line();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                pause(&servers, 2);
                thread::sleep(Duration::from_millis(250));
                resume(&servers, 2);
                thread::sleep(Duration::from_millis(50));
            }
        });
        watching.next_line();
        watching.next_line();
        is_over.store(true, Relaxed);
    });
    drop(watching.0.stdout.take());
    let ended = watching.end();
    assert_eq!((ended.code, &*ended.stderr), (141, ""));
    drop(held);
}

#[test]
fn more_locks_are_looked_at_at_a_time_while_a_node_hangs() {
    const LOCKS: u32 = 256;
    // Each look at a lock takes the node timeout.
    const EIGHT_AT_A_TIME: Duration = Duration::from_secs(LOCKS as u64 / 8);
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held: Vec<_> = (0..LOCKS)
        .map(|number| take(&client, number.to_string(), LONG))
        .collect();
    pause(&servers, 1);
    let start = Instant::now();
    let ended = top(&servers, &["--node-timeout", "1s"]);
    let took = start.elapsed();
    resume(&servers, 1);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    assert!(
        ended.stdout.starts_with("256 locks, 0 waiting\n"),
        "{}",
        ended.stdout
    );
    assert!(took < EIGHT_AT_A_TIME, "{took:?}");
    drop(held);
}

#[test]
fn it_needs_a_majority_and_can_watch() {
    let mut servers = Servers::start(3);
    let lock = take(&all_nodes_client(servers.urls()), "name", LONG);
    let mut watching = Running::start(&mut redlatch(&servers, &["top", "--watch", "--json"]));
    assert_eq!(json(&watching.next_line())[0]["name"], "name");
    servers[0].kill();
    assert_eq!(
        json(&watching.next_line())[0]["state"],
        "held",
        "one node of three may be down"
    );
    servers[1].kill();
    let failed = top(&servers, &[]);
    assert_eq!((failed.code, &*failed.stdout), (69, ""));
    assert!(
        failed.stderr.starts_with("redlatch: no quorum: 1 of 3 "),
        "{}",
        failed.stderr
    );
    servers[1].restart();
    let line = (0..40)
        .map(|_| json(&watching.next_line()))
        .find(|list| list[0]["state"] != "held");
    let state = line.map(|list| list[0]["state"].clone());
    assert_eq!(
        state,
        Some("undecided".into()),
        "a failure ends nothing, and one node has the lock"
    );
    drop(watching.0.stdout.take());
    let ended = watching.end();
    assert_eq!(ended.code, 141);
    assert_eq!(top(&servers, &[""]).code, 2);
    drop(lock);
}
