//! A process that starts a program, and one that only forks.

mod children;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::getpid;
use rustix::thread::gettid;

use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, connected, gone, take};
use support::program::{end_with_parent, succeed, test_process};
use support::servers::Servers;
use support::shim::Shim;

/// The descriptors that a started program inherits from this one, besides the standard three.
fn inherited() -> BTreeSet<String> {
    let mut list = Command::new("ls");
    let output = list
        .args(["-l", "/proc/self/fd"])
        .stdin(Stdio::null())
        .output();
    let text = String::from_utf8_lossy(&output.expect("ls can be run").stdout).into_owned();
    let targets = text.lines().filter_map(|line| line.split_once(" -> "));
    targets
        .map(|(_, target)| target.to_owned())
        .filter(|it| it.starts_with("socket:"))
        .collect()
}

#[test]
fn a_program_that_is_started_inherits_no_connection_and_disturbs_none() {
    let before = inherited();
    let servers = Servers::start(3);
    let client = connected(all_nodes_client(servers.urls()));
    let mut guard = take(&client, "exec", LONG);
    assert_eq!(inherited(), before);
    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(()));
}

const URLS: &str = "REDLATCH_TEST_FORK_URLS";
const FORK: &str = "REDLATCH_FORK";

#[test]
fn a_forked_child_with_a_client_of_its_own_does_not_disturb_its_parent() {
    let servers = Servers::start(3);
    let shim = Shim::fork();
    let mut command = test_process("faults::forks::as_a_program_that_forks");
    command
        .envs(shim.environment(FORK))
        .env(URLS, servers.urls().join(" "));
    succeed(&mut command);
    assert!(
        ["parent", "child", "after"]
            .iter()
            .all(|name| gone(&servers, name))
    );
}

/// Forks this process with the [shim](Shim::fork), and returns whether this is the child.
fn fork() -> bool {
    let itself = getpid();
    let orders = PathBuf::from(env::var_os(FORK).expect("it is given"));
    let whole = orders.with_extension("whole");
    let number = gettid().as_raw_nonzero().to_string();
    fs::write(&whole, number).expect("the file can be written");
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
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let client = connected(all_nodes_client(urls.split(' ')));
    let mut guard = take(&client, "parent", LONG);
    let orders = PathBuf::from(env::var_os(FORK).expect("it is given"));
    let done = orders.with_extension("done");
    if fork() {
        // The child does not use the parent's guard and client, and never drops them.
        let own = all_nodes_client(urls.split(' '));
        assert!(own.try_lock("parent", LONG).unwrap().is_none());
        take(&own, "child", LONG).release().unwrap();
        fs::write(&done, "done").unwrap();
        // It keeps its copies of its parent's connections open until its parent has ended.
        loop {
            thread::sleep(Duration::from_secs(60));
        }
    }
    assert!(
        eventually(LIMIT, || done.exists()),
        "there is no child, or it has failed"
    );
    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(()));
    for _ in 0..20 {
        take(&client, "after", LONG).release().unwrap();
    }
}
