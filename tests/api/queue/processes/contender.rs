//! A process that acquires one lock again and again.

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::journal::Journal;
use support::eventually;
use support::locks::LIMIT;
use support::program::{end_with_parent, test_process};
use support::waiters::with_lease;

pub(crate) const LEASE: Duration = Duration::from_millis(1_200);
pub(crate) const TTL: Duration = Duration::from_millis(1_500);

/// The number of a process that keeps its first lock for ever.
pub(crate) const KEEPS: u64 = u64::MAX;

/// The number of a process of this many waiters, each with a client of its own. They keep their
/// first lock for ever too.
pub(crate) const CROWD: u64 = u64::MAX - 1;
pub(crate) const CROWD_SIZE: usize = 70;

const URLS: &str = "REDLATCH_TEST_URLS";
const FOLDER: &str = "REDLATCH_TEST_FOLDER";
const NUMBER: &str = "REDLATCH_TEST_NUMBER";

pub(crate) struct Contender(Child);

impl Contender {
    pub(crate) fn start(urls: &[String], folder: &Path, number: u64) -> Self {
        let mut command = test_process("queue::processes::as_a_contender");
        command
            .env(URLS, urls.join(" "))
            .env(FOLDER, folder)
            .env(NUMBER, number.to_string());
        Self(command.spawn().expect("this program can be started again"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // A child that was not waited for keeps its id.
        kill_process(Pid::from_child(&self.0), signal).expect("it is our child");
    }

    /// SIGSTOP. Returns when it has stopped, which may be later than the signal.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.0.id());
        let is_stopped = || {
            let text = fs::read_to_string(&stat).expect("it has not ended");
            // The state follows the name, which is in parentheses.
            text.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T'))
        };
        assert!(eventually(LIMIT, is_stopped), "SIGSTOP did not stop it");
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it is our child");
        self.0.wait().expect("it was killed");
    }

    /// Has it end, which it does after its next lock.
    pub(crate) fn end(&mut self) {
        drop(self.0.stdin.take());
        let has_ended = || self.0.try_wait().expect("a child can be asked").is_some();
        assert!(eventually(2 * LIMIT, has_ended), "a process does not end");
        assert!(self.0.wait().expect("it has ended").success());
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        // It fails only if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run() {
    let (Ok(urls), Some(folder)) = (env::var(URLS), env::var_os(FOLDER)) else {
        return;
    };
    end_with_parent();
    let number = env::var(NUMBER)
        .expect("it is given a number")
        .parse()
        .expect("a number");
    let journal = Journal::open(&PathBuf::from(folder));
    let client = || {
        with_lease(urls.split(' '), LEASE)
            .build()
            .expect("the settings are good")
    };
    if number == CROWD {
        return thread::scope(|scope| {
            for _ in 0..CROWD_SIZE {
                scope.spawn(|| {
                    let _lock = client().lock("name", TTL).expect("the nodes are up");
                    loop {
                        thread::park();
                    }
                });
            }
        });
    }
    let client = client();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            is_over.store(true, Ordering::SeqCst);
        });
        loop {
            let guard = client.request("name").ttl(TTL).fenced().lock();
            let guard = guard.expect("the nodes are up");
            journal.enter(number, &guard);
            if number == KEEPS {
                loop {
                    thread::park();
                }
            }
            thread::sleep(Duration::from_millis(3));
            journal.leave(number, &guard);
            let _ = guard.release();
            if is_over.load(Ordering::SeqCst) {
                return;
            }
        }
    });
}
