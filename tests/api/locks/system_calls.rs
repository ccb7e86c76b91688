//! How many system calls it takes to acquire a lock and to release it, after the connections were
//! made.
//!
//! They are counted with one server, where the order of events does not depend on how busy the
//! machine is: one request, and the thread sleeps until its reply is there. What a client does once
//! for all nodes shows there, and what it does for each node is two calls for a request.

use std::env;
use std::fs;

use support::locks::{LONG, connected, take, with_long_timeout};
use support::program::{end_with_parent, succeed, test_process};
use support::servers::Servers;
use support::shim::Shim;

const URLS: &str = "REDLATCH_TEST_CALLS_URLS";
const PAIRS: &str = "REDLATCH_TEST_CALLS_PAIRS";
const RELEASES: &str = "REDLATCH_TEST_CALLS_RELEASES";
const CALLS: &str = "REDLATCH_CALLS";

/// What connects and warms up is counted in both runs of a program, and shows in no difference.
const FEW: u64 = 200;
const MANY: u64 = 1_200;

/// In one of how many runs there must be no more. A thread that was stopped between two calls polls
/// once more.
const RUNS: u32 = 5;

/// System calls, of which the shim counts these kinds.
#[derive(Clone, Copy, Debug)]
struct Calls {
    send: f64,
    recv: f64,
    epoll_wait: f64,
    getpid: f64,
    getrandom: f64,
}

impl Calls {
    fn parse(text: &str) -> Self {
        let numbers = text.split_whitespace().map(str::parse);
        let numbers: Vec<f64> = numbers
            .map(|number| number.expect("the shim writes numbers"))
            .collect();
        let [send, recv, epoll_wait, getpid, getrandom] = numbers[..] else {
            panic!("{text:?}")
        };
        Self {
            send,
            recv,
            epoll_wait,
            getpid,
            getrandom,
        }
    }

    /// In a pair, by these numbers of fewer and more pairs.
    fn of_a_pair(few: Self, many: Self) -> Self {
        let of_a_pair = |few: f64, many: f64| (many - few) / (MANY - FEW) as f64;
        Self {
            send: of_a_pair(few.send, many.send),
            recv: of_a_pair(few.recv, many.recv),
            epoll_wait: of_a_pair(few.epoll_wait, many.epoll_wait),
            getpid: of_a_pair(few.getpid, many.getpid),
            getrandom: of_a_pair(few.getrandom, many.getrandom),
        }
    }

    fn sum(self) -> f64 {
        self.send + self.recv + self.epoll_wait + self.getpid + self.getrandom
    }
}

/// The system calls of a process that makes so many pairs.
fn counted(servers: &Servers, pairs: u64, releases: bool) -> Calls {
    let shim = Shim::calls();
    let mut command = test_process("locks::system_calls::as_a_program_that_locks");
    command
        .envs(shim.environment(CALLS))
        .env(URLS, servers.urls().join(" "))
        .env(PAIRS, pairs.to_string())
        .env(RELEASES, releases.to_string());
    succeed(&mut command);
    let text = fs::read_to_string(shim.orders()).expect("the shim writes it at the end");
    Calls::parse(&text)
}

/// The code of that program. Does nothing without the environment variables.
#[test]
fn as_a_program_that_locks() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let variable = |name| env::var(name).expect("it is given");
    let pairs: u64 = variable(PAIRS).parse().expect("a number");
    let releases: bool = variable(RELEASES).parse().expect("true or false");
    let client = with_long_timeout(urls.split(' '));
    let client = connected(client.build().expect("the settings are good"));
    for _ in 0..pairs {
        let guard = take(&client, "orders:42", LONG);
        if releases {
            assert_eq!(guard.release(), Ok(()));
        }
    }
}

/// Expects at most so many in a pair.
#[track_caller]
fn expect(releases: bool, most: f64) {
    let servers = Servers::start(1);
    let measure = || {
        let few = counted(&servers, FEW, releases);
        let many = counted(&servers, MANY, releases);
        Calls::of_a_pair(few, many)
    };
    let mut calls = measure();
    for _ in 1..RUNS {
        if calls.sum() > most {
            calls = measure();
        }
    }
    assert!(calls.sum() <= most, "{}: {calls:?}", calls.sum());
    assert!(calls.send >= 2.0, "they are counted: {calls:?}");
}

/// Two requests, for each of which the thread writes, sleeps and reads; a look at the process in
/// each call, and a token.
#[test]
fn acquiring_and_releasing_a_lock_takes_nine_system_calls_on_one_server() {
    expect(true, 9.2);
}

/// The same without the sleep and the read for the removal, whose reply is read with the next one.
/// It may come first and wake the thread.
#[test]
fn acquiring_and_dropping_a_lock_takes_seven_to_nine_system_calls_on_one_server() {
    expect(false, 9.2);
}
