//! Waiting threads when something fails: leaked guards, nodes that do not reply, missing keys. No
//! thread waits longer than a ttl, and no key stays behind.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard};
use support::cli::Value;
use support::eventually;
use support::locks::{
    BRIEF, LIMIT, LONG, all_nodes_client, calls, gone, holders, pause, resume, take, value,
    with_long_timeout, without_restart_guard,
};
use support::proxy::{Mode, Proxy};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;

type Attempt = Result<Option<LockGuard>, Error>;

/// A thread that waits for the lock for at most `wait`.
#[track_caller]
fn stand_for(client: &LockClient, name: &'static str, wait: Duration) -> JoinHandle<Attempt> {
    let client = client.clone();
    spawn_waiter(move || client.request(name).ttl(LONG).try_lock_for(wait))
}

/// A thread that waits for the lock without limit, and gets it.
#[track_caller]
fn next_in_line(client: &LockClient, name: &'static str) -> JoinHandle<LockGuard> {
    let client = client.clone();
    spawn_waiter(move || client.lock(name, LONG).expect("it is got in the end"))
}

/// Acquires and releases locks until the client has a connection to each node and each node knows
/// all scripts.
#[track_caller]
fn warm_up(client: &LockClient) {
    let guard = take(client, "warm-up", LONG);
    let next = next_in_line(client, "warm-up");
    drop(guard);
    drop(finish(next).release());
    assert!(client.nodes().iter().all(|node| node.is_connected));
}

#[test]
fn a_waiter_that_times_out_leaves_the_queue_and_the_next_gets_the_lock() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "deadline", LONG);
    let start = Instant::now();
    let impatient = stand_for(&client, "deadline", Duration::from_millis(100));
    let next = stand_for(&client, "deadline", LONG);
    assert!(finish(impatient).unwrap().is_none());
    assert!(start.elapsed() >= Duration::from_millis(100));
    assert!(!next.is_finished());
    let settings = calls(&servers[0], "set");
    drop(guard);
    assert!(finish(next).unwrap().is_some());
    assert_eq!(
        calls(&servers[0], "set") - settings,
        1,
        "it was handed off to the only waiter"
    );
}

#[test]
fn a_timeout_at_the_moment_of_a_handoff_loses_no_lock() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let is_inside = AtomicBool::new(false);
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..8 {
            let client = &client;
            let is_inside = &is_inside;
            let taken = &taken;
            scope.spawn(move || {
                let mut random: u64 = thread + 1;
                for _ in 0..150 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let wait = Duration::from_micros((random >> 33) % 4_000);
                    let hold = Duration::from_micros((random >> 40) % 400);
                    // Some have less time than the nodes need to reply.
                    let attempt = client.request("stress").ttl(LONG).try_lock_for(wait);
                    let Ok(Some(guard)) = attempt else { continue };
                    assert!(!is_inside.swap(true, Ordering::SeqCst), "two at once");
                    thread::sleep(hold);
                    assert!(is_inside.swap(false, Ordering::SeqCst));
                    taken.fetch_add(1, Ordering::SeqCst);
                    if random % 2 == 0 {
                        drop(guard);
                    } else {
                        drop(guard.release());
                    }
                }
            });
        }
    });
    assert!(taken.into_inner() > 0);
    assert!(gone(&servers, "stress"));
    let other = all_nodes_client(servers.urls());
    assert!(take(&other, "stress", LONG).release().is_ok());
    assert!(take(&client, "stress", LONG).release().is_ok());
}

#[test]
fn a_leaked_guard_blocks_waiters_for_its_ttl_only() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "leaked", BRIEF);
    let until = Instant::now() + guard.remaining();
    let impatient = stand_for(&client, "leaked", Duration::from_millis(50));
    let next = next_in_line(&client, "leaked");
    let last = next_in_line(&client, "leaked");
    mem::forget(guard);
    let guard = finish(next);
    assert!(Instant::now() >= until);
    assert!(finish(impatient).unwrap().is_none());
    // Then handoffs work as before.
    drop(guard);
    drop(finish(last));
    assert!(gone(&servers, "leaked"));
}

#[test]
fn a_thread_that_panics_hands_the_lock_off() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "panic", LONG);
    let next = next_in_line(&client, "panic");
    let panicking = thread::spawn(move || {
        let _held = guard;
        panic!("on purpose");
    });
    assert!(panicking.join().is_err());
    drop(finish(next));
    assert!(gone(&servers, "panic"));
}

#[test]
fn waiters_behind_a_thread_without_replies_all_report_no_quorum() {
    let mut servers = Servers::start(3);
    let client = without_restart_guard(servers.urls())
        .node_timeout(Duration::from_millis(200))
        .build()
        .unwrap();
    warm_up(&client);
    servers[1].kill();
    servers[2].kill();
    let waits = [2_500, 1_500, 700, 1_500, 100, 30];
    let wait = |millis| stand_for(&client, "down", Duration::from_millis(millis));
    let threads: Vec<_> = waits.into_iter().map(wait).collect();
    for (thread, wait) in threads.into_iter().zip(waits) {
        let attempt = finish(thread);
        assert!(
            matches!(attempt, Err(Error::NoQuorum(_))),
            "{wait}: {attempt:?}"
        );
    }
    servers[1].restart();
    assert!(eventually(LIMIT, || matches!(
        client.try_lock("down", LONG),
        Ok(Some(_))
    )));
}

#[test]
fn a_handoff_works_with_a_stopped_node() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    warm_up(&client);
    let guard = take(&client, "stopped", LONG);
    assert!(eventually(LIMIT, || holders(&servers, "stopped") == 3));
    pause(&servers, 1);
    let threads: Vec<_> = (0..4).map(|_| next_in_line(&client, "stopped")).collect();
    drop(guard);
    for thread in threads {
        drop(finish(thread));
    }
    resume(&servers, 1);
    assert!(gone(&servers, "stopped"));
}

#[test]
fn a_paused_node_that_forgot_the_scripts_keeps_no_key() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    warm_up(&client);
    let guard = take(&client, "forgotten", LONG);
    let next = next_in_line(&client, "forgotten");
    assert!(eventually(LIMIT, || holders(&servers, "forgotten") == 3));
    assert_eq!(servers[0].command(&["SCRIPT", "FLUSH"]), Value::ok());
    pause(&servers, 1);
    drop(guard);
    // The node gets the digest of a script that it does not know, and then the removal.
    drop(finish(next));
    resume(&servers, 1);
    assert!(
        client.nodes().iter().all(|node| node.is_connected),
        "the connections are good"
    );
    assert!(gone(&servers, "forgotten"));
}

/// One of the nodes is cut off for some handoffs, or only for a moment before the first. Then the
/// last holder releases, and no node keeps a key.
fn cut_off(handoffs: usize, is_back: bool) {
    let servers = Servers::start(3);
    let proxy = Proxy::start(servers[0].port());
    let mut urls = servers.urls();
    urls[0] = proxy.url();
    let client = with_long_timeout(urls)
        .build()
        .expect("the settings are good");
    warm_up(&client);
    let mut guard = take(&client, "cut", LONG);
    assert!(eventually(LIMIT, || holders(&servers, "cut") == 3));
    let threads: Vec<_> = (0..handoffs)
        .map(|_| next_in_line(&client, "cut"))
        .collect();
    proxy.set(Mode::Refuse);
    if is_back {
        proxy.set(Mode::Pass);
    }
    for thread in threads {
        drop(guard);
        guard = finish(thread);
    }
    proxy.set(Mode::Pass);
    drop(guard);
    let is_gone = || {
        drop(client.try_lock("traffic", LONG));
        holders(&servers, "cut") == 0
    };
    assert!(eventually(LIMIT, is_gone), "{handoffs} {is_back}");
}

#[test]
fn a_node_that_was_cut_off_during_handoffs_keeps_no_key() {
    for handoffs in [1, 3] {
        cut_off(handoffs, true);
        cut_off(handoffs, false);
    }
}

#[test]
fn a_handoff_that_fails_leaves_no_key() {
    let servers = Servers::start(3);
    let client = without_restart_guard(servers.urls())
        .node_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    warm_up(&client);
    let guard = take(&client, "failed", LONG);
    let next = stand_for(&client, "failed", Duration::from_secs(2));
    assert!(eventually(LIMIT, || holders(&servers, "failed") == 3));
    pause(&servers, 2);
    drop(guard);
    let attempt = finish(next);
    assert!(matches!(attempt, Err(Error::NoQuorum(_))), "{attempt:?}");
    assert_eq!(value(&servers[2], "failed"), None);
    resume(&servers, 2);
    let is_gone = || {
        drop(client.try_lock("traffic", LONG));
        holders(&servers, "failed") == 0
    };
    assert!(eventually(LIMIT, is_gone));
}

#[test]
fn a_handoff_respects_foreign_keys_and_sets_missing_keys() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    // How many nodes have lost the key, whether to another client, and whether the handoff
    // succeeds.
    let table = [
        (1, true, true),
        (2, true, false),
        (1, false, true),
        (3, false, true),
    ];
    for (count, is_stolen, is_got) in table {
        let guard = take(&client, "stolen", LONG);
        let next = stand_for(&client, "stolen", Duration::from_secs(1));
        for server in &servers[..count] {
            server.command(&["DEL", "stolen"]);
            if is_stolen {
                server.command(&["SET", "stolen", "another's", "PX", "60000"]);
            }
        }
        drop(guard);
        let got = finish(next).unwrap();
        assert_eq!(got.is_some(), is_got, "{count} {is_stolen}");
        if got.is_some() && !is_stolen {
            assert_eq!(holders(&servers, "stolen"), 3);
        }
        drop(got);
        // All earlier replies have come when this one has.
        assert!(client.nodes().iter().all(|node| node.is_connected));
        for server in &servers[..count] {
            let left = value(server, "stolen");
            assert_eq!(left.as_deref(), is_stolen.then_some(&b"another's"[..]));
            server.command(&["DEL", "stolen"]);
        }
        assert!(gone(&servers, "stolen"));
    }
}

#[test]
fn clones_share_one_wait_queue_and_guards_can_move_to_other_threads() {
    let servers = Servers::start(3);
    let client = Arc::new(all_nodes_client(servers.urls()));
    let guard = take(&client, "moved", LONG);
    let next = next_in_line(&LockClient::clone(&client), "moved");
    let settings = calls(&servers[0], "set");
    finish(thread::spawn(move || drop(guard)));
    let guard = finish(next);
    assert_eq!(calls(&servers[0], "set") - settings, 1);
    assert_eq!(calls(&servers[0], "del"), 0, "it was handed off");
    drop(guard);
}
