//! The examples of event loops: each waits for the locks of all orders of its input in one thread.

use super::{Running, SANITIZED, compile, nodes, valgrind};
use redlatch::LockClient;
use redlatch::embedded::Nodes;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

#[test]
fn a_loop_of_epoll_waits_for_locks_without_a_thread() {
    check("examples/epoll.c", &[]);
}

#[test]
fn a_loop_of_libuv_waits_for_locks_without_a_thread() {
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "libuv"]);
    let package = command.output().expect("it runs");
    if !package.status.success() {
        let is_required = env::var("REDLATCH_REQUIRE_LIBUV").is_ok_and(|it| it == "1");
        assert!(!is_required, "no libuv here (apt-get install libuv1-dev)");
        eprintln!("not run: no libuv here (apt-get install libuv1-dev)");
        return;
    }
    let flags = String::from_utf8(package.stdout).expect("text");
    let flags: Vec<&str> = flags.split_whitespace().collect();
    check("examples/uv.c", &flags);
}

fn check(source: &str, flags: &[&str]) {
    let nodes = nodes();
    let sanitized = compile(source, &[&SANITIZED, flags].concat(), true);
    let examined = compile(source, &[&["-g"], flags].concat(), true);
    charges_each_order_once(&mut Command::new(&sanitized), &nodes);
    charges_each_order_once(&mut valgrind(&examined), &nodes);
    ends_its_waits(&mut Command::new(&sanitized), &nodes);
    ends_its_waits(&mut valgrind(&examined), &nodes);
}

fn charges_each_order_once(command: &mut Command, nodes: &Nodes) {
    let mut running = Running::spawn(command.args(nodes.urls()));
    let orders = ["orders:1", "orders:2", "orders:1", "orders:3"];
    write(&mut running, &format!("{}\n", orders.join("\n")));
    drop(running.0.stdin.take());
    let output = end(&mut running);
    let mut paid: Vec<&str> = output
        .lines()
        .filter_map(|line| line.strip_suffix(" is paid"))
        .collect();
    paid.sort_unstable();
    assert_eq!(
        paid,
        ["orders:1", "orders:1", "orders:2", "orders:3"],
        "{output}"
    );
}

/// SIGTERM ends a wait, and leaves nothing in the queue.
fn ends_its_waits(command: &mut Command, nodes: &Nodes) {
    let client = LockClient::new(nodes.urls()).expect("they are nodes");
    let held = client.request("orders:4").keep_alive().lock();
    let held = held.expect("all nodes are up");
    let mut running = Running::spawn(command.args(nodes.urls()));
    write(&mut running, "orders:4\n");
    await_waiters(&client, 1);
    running.terminate();
    let output = end(&mut running);
    assert_eq!(output, "orders:4: the call was cancelled\n");
    await_waiters(&client, 0);
    held.release().expect("it is held");
}

fn write(running: &mut Running, lines: &str) {
    let input = running.0.stdin.as_mut().expect("it is piped");
    input.write_all(lines.as_bytes()).expect("it reads");
}

/// What it has printed, when it has ended without errors.
fn end(running: &mut Running) -> String {
    let mut output = String::new();
    let mut errors = String::new();
    let stdout = running.0.stdout.as_mut().expect("it is piped");
    stdout.read_to_string(&mut output).expect("text");
    let stderr = running.0.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut errors).expect("text");
    assert_eq!(errors, "", "{output}");
    assert!(running.wait().success(), "{output}");
    output
}

fn await_waiters(client: &LockClient, count: usize) {
    let began = Instant::now();
    loop {
        let seen = client.inspect("orders:4").expect("all nodes are up");
        if seen.waiter_count == count {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{seen:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
