//! Holders that fail: stopped for longer than their lock is valid, killed, or ended without a
//! release.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, exit};
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LossReason};
use rustix::process::{Pid, Signal, kill_process};

use support::locks::{LIMIT, LONG, all_nodes_client, gone, holders, take, with_long_timeout};
use support::loss::{loss, loss_in};
use support::program::{end_with_parent, test_process};
use support::servers::Servers;

const URLS: &str = "REDLATCH_TEST_HOLDER_URLS";
const ENDING: &str = "REDLATCH_TEST_HOLDER_ENDING";
const HELD: &str = "the lock is held";
const TTL: Duration = Duration::from_secs(2);

/// A process that holds the lock.
struct Holder {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// A time before the start of the process.
    before: Instant,
}

impl Holder {
    /// Starts the process, and waits until it reports that it has the lock.
    fn start(servers: &Servers, ending: &str) -> Self {
        let before = Instant::now();
        let mut command = test_process("faults::holders::as_a_holder");
        command
            .env(URLS, servers.urls().join(" "))
            .env(ENDING, ending);
        let mut process = command.spawn().expect("this program can be started again");
        let output = process.stdout.take().expect("it is a pipe");
        let mut lines = BufReader::new(output).lines();
        assert!(
            lines.any(|line| line.expect("text").contains(HELD)),
            "it never gets the lock"
        );
        Self {
            process,
            lines,
            before,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it is our child");
    }

    /// Lets the process run to its end, which must be successful.
    fn end(mut self) {
        let mut input = self.process.stdin.take().expect("it is a pipe");
        input.write_all(b"go on\n").expect("it listens");
        let text: Vec<_> = self.lines.map_while(Result::ok).collect();
        assert!(
            self.process.wait().expect("it is our child").success(),
            "{text:#?}"
        );
    }
}

/// The code of the holder. Does nothing without the environment variables.
#[test]
fn as_a_holder() {
    let (Ok(urls), Ok(ending)) = (env::var(URLS), env::var(ENDING)) else {
        return;
    };
    end_with_parent();
    let client = with_long_timeout(urls.split(' ')).build().unwrap();
    let ttl = if ending == "dropped" { LONG } else { TTL };
    let mut guard = take(&client, "held", ttl);
    println!("{HELD}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    match ending.as_str() {
        "stopped" => {
            assert_eq!(
                loss(&guard),
                Some(LossReason::Expired),
                "before anything else"
            );
            assert_eq!(guard.remaining(), Duration::ZERO);
            assert_eq!(loss_in(guard.extend(TTL)), Some(LossReason::Expired));
            assert!(matches!(guard.release(), Err(Error::Lost(_))));
        }
        // Ends without dropping anything.
        "exit" => exit(0),
        _ => drop(guard),
    }
}

/// Waits for the lock of a holder that does not release it, which takes until its ttl has passed.
#[track_caller]
fn outlast(client: &LockClient, holder: &Holder) -> redlatch::LockGuard {
    let since = Instant::now();
    let guard = client.lock("held", LONG).expect("it is free in the end");
    assert!(since.elapsed() < TTL + LIMIT);
    // The lock was requested after that time, and the servers' clocks are this machine's.
    assert!(
        holder.before.elapsed() >= TTL,
        "the lock must not be free earlier"
    );
    guard
}

#[test]
fn a_holder_that_was_stopped_for_longer_than_its_ttl_learns_that_first() {
    let servers = Servers::start(3);
    let other = all_nodes_client(servers.urls());
    let holder = Holder::start(&servers, "stopped");
    holder.signal(Signal::STOP);
    let guard = outlast(&other, &holder);
    holder.signal(Signal::CONT);
    holder.end();
    assert!(guard.ensure_held().is_ok());
    assert_eq!(
        holders(&servers, "held"),
        3,
        "its late release has removed no key of the next holder"
    );
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn a_killed_holder_blocks_the_lock_for_its_ttl_only() {
    let servers = Servers::start(3);
    let other = all_nodes_client(servers.urls());
    let mut holder = Holder::start(&servers, "killed");
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    assert_eq!(outlast(&other, &holder).release(), Ok(()));
}

#[test]
fn a_holder_that_exits_without_dropping_its_lock_is_like_one_that_is_killed() {
    let servers = Servers::start(3);
    let other = all_nodes_client(servers.urls());
    let mut holder = Holder::start(&servers, "exit");
    drop(holder.process.stdin.take());
    assert!(holder.process.wait().unwrap().success());
    assert_eq!(outlast(&other, &holder).release(), Ok(()));
}

#[test]
fn a_holder_that_drops_its_guard_at_its_end_leaves_no_key() {
    let servers = Servers::start(3);
    let holder = Holder::start(&servers, "dropped");
    holder.end();
    assert!(gone(&servers, "held"));
}
