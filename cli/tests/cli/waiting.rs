//! `redlatch run` that waits: what it says meanwhile, and for what it does not wait.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use super::program::{Running, bare, end, redlatch};
use rustix::process::Signal;
use support::deaf_port::DeafPort;
use support::locks::{LONG, all_nodes_client};
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

#[test]
fn a_command_does_not_wait_for_the_lock_under_which_it_runs() {
    let servers = Servers::start(3);
    let redlatch_path = env!("CARGO_BIN_EXE_redlatch");
    let inner =
        |options: &str| format!("{redlatch_path} --no-restart-guard --node-timeout 2s {options}");
    let outer = |more: &[&str], script: &str| {
        let arguments = [&["run", "name"], more, &["-c", script]].concat();
        end(&mut redlatch(&servers, &arguments))
    };
    for wants in [
        "run name true",
        "run other --also name true",
        "lock name",
        "run name -n true",
    ] {
        let ended = outer(&[], &format!("true; {}", inner(wants)));
        assert_eq!(ended.code, 2, "{wants}: {}", ended.stderr);
        let text = "redlatch: name: this program runs under that lock, and would wait for itself";
        assert!(ended.stderr.starts_with(text), "{wants}: {}", ended.stderr);
    }
    assert_eq!(outer(&[], &inner("run other true")).code, 0);
    assert_eq!(
        outer(&["--permits", "2"], &inner("run name --permits 2 true")).code,
        0
    );
    assert_eq!(
        outer(&["--shared"], &inner("run name --shared true")).code,
        0
    );
    // What is not below it any more has the variable, and may wait.
    let mut alone = redlatch(&servers, &["run", "name", "--", "true"]);
    assert_eq!(end(alone.env("REDLATCH_LOCK", "name")).code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn who_waits_for_long_says_why_also_without_a_terminal() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = client
        .request("name")
        .owner("host-7")
        .ttl(LONG)
        .keep_alive()
        .lock();
    let held = held.expect("it is free");
    let start = |more: &[&str]| {
        let arguments = [&["run", "name"], more, &["--", "true"]].concat();
        Running::start(&mut redlatch(&servers, &arguments))
    };
    let mut waiting = start(&[]);
    await_queued(&servers, "name", 1);
    let quiet = start(&["-E", "0"]);
    await_queued(&servers, "name", 2);
    let mut lines = BufReader::new(waiting.0.stderr.take().expect("it is piped")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let first = line();
    assert!(
        first.starts_with("redlatch: name: waiting for 1"),
        "{first}"
    );
    assert!(
        first.ends_with(" s: first in line, held by host-7"),
        "{first}"
    );
    servers[0].kill();
    servers[1].kill();
    let second = line();
    assert!(
        second.starts_with("redlatch: name: waiting for "),
        "{second}"
    );
    assert!(
        second.contains(" s: no quorum: 1 of 3 nodes gave an answer"),
        "{second}"
    );
    // On all machines but one, others that hold the lock are nothing to report.
    quiet.signal(Signal::TERM);
    let ended = quiet.end();
    assert!(!ended.stderr.contains("host-7"), "{}", ended.stderr);
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.end().code, 143);
    drop(held);
}

#[test]
fn a_wait_for_servers_that_do_not_answer_takes_all_of_its_time() {
    let deaf = DeafPort::open("127.0.0.1:0");
    // The first attempt takes 2 s, and another one as long would not end in time.
    let wait = Duration::from_secs(3);
    let start = Instant::now();
    let mut command = bare();
    command.env("REDLATCH_NODES", format!("redis://{}", deaf.address()));
    let ended = end(command.args(["run", "--wait", "3s", "name", "--", "true"]));
    let took = start.elapsed();
    assert_eq!(ended.code, 69, "{}", ended.stderr);
    assert!(took >= wait, "it has ended after {took:?}");
}
