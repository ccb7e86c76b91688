//! The nodes' queue while nodes stop, lose their data or forget connections.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::time::{Duration, Instant};

use redlatch::{Builder, Error, LockClient};
use support::eventually;
use support::locks::{LIMIT, LONG, pause, pttl, resume, take};
use support::queue::{finish, spawn_waiter};
use support::redis::Server;
use support::servers::Servers;
use support::waiters::{BY_PUSH, Line, await_keys, await_queued, holder, keys, pushed, with_lease};

/// A lease that allows for a busy machine, and is short for these tests.
const LEASE: Duration = Duration::from_secs(2);

fn client<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> LockClient {
    quick(urls).build().expect("the settings are good")
}

/// Silent nodes are not waited for long.
fn quick<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Builder {
    with_lease(urls, LEASE).node_timeout(Duration::from_millis(500))
}

#[test]
fn a_stopped_minority_changes_neither_the_order_nor_the_pace() {
    let servers = Servers::start(5);
    let held = take(&holder(servers.urls()), "name", LONG);
    let mut line = Line::before("name");
    (0..3).for_each(|_| line.join(&servers, pushed(servers.urls())));
    pause(&servers, 2);
    (0..2).for_each(|_| line.join(&servers[2..], pushed(servers.urls())));
    let start = Instant::now();
    assert_eq!(held.release(), Ok(()));
    let took = line.end() - start;
    resume(&servers, 2);
    assert!(took < BY_PUSH, "{took:?}");
    await_keys(&servers, &[]);
}

#[test]
fn a_minority_that_stops_and_runs_by_turns_changes_no_order() {
    let servers = Servers::start(5);
    let held = take(&holder(servers.urls()), "name", LONG);
    let mut line = Line::before("name");
    for _ in 0..6 {
        let client = client(servers.urls());
        line.join_with(&servers, move |work| {
            let guard = client.lock("name", LONG).unwrap();
            std::thread::sleep(Duration::from_millis(60));
            work(&guard);
        });
    }
    drop(held);
    for round in 0..6 {
        let stopped = [&servers[round % 5], &servers[(round + 2) % 5]];
        stopped.iter().for_each(|server| server.pause());
        std::thread::sleep(Duration::from_millis(70));
        stopped.iter().for_each(|server| server.resume());
    }
    line.end();
    await_keys(&servers, &[]);
}

/// Four wait on five nodes, two of which restart empty. `then` is what happens before the release.
fn restart_minority(then: impl FnOnce(&Servers)) {
    let mut servers = Servers::start(5);
    let held = take(&holder(servers.urls()), "name", LONG);
    let mut line = Line::before("name");
    (0..4).for_each(|_| line.join(&servers, client(servers.urls())));
    servers[..2].iter_mut().for_each(Server::restart);
    then(&servers);
    drop(held);
    line.end();
    await_keys(&servers, &[]);
}

#[test]
fn a_minority_that_loses_its_queue_gets_it_back_in_the_same_order() {
    // The first waiters renew their entries soon.
    restart_minority(|servers| await_queued(servers, "name", 4));
}

#[test]
fn a_minority_without_its_queue_changes_no_order() {
    restart_minority(|_| {});
}

/// With the restart guard on, and servers that have run for longer than `max_ttl`.
fn guarded(servers: &Servers, lease: Duration, max_ttl: Duration) -> Vec<LockClient> {
    let builder = quick(servers.urls()).waiter_lease(lease);
    let builder = builder.restart_guard(true).max_ttl(max_ttl);
    let clients: Vec<_> = (0..5).map(|_| builder.clone().build().unwrap()).collect();
    let ttl = Duration::from_secs(1);
    assert_eq!(clients[0].lock("first", ttl).unwrap().release(), Ok(()));
    clients
}

const TTL: Duration = Duration::from_millis(1_900);

fn wait_guarded(line: &mut Line, servers: &Servers, clients: Vec<LockClient>) {
    // The holder has queued as well, while the servers had just been started.
    await_queued(servers, "name", 0);
    for client in clients {
        line.join_with(servers, move |work| {
            let guard = client.lock("name", TTL).expect("it is served in the end");
            work(&guard);
        });
    }
}

#[test]
fn a_minority_in_quarantine_changes_no_order() {
    let mut servers = Servers::start(5);
    // A client that a busy machine stops for as long as its lease loses its place.
    let mut clients = guarded(&servers, 3 * LEASE, Duration::from_secs(2));
    let held = clients
        .pop()
        .unwrap()
        .request("name")
        .ttl(TTL)
        .keep_alive()
        .lock()
        .unwrap();
    let mut line = Line::before("name");
    wait_guarded(&mut line, &servers, clients);
    servers[..2].iter_mut().for_each(Server::restart);
    drop(held);
    line.end();
    await_keys(&servers, &[]);
}

#[test]
fn a_majority_in_quarantine_serves_in_order_after_it() {
    let mut servers = Servers::start(5);
    // Time enough for each waiter to connect again and to renew its entry, on a busy machine more
    // than once.
    let max_ttl = Duration::from_secs(14);
    let mut clients = guarded(&servers, LEASE, max_ttl);
    let held = clients
        .pop()
        .unwrap()
        .request("name")
        .ttl(TTL)
        .keep_alive()
        .lock()
        .unwrap();
    let mut line = Line::before("name");
    wait_guarded(&mut line, &servers, clients);
    let start = Instant::now();
    servers[..3].iter_mut().for_each(Server::restart);
    await_queued(&servers[..3], "name", 4);
    drop(held);
    let served = line.end() - start;
    // Servers tell their uptime in whole seconds.
    assert!(served + Duration::from_secs(1) >= max_ttl, "{served:?}");
    assert!(served < max_ttl + LIMIT / 2, "{served:?}");
    await_keys(&servers, &[]);
}

#[test]
fn a_reservation_lasts_until_the_end_of_a_quarantine() {
    let servers = Servers::start(3);
    let builder = quick(servers.urls()).restart_guard(true).max_ttl(LIMIT * 2);
    let waiters = [1, 2].map(|count| {
        let client = builder.clone().build().unwrap();
        let waiting = client.clone();
        let thread = spawn_waiter(move || waiting.lock("name", TTL).map(drop));
        await_queued(&servers, "name", count);
        (client, thread)
    });
    // A claim has 1.5 s, and nobody can claim before the quarantine ends.
    let lasts = || servers.iter().all(|server| pttl(server, "name") > 15_000);
    assert!(eventually(LIMIT, lasts));
    for (client, thread) in waiters {
        client.cancel_token().cancel();
        assert_eq!(finish(thread), Err(Error::Cancelled));
    }
    await_keys(&servers, &[]);
}

#[test]
fn waiters_whose_connections_are_closed_are_served_after_their_renewal() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    let mut line = Line::before("name");
    // A release waits for all nodes, also for one that is just being connected again.
    let builder = || {
        quick(servers.urls())
            .client_name("waiter")
            .wait_for_all(true)
    };
    let waiters = [0; 3].map(|_| builder().build().unwrap());
    waiters
        .iter()
        .for_each(|client| line.join(&servers, client.clone()));
    for server in servers.iter() {
        let list = server.command(&["CLIENT", "LIST"]).text();
        let mut closed = 0;
        for line in list.lines().filter(|line| line.contains(" name=waiter ")) {
            let id = line.split([' ', '=']).nth(1).expect("an id");
            server.command(&["CLIENT", "KILL", "ID", id]);
            closed += 1;
        }
        assert_eq!(closed, 3);
    }
    let start = Instant::now();
    drop(held);
    // The release may come before a waiter listens again. Then that waiter is skipped.
    let served = line.end_in_any_order() - start;
    assert!(served < LEASE + BY_PUSH, "{served:?}");
    // A removal for a node that is not connected is sent with the next call of its client.
    let is_removed = || {
        waiters.iter().for_each(|client| drop(client.nodes()));
        servers.iter().all(|server| keys(server).is_empty())
    };
    assert!(eventually(LIMIT, is_removed));
}

#[test]
fn nodes_that_are_down_are_reported_to_a_thread_behind_one_that_waits_in_their_queue() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    let client = client(servers.urls());
    let first = client.clone();
    let waiting = spawn_waiter(move || first.lock("name", LONG).map(drop));
    await_queued(&servers, "name", 1);
    // As long as they answer, that another client holds the lock is all that there is to say.
    let behind = || client.request("name").ttl(LONG).try_lock_for(LEASE * 2);
    assert!(behind().unwrap().is_none());
    pause(&servers, 2);
    let result = behind();
    resume(&servers, 2);
    assert!(matches!(result, Err(Error::NoQuorum(_))), "{result:?}");
    client.cancel_token().cancel();
    assert_eq!(finish(waiting), Err(Error::Cancelled));
    drop(held);
}
