//! Leaving a lock to its ttl: nothing is sent, and no client gets the lock before the ttl has
//! passed.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockGuard;
use support::eventually;
use support::journal::{names, recorded_client};
use support::locks::{
    BRIEF, LIMIT, LONG, all_nodes_client, gone, holders, pttl, take, with_long_timeout,
    without_restart_guard,
};
use support::queue::spawn_waiter;
use support::servers::Servers;

const TTL: Duration = Duration::from_secs(2);

#[test]
fn a_lock_that_is_left_stays_taken_until_its_ttl_has_passed() {
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let others = all_nodes_client(servers.urls());
    let asked = Instant::now();
    take(&client, "nightly", TTL).let_expire();
    // Dropping the client waits until its commands are written.
    drop(client);
    assert_eq!(holders(&servers, "nightly"), 3);
    assert!(others.try_lock("nightly", TTL).unwrap().is_none() || asked.elapsed() > TTL);

    let next = others.lock("nightly", TTL).unwrap();
    assert!(asked.elapsed() >= TTL, "the ttl had not passed: {:?}", asked.elapsed());
    drop(next);
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "acquired", "let_expire"]);
    assert!(events[2].validity > Duration::ZERO && events[2].validity < TTL);
}

#[test]
fn a_lock_that_is_left_is_not_extended_automatically_any_more() {
    let servers = Servers::start(3);
    let round = Duration::from_millis(500);
    let client = without_restart_guard(servers.urls())
        .node_timeout(round)
        .wait_for_all(true)
        .build()
        .unwrap();
    let guard = client.request("kept").ttl(TTL).keep_alive().lock().unwrap();
    thread::sleep(TTL);
    assert!(guard.ensure_held().is_ok(), "it is extended until it is left");
    guard.let_expire();
    assert_eq!(holders(&servers, "kept"), 3);
    assert!(eventually(LIMIT, || gone(&servers, "kept")));
}

#[test]
fn a_waiting_thread_gets_a_lock_that_was_left_from_the_nodes_after_its_ttl() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let asked = Instant::now();
    let guard = take(&client, "line", TTL);
    let waiting = {
        let client = client.clone();
        spawn_waiter(move || (client.lock("line", LONG).unwrap(), Instant::now()))
    };
    guard.let_expire();
    let (next, taken): (LockGuard, Instant) = waiting.join().unwrap();
    assert!(taken - asked >= TTL, "it was handed off: {:?}", taken - asked);
    assert!(taken - asked < LIMIT, "it waited for more than the ttl");
    drop(next);
}

#[test]
fn a_lock_that_was_lost_before_it_is_left_is_reported_as_lost() {
    let servers = Servers::start(1);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let guard = take(&client, "slow", BRIEF);
    assert!(eventually(LIMIT, || guard.remaining().is_zero()));
    guard.let_expire();
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "acquired", "lost", "let_expire"]);
    assert_eq!(events[3].validity, Duration::ZERO);
}

#[test]
fn leaving_lasts_as_long_as_the_last_extension() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "extended", Duration::from_secs(1));
    guard.extend(LONG).unwrap();
    guard.let_expire();
    thread::sleep(Duration::from_millis(1_200));
    assert!(pttl(&servers[0], "extended") > 10_000);
}
