//! A forked child uses and drops what it has inherited, the client and its guards. It is told that
//! they are its parent's, and its parent notices nothing.

mod uses;

use std::env;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::Released;
use rustix::process::{WaitOptions, wait};

use super::{FORK, URLS, fork};
use crate::connected;
use crate::support::cli::{Client, Value};
use crate::support::eventually;
use crate::support::locks::{LIMIT, LONG, fresh, gone, take, thorough};
use crate::support::program::{again, end_with_parent, succeed};
use crate::support::servers::Servers;
use crate::support::shim::Shim;

const PARENT: &str = "forks::children::as_a_parent";

/// What the child does, by the name that the program is told.
const WAY: &str = "REDLATCH_TEST_FORK_WAY";

/// Runs this program on three servers, with a child that behaves in this way.
fn with_child(program: &str, way: &str) -> Servers {
    let servers = Servers::start(3);
    let shim = Shim::fork();
    let mut command = again(program);
    command.envs(shim.environment(FORK)).env(URLS, servers.urls().join(" ")).env(WAY, way);
    succeed(&mut command);
    servers
}

#[test]
fn a_guard_that_a_child_drops_stays_its_parents() {
    let servers = with_child(PARENT, "drop the guards");
    assert!(["plain", "kept", "served"].iter().all(|name| gone(&servers, name)));
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
fn a_child_is_told_that_what_it_inherited_is_its_parents() {
    let servers = with_child(PARENT, "use all");
    assert!(gone(&servers, "new"));
}

/// What a child ends with that has done all of it. Not zero: with that ends one that has panicked,
/// as its only thread is not the one that a process begins in.
const WELL: i32 = 42;

/// The ttl of a lock that is kept alive, with rounds short enough for it.
const KEPT: Duration = Duration::from_secs(6);

/// What that program does. By itself, without the variable, it has nothing to do.
#[test]
fn as_a_parent() {
    let (Ok(urls), Ok(way)) = (env::var(URLS), env::var(WAY)) else { return };
    end_with_parent();
    let urls: Vec<&str> = urls.split(' ').collect();
    let client = connected(thorough(urls.iter().copied()));
    let keeper = fresh(urls.iter().copied()).node_timeout(Duration::from_secs(1)).build().unwrap();
    let keeper = connected(keeper);
    let served = fresh(urls.iter().copied()).node_timeout(LIMIT).io_thread(true).build().unwrap();
    let served = connected(served);
    let mut plain = take(&client, "plain", LONG);
    let third = take(&served, "served", LONG);
    let kept = keeper.request("kept").ttl(KEPT).keep_alive().acquire().unwrap().unwrap();
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
    // While the child is at it, and when it is gone.
    let _ = client.try_lock("meanwhile", LONG).unwrap().unwrap().release().unwrap();
    expect_child_to_succeed();
    assert_eq!((plain.ensure_held(), kept.ensure_held()), (Ok(()), Ok(())));
    plain.extend(LONG).unwrap();
    for (url, key) in urls.iter().flat_map(|url| ["plain", "kept", "served"].map(|key| (url, key)))
    {
        assert!(ask(url, &["PTTL", key]).integer() > 0, "{key} is gone from {url}");
    }
    thread::sleep((KEPT + Duration::from_millis(500)).saturating_sub(forked.elapsed()));
    assert_eq!(kept.ensure_held(), Ok(()), "it is renewed");
    let after: Vec<_> = urls.iter().map(|url| identities(url)).collect();
    assert_eq!(before, after, "no connection was made anew");
    for guard in [plain, kept, third] {
        assert_eq!(guard.release(), Ok(Released::InTime));
    }
    let _ = take(&served, "meanwhile", LONG).release().unwrap();
    assert_eq!(losses.load(Ordering::SeqCst), 0);
}

/// What the server at `url` answers.
fn ask(url: &str, args: &[&str]) -> Value {
    let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
    Client::connect(port.expect("a port")).expect("a running server accepts").command(args)
}

/// The connections of our name, by what the server at `url` calls them.
fn identities(url: &str) -> Vec<String> {
    let list = ask(url, &["CLIENT", "LIST"]).text();
    let ours = list.lines().filter(|line| line.contains(" name=redlatch "));
    let ours: Vec<_> = ours.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
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
    assert!(is_over, "the child does not come to an end");
    let (_, status) = ended.expect("it has ended");
    assert_eq!(status.exit_status(), Some(expected), "{status:?}");
}
