//! A forked child uses and drops the client and the guards that it has inherited. It gets errors
//! that they belong to its parent, and its parent is not affected.

mod started;
mod uses;

use std::env;
use std::fs;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use super::{FORK, URLS, fork};
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, connected, gone, take, without_restart_guard};
use support::program::{end_with_parent, succeed, test_process};
use support::servers::Servers;
use support::shim::Shim;
use support::transport::client_at;

const PARENT: &str = "faults::forks::children::as_a_parent";

/// What the child does, by the name in the environment.
const WAY: &str = "REDLATCH_TEST_FORK_WAY";

/// Runs this program on three servers, with a child that behaves in this way.
fn with_child(program: &str, way: &str) -> Servers {
    let servers = Servers::start(3);
    let shim = Shim::fork();
    let mut command = test_process(program);
    command
        .envs(shim.environment(FORK))
        .env(URLS, servers.urls().join(" "))
        .env(WAY, way);
    succeed(&mut command);
    servers
}

#[test]
fn a_guard_that_a_child_drops_stays_its_parents() {
    let servers = with_child(PARENT, "drop the guards");
    assert!(
        ["plain", "kept", "served"]
            .iter()
            .all(|name| gone(&servers, name))
    );
}

#[test]
fn a_client_that_a_child_drops_stays_its_parents() {
    with_child(PARENT, "drop all");
}

#[test]
fn a_child_that_ends_by_returning_leaves_its_parent_alone() {
    with_child(PARENT, "exit");
}

#[test]
fn a_child_gets_an_error_from_every_client_and_guard_that_it_inherited() {
    let servers = with_child(PARENT, "use all");
    assert!(gone(&servers, "new"));
}

/// The exit status of a successful child. Not zero: a child that panicked ends with zero, because
/// its only thread is not the main thread.
const WELL: i32 = 42;

/// The ttl of an automatically extended lock, with rounds short enough for it.
const KEPT: Duration = Duration::from_secs(6);

/// The code of that program. Does nothing without the environment variable.
#[test]
fn as_a_parent() {
    let (Ok(urls), Ok(way)) = (env::var(URLS), env::var(WAY)) else {
        return;
    };
    end_with_parent();
    let urls: Vec<&str> = urls.split(' ').collect();
    let client = connected(all_nodes_client(urls.iter().copied()));
    let keeper = without_restart_guard(urls.iter().copied())
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let keeper = connected(keeper);
    let served = without_restart_guard(urls.iter().copied())
        .node_timeout(LIMIT)
        .io_thread(true)
        .build()
        .unwrap();
    let served = connected(served);
    let mut plain = take(&client, "plain", LONG);
    let third = take(&served, "served", LONG);
    let kept = keeper
        .request("kept")
        .ttl(KEPT)
        .keep_alive()
        .lock()
        .unwrap();
    let losses = Arc::new(AtomicUsize::new(0));
    for guard in [&plain, &kept] {
        let losses = Arc::clone(&losses);
        let count = move |_| {
            losses.fetch_add(1, Ordering::SeqCst);
        };
        guard.on_lost(count).unwrap();
    }
    let before: Vec<_> = urls.iter().map(|url| identities(url)).collect();
    if fork() {
        match way.as_str() {
            "drop the guards" => drop((plain, kept, third)),
            "drop all" => drop((plain, kept, third, client, keeper, served)),
            "use all" => {
                uses::use_all(&[client, keeper, served], vec![kept, plain, third], &urls);
            }
            _ => {}
        }
        process::exit(WELL);
    }
    let forked = Instant::now();
    // While the child runs, and after it has ended.
    client
        .try_lock("meanwhile", LONG)
        .unwrap()
        .unwrap()
        .release()
        .unwrap();
    expect_child_to_succeed();
    assert_eq!((plain.ensure_held(), kept.ensure_held()), (Ok(()), Ok(())));
    plain.extend(LONG).unwrap();
    expect_keys(&urls);
    thread::sleep((KEPT + Duration::from_millis(500)).saturating_sub(forked.elapsed()));
    assert_eq!(kept.ensure_held(), Ok(()), "it is extended");
    let after: Vec<_> = urls.iter().map(|url| identities(url)).collect();
    assert_eq!(before, after, "no new connection was made");
    for guard in [plain, kept, third] {
        assert_eq!(guard.release(), Ok(()));
    }
    take(&served, "meanwhile", LONG).release().unwrap();
    assert_eq!(losses.load(Ordering::SeqCst), 0);
}

/// All three locks are on all servers.
fn expect_keys(urls: &[&str]) {
    for (url, key) in urls
        .iter()
        .flat_map(|url| ["plain", "kept", "served"].map(|key| (url, key)))
    {
        assert!(
            ask(url, &["PTTL", key]).integer() > 0,
            "{key} is gone from {url}"
        );
    }
}

/// The reply of the server at `url`.
fn ask(url: &str, args: &[&str]) -> Value {
    client_at(url).command(args)
}

/// The ids of the client's connections on the server at `url`.
fn identities(url: &str) -> Vec<String> {
    let list = ask(url, &["CLIENT", "LIST"]).text();
    let ours = list.lines().filter(|line| line.contains(" name=redlatch "));
    let ours: Vec<_> = ours
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    assert!(!ours.is_empty(), "{list}");
    ours
}

/// Waits for a child that this process has forked.
fn expect_child_to_succeed() {
    expect_child_to_end_with(WELL);
}

fn expect_child_to_end_with(expected: i32) {
    let mut ended = None;
    let is_over = eventually(LIMIT, || {
        ended = wait(WaitOptions::NOHANG).expect("there is a child");
        ended.is_some()
    });
    if !is_over {
        // It has this process's output open, which whoever runs this process reads to its end.
        kill_children();
        panic!("the child does not end");
    }
    let (_, status) = ended.expect("it has ended");
    assert_eq!(status.exit_status(), Some(expected), "{status:?}");
}

fn kill_children() {
    let threads = fs::read_dir("/proc/self/task").expect("this process has threads");
    for thread in threads {
        let children = thread.expect("it is listed").path().join("children");
        let children = fs::read_to_string(children).unwrap_or_default();
        for child in children.split_whitespace() {
            let child = child.parse().ok().and_then(Pid::from_raw);
            let _ = kill_process(child.expect("it is a process id"), Signal::KILL);
        }
    }
}
