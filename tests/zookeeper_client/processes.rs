//! Processes that hold a lock and are stopped, killed, or fork.

use redlatch::{Error, LossReason};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout};
use std::thread;
use std::time::{Duration, Instant};
use support::needs_zookeeper;
use support::program::{end_with_parent, test_process};

use crate::operator::Operator;
use crate::rig::{client, keep, loss, wait_for};
use crate::{LIMIT, LONG};

const URL: &str = "REDLATCH_TEST_ZOOKEEPER_HOLDER_URL";
const HELD: &str = "the lock is held";

/// The timeout of the sessions, and the tick of the servers.
const TIMEOUT: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_millis(500);

/// A process that holds the lock.
struct Holder {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    /// Starts the process, and waits until it reports that it has the lock.
    #[track_caller]
    fn start(url: &str) -> Self {
        let mut command = test_process("processes::as_a_holder");
        let mut process = command
            .env(URL, url)
            .spawn()
            .expect("this program can be started again");
        let output = process.stdout.take().expect("it is a pipe");
        let mut lines = BufReader::new(output).lines();
        assert!(
            lines.any(|line| line.expect("text").contains(HELD)),
            "it never gets the lock"
        );
        Self { process, lines }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it is our child");
    }

    /// Lets the process run to its end, which must be successful.
    #[track_caller]
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

/// The code of the holder. Does nothing without the environment variable.
#[test]
fn as_a_holder() {
    let Ok(url) = env::var(URL) else { return };
    end_with_parent();
    let client = client(&url, TIMEOUT);
    let guard = keep(&client, "a");
    println!("{HELD}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    assert_eq!(
        loss(&guard),
        Some(LossReason::Expired),
        "before anything else"
    );
    assert_eq!(guard.remaining(), Duration::ZERO);
    let Err(Error::Lost(lost)) = guard.release() else {
        panic!("it was lost")
    };
    assert_eq!(lost.reason(), LossReason::Expired);
    // The client goes on, in another session.
    assert!(
        client
            .request("b")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_process_that_was_stopped_for_too_long_learns_that_first() {
    let shared = needs_zookeeper!().shared();
    let other = client(&shared.url(), TIMEOUT);
    let holder = Holder::start(&shared.url());
    holder.signal(Signal::STOP);
    let next = other
        .request("a")
        .ttl(LONG)
        .try_lock_for(LIMIT)
        .unwrap()
        .expect("its session ends");
    holder.signal(Signal::CONT);
    holder.end();
    assert_eq!(
        next.ensure_held(),
        Ok(()),
        "the late release has freed nothing"
    );
    assert_eq!(next.release(), Ok(()));
}

#[test]
fn a_lock_of_a_killed_process_is_free_when_its_session_has_timed_out() {
    let shared = needs_zookeeper!().shared();
    let other = client(&shared.url(), TIMEOUT);
    let mut holder = Holder::start(&shared.url());
    thread::scope(|scope| {
        let waiting = wait_for(scope, &other, "a");
        Operator::new(shared[0].port()).await_count(&format!("{}/a", shared.root()), 2);
        // For longer than its session's timeout: it is kept alive.
        thread::sleep(TIMEOUT * 4 / 3);
        assert!(!waiting.is_finished());
        let killed_at = Instant::now();
        holder.process.kill().unwrap();
        holder.process.wait().unwrap();
        let (granted_at, guard) = waiting.join().unwrap();
        let took = granted_at - killed_at;
        // The server has heard of the session within the last seventh of the timeout.
        assert!(took > TIMEOUT * 5 / 6, "{took:?}");
        let slack = Duration::from_secs(2);
        assert!(took < TIMEOUT + TICK * 3 / 2 + slack, "{took:?}");
        assert_eq!(guard.release(), Ok(()));
    });
}

/// A process that waits for a lock while no server can be reached, in this variable's environment.
const WAITER_URL: &str = "REDLATCH_TEST_ZOOKEEPER_WAITER_URL";
const WAITS: &str = "it waits";

/// The code of that process. Does nothing without the environment variable.
#[test]
fn as_a_waiter() {
    let Ok(url) = env::var(WAITER_URL) else {
        return;
    };
    end_with_parent();
    let builder = crate::rig::builder(&url, TIMEOUT).connect_timeout(REQUEST);
    let client = builder.node_timeout(REQUEST).build().unwrap();
    println!("{WAITS}");
    let lock = client.request("a").ttl(LONG).try_lock_for(LIMIT);
    assert!(matches!(lock, Ok(Some(_))), "{lock:?}");
}

/// How long a request of that process may take.
const REQUEST: Duration = Duration::from_millis(400);

/// Whether the caller or the connection's thread goes on first is a matter of luck, so there are
/// several of these processes.
#[test]
fn a_process_that_was_stopped_while_it_waits_waits_on() {
    let shared = needs_zookeeper!().shared();
    let link = support::zookeeper::Link::to(shared[0].port());
    link.refuse(true);
    let url = crate::rig::through(&link, shared.root());
    let start = |_| {
        let mut command = test_process("processes::as_a_waiter");
        let mut process = command.env(WAITER_URL, &url).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(WAITS)));
        // The connection's thread is to answer the caller within the time of a request.
        thread::sleep(REQUEST / 4);
        kill_process(Pid::from_child(&process), Signal::STOP).unwrap();
        (process, lines)
    };
    let processes: Vec<_> = (0..12).map(start).collect();
    thread::sleep(REQUEST * 2);
    for (process, _) in &processes {
        kill_process(Pid::from_child(process), Signal::CONT).unwrap();
    }
    link.refuse(false);
    for (mut process, lines) in processes {
        let text: Vec<_> = lines.map_while(Result::ok).collect();
        assert!(process.wait().unwrap().success(), "{text:#?}");
    }
}

#[cfg(target_os = "linux")] // its shim calls Linux itself
mod forks {
    use super::*;
    use crate::operator::MOMENT;
    use crate::rig::{assert_held_for, builder};
    use rustix::process::{WaitOptions, getpid, wait};
    use rustix::thread::gettid;
    use std::fs;
    use std::path::PathBuf;
    use std::process::exit;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use support::eventually;
    use support::program::succeed;
    use support::shim::Shim;
    use support::zookeeper::Shared;

    const FORK: &str = "REDLATCH_FORK";

    /// The exit status of a successful child: one that panicked ends with zero.
    const WELL: i32 = 42;

    #[test]
    fn a_forked_child_ends_nothing_of_its_parent() {
        run(
            "processes::forks::as_a_program_that_forks",
            &needs_zookeeper!().shared(),
        );
    }

    #[test]
    fn a_child_that_a_callback_forks_leaves_the_wait_to_its_parent() {
        let shared = needs_zookeeper!().shared();
        run(
            "processes::forks::as_a_program_that_forks_in_a_callback",
            &shared,
        );
    }

    fn run(program: &str, shared: &Shared) {
        let shim = Shim::fork();
        let mut command = test_process(program);
        succeed(command.envs(shim.environment(FORK)).env(URL, shared.url()));
    }

    /// Forks this process with the [shim](Shim::fork), and returns whether this is the child.
    fn fork() -> bool {
        let itself = getpid();
        let orders = PathBuf::from(env::var_os(FORK).expect("it is given"));
        let whole = orders.with_extension("whole");
        fs::write(&whole, gettid().as_raw_nonzero().to_string()).expect("it can be written");
        // A rename, so the shim never reads half of the file.
        fs::rename(&whole, &orders).expect("the file can be renamed");
        thread::yield_now();
        let is_child = getpid() != itself;
        assert!(is_child || !orders.exists(), "the shim has not forked");
        is_child
    }

    /// The code of that program. Does nothing without the environment variable.
    #[test]
    fn as_a_program_that_forks() {
        let (Ok(url), true) = (env::var(URL), env::var_os(FORK).is_some()) else {
            return;
        };
        end_with_parent();
        let client = client(&url, TIMEOUT);
        let guards = ["a", "b"].map(|name| keep(&client, name));
        if fork() {
            assert_eq!(
                guards.each_ref().map(loss),
                [Some(LossReason::OtherProcess); 2]
            );
            assert!(client.try_lock("c", LONG).is_err());
            let [first, second] = guards;
            assert_eq!(first.release(), Err(Error::OtherProcess));
            drop((second, client));
            exit(WELL);
        }
        expect_child_to_succeed();
        // The session is kept alive as before.
        assert_held_for(&guards[0], TIMEOUT + MOMENT);
        assert_eq!(client.lock("c", LONG).unwrap().release(), Ok(()));
        assert_eq!(guards.map(redlatch::LockGuard::release), [Ok(()), Ok(())]);
    }

    fn expect_child_to_succeed() {
        let mut ended = None;
        let is_over = eventually(LIMIT, || {
            ended = wait(WaitOptions::NOHANG).expect("there is a child");
            ended.is_some()
        });
        assert!(is_over, "the child does not end");
        let (_, status) = ended.unwrap();
        assert_eq!(status.exit_status(), Some(WELL), "{status:?}");
    }

    /// Forks in the callback that says how many are ahead. Does nothing without the variables.
    #[test]
    fn as_a_program_that_forks_in_a_callback() {
        let (Ok(url), true) = (env::var(URL), env::var_os(FORK).is_some()) else {
            return;
        };
        end_with_parent();
        let holder = client(&url, TIMEOUT);
        let guard = keep(&holder, "busy");
        let is_child = Arc::new(AtomicBool::new(false));
        let forked = Arc::clone(&is_child);
        let settings = builder(&url, TIMEOUT).on_event(move |event| {
            if event.name() == "queued" {
                forked.store(fork(), Ordering::SeqCst);
            }
        });
        let waiting = settings.build().unwrap();
        let start = Instant::now();
        let wait = Duration::from_secs(3);
        let outcome = waiting.request("busy").ttl(LONG).try_lock_for(wait);
        if is_child.load(Ordering::SeqCst) {
            assert_eq!(outcome.err(), Some(Error::OtherProcess));
            drop(waiting);
            // It does not wait on its own.
            exit(if start.elapsed() < wait / 2 { WELL } else { 2 });
        }
        assert!(outcome.unwrap().is_none());
        expect_child_to_succeed();
        assert_eq!(guard.release(), Ok(()));
        waiting.lock("busy", LONG).unwrap().release().unwrap();
    }
}
