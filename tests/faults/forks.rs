//! A process that starts others: by starting a program, or by fork alone.

mod children;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use redlatch::Released;
use rustix::process::getpid;
use rustix::thread::gettid;

use super::connected;
use super::support::eventually;
use super::support::locks::{LIMIT, LONG, gone, take, thorough};
use super::support::program::{again, end_with_parent, succeed};
use super::support::servers::Servers;
use super::support::shim::Shim;

/// What a program that is started by this one has open beyond its own three.
fn inherited() -> BTreeSet<String> {
    let mut list = Command::new("ls");
    let output = list.args(["-l", "/proc/self/fd"]).stdin(Stdio::null()).output();
    let text = String::from_utf8_lossy(&output.expect("ls can be run").stdout).into_owned();
    let targets = text.lines().filter_map(|line| line.split_once(" -> "));
    targets.map(|(_, target)| target.to_owned()).filter(|it| it.starts_with("socket:")).collect()
}

#[test]
fn a_program_that_is_started_inherits_no_connection_and_disturbs_none() {
    let before = inherited();
    let servers = Servers::start(3);
    let client = connected(thorough(servers.urls()));
    let mut guard = take(&client, "exec", LONG);
    assert_eq!(inherited(), before);
    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(Released::InTime));
}

const URLS: &str = "REDLATCH_TEST_FORK_URLS";
const FORK: &str = "REDLATCH_FORK";

#[test]
fn a_forked_child_with_a_client_of_its_own_does_not_disturb_its_parent() {
    let servers = Servers::start(3);
    let shim = Shim::fork();
    let mut command = again("forks::as_a_program_that_forks");
    command.envs(shim.environment(FORK)).env(URLS, servers.urls().join(" "));
    succeed(&mut command);
    assert!(["parent", "child", "after"].iter().all(|name| gone(&servers, name)));
}

/// Forks this process, by the [shim](Shim::fork), and says whether this is the child.
fn fork() -> bool {
    let itself = getpid();
    let orders = PathBuf::from(env::var_os(FORK).expect("it is given"));
    let whole = orders.with_extension("whole");
    let number = gettid().as_raw_nonzero().to_string();
    fs::write(&whole, number).expect("the file can be written");
    // Nobody reads half of it.
    fs::rename(&whole, &orders).expect("the file can be renamed");
    thread::yield_now();
    let is_child = getpid() != itself;
    assert!(is_child || !orders.exists(), "the shim has not forked");
    is_child
}

/// What that program does. By itself, without the variable, it has nothing to do.
#[test]
fn as_a_program_that_forks() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let client = connected(thorough(urls.split(' ')));
    let mut guard = take(&client, "parent", LONG);
    let orders = PathBuf::from(env::var_os(FORK).expect("it is given"));
    let done = orders.with_extension("done");
    if fork() {
        // The child leaves what it has of its parent alone, guard and client, and never drops it.
        let own = thorough(urls.split(' '));
        assert!(own.try_lock("parent", LONG).unwrap().is_none());
        let _ = take(&own, "child", LONG).release().unwrap();
        fs::write(&done, "done").unwrap();
        // It keeps its copies of its parent's connections open until its parent is gone.
        loop {
            thread::sleep(Duration::from_secs(60));
        }
    }
    assert!(eventually(LIMIT, || done.exists()), "there is no child, or it has failed");
    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(Released::InTime));
    for _ in 0..20 {
        let _ = take(&client, "after", LONG).release().unwrap();
    }
}
