//! A lock that is held lies on every node that can be reached, and a new client reaches nodes that
//! are far away.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use support::eventually;
use support::locks::{
    LIMIT, LONG, connected, gone, holders, pause, take, value, without_restart_guard,
};
use support::proxy::{Mode, Proxy, proxied};
use support::servers::Servers;
use support::waiters::await_queued;

/// How long a lock is held before its nodes are counted. The holder does nothing meanwhile.
const HOLD: Duration = Duration::from_millis(100);

fn delayed(each_way: Duration) -> Mode {
    Mode::Delay {
        to_server: each_way,
        to_client: each_way,
    }
}

fn client(urls: &[String]) -> LockClient {
    without_restart_guard(urls)
        .build()
        .expect("the settings are good")
}

/// Its rounds, and what is a part of them, do not end too early on a busy machine.
fn slow_client(urls: &[String]) -> LockClient {
    let settings = without_restart_guard(urls).node_timeout(Duration::from_secs(1));
    settings.build().expect("the settings are good")
}

/// How many of this many first locks of new clients lie on all servers.
fn first_locks(servers: &Servers, urls: &[String], count: usize) -> usize {
    let is_everywhere = |index: &usize| {
        let client = slow_client(urls);
        let name = format!("first {index}");
        let lock = take(&client, &name, LONG);
        thread::sleep(HOLD);
        let holders = holders(servers, &name);
        drop(lock);
        holders == servers.len()
    };
    (0..count).filter(is_everywhere).count()
}

#[test]
fn the_first_lock_of_a_client_lies_on_all_nodes() {
    let servers = Servers::start(3);
    let count = first_locks(&servers, &servers.urls(), 20);
    assert!(count >= 18, "{count} of 20");
}

#[test]
fn the_first_lock_of_a_client_lies_on_a_node_that_is_farther_away() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    proxies[2].set(delayed(Duration::from_micros(500)));
    let count = first_locks(&servers, &urls, 20);
    assert!(count >= 18, "{count} of 20");
}

/// Takes the lock in turn after a holder whose link to the last node is slow. How many of so many
/// locks lie on all nodes, while the new holder does nothing.
fn handoffs(count: usize) -> usize {
    let servers = Servers::start(3);
    let (proxies, slow) = proxied(&servers);
    let holder = connected(slow_client(&slow));
    let waiter = connected(slow_client(&servers.urls()));
    proxies[2].set(delayed(Duration::from_millis(5)));
    let handoff = |index: usize| -> LockGuard {
        let name = format!("handoff {index}");
        let lock = take(&holder, &name, LONG);
        assert!(eventually(LIMIT, || holders(&servers, &name) == 3));
        let waiter = waiter.clone();
        let other = name.clone();
        let waiting = thread::spawn(move || waiter.lock(other, LONG).expect("its turn comes"));
        await_queued(&servers, &name, 1);
        assert!(lock.release().is_ok(), "a majority answers");
        waiting.join().expect("it got the lock")
    };
    let is_everywhere = |index: &usize| {
        let lock = handoff(*index);
        thread::sleep(HOLD);
        let name = format!("handoff {index}");
        let values: Vec<_> = servers.iter().map(|server| value(server, &name)).collect();
        drop(lock);
        // A reservation is longer than a token.
        values
            .iter()
            .all(|value| value.as_ref().is_some_and(|value| value.len() == 20))
            && values.windows(2).all(|pair| pair[0] == pair[1])
    };
    (0..count).filter(is_everywhere).count()
}

#[test]
fn a_lock_that_is_handed_over_lies_on_a_node_where_the_release_arrives_later() {
    support::needs!(Tracking);
    let count = handoffs(20);
    assert!(count >= 18, "{count} of 20");
}

/// Over links with this round trip, and default settings but for `node_timeout`.
fn cold(round_trip: u64, node_timeout: u64) {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let mode = delayed(Duration::from_millis(round_trip / 2));
    proxies.iter().for_each(|proxy: &Proxy| proxy.set(mode));
    let client = || {
        let settings = without_restart_guard(&urls);
        let settings = settings.node_timeout(Duration::from_millis(node_timeout));
        settings.build().expect("the settings are good")
    };
    for index in 0..3 {
        // With the client, what a node has not answered yet would end a round later.
        let first = client();
        drop(take(&first, format!("cold {index}"), LONG));
        let nodes = client().nodes();
        assert!(
            nodes
                .iter()
                .all(|node| node.is_connected && node.round_trip.is_some()),
            "{nodes:?}"
        );
        let found = client().inspect(format!("cold {index}"));
        assert!(found.is_ok(), "{found:?}");
        assert!(gone(&servers, format!("cold {index}")));
    }
}

#[test]
fn a_new_client_reaches_nodes_that_take_several_rounds_to_connect() {
    cold(30, 50);
    cold(150, 250);
}

#[test]
fn a_new_client_reaches_nodes_that_a_round_is_too_short_for() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    proxies
        .iter()
        .for_each(|proxy| proxy.set(delayed(Duration::from_millis(75))));
    let lock = take(&client(&urls), "far", LONG);
    assert!(lock.remaining() > LONG / 2);
    assert_eq!(
        client(&urls)
            .nodes()
            .iter()
            .filter(|node| node.is_connected)
            .count(),
        3
    );
}

#[test]
fn a_node_that_never_answers_delays_no_new_client_beyond_a_round() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let connecting = Duration::from_secs(60);
    let client = || {
        let settings = without_restart_guard(&urls).node_timeout(Duration::from_secs(1));
        settings
            .connect_timeout(connecting)
            .build()
            .expect("the settings are good")
    };
    for mode in [Mode::Vanish, Mode::Refuse] {
        proxies[2].set(mode);
        let start = Instant::now();
        drop(take(&client(), format!("{mode:?}"), LONG));
        assert_eq!(
            client()
                .nodes()
                .iter()
                .filter(|node| node.is_connected)
                .count(),
            2
        );
        // Others hold it.
        let lock = take(&client(), format!("{mode:?} held"), LONG);
        assert!(
            client()
                .try_lock(format!("{mode:?} held"), LONG)
                .is_ok_and(|it| it.is_none())
        );
        drop(lock);
        assert!(
            start.elapsed() < connecting / 2,
            "{mode:?}: {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn the_callers_deadline_ends_the_first_round_too() {
    let servers = Servers::start(3);
    pause(&servers, 3);
    let connecting = Duration::from_secs(60);
    let settings = without_restart_guard(servers.urls()).connect_timeout(connecting);
    let client = settings.build().expect("the settings are good");
    let start = Instant::now();
    let taken = client
        .request("name")
        .ttl(LONG)
        .try_lock_for(Duration::from_millis(100));
    assert!(
        taken.is_err() && start.elapsed() < connecting / 2,
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_node_that_connects_after_the_lock_was_granted_gets_it_with_the_next_call() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    proxies[2].set(delayed(Duration::from_millis(100)));
    let client = client(&urls);
    let lock = take(&client, "late", LONG);
    assert!(eventually(LIMIT, || {
        drop(client.nodes());
        holders(&servers, "late") == 3
    }));
    assert!(lock.release().is_ok() && gone(&servers, "late"));
}
