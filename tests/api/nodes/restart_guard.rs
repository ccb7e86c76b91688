//! The restart guard: grants of a node that was started recently do not count.
//!
//! The tests use real servers, which lose their keys in a restart, and embedded nodes where a test
//! would take long, because these can report any uptime.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::embedded::Nodes;
use redlatch::error::NodeAnswer;
use redlatch::{Error, LockClient, NodeError, NodeStatus};
use support::capability::Capability;
use support::eventually;
use support::fencing::scripts;
use support::locks::{
    LIMIT, LONG, calls, connected, gone, holders, idle, take, value, with_long_timeout,
};
use support::queue::finish;
use support::servers::Servers;
use support::transport::trusting;

const MAX_TTL: Duration = Duration::from_secs(60);

fn guarded(urls: Vec<String>, max_ttl: Duration) -> LockClient {
    let builder = with_long_timeout(urls).restart_guard(true).max_ttl(max_ttl);
    builder
        .wait_for_all(true)
        .build()
        .expect("the settings are good")
}

/// The remaining quarantine of each node, as the client reports it.
fn quarantines(client: &LockClient) -> Vec<Option<Duration>> {
    client
        .nodes()
        .iter()
        .map(|node: &NodeStatus| node.quarantine)
        .collect()
}

/// Nodes with a long uptime, and a client with the default settings except for timeouts.
fn embedded(count: usize) -> (Nodes, LockClient) {
    let nodes = Nodes::start(count).expect("there are ports enough");
    let client = default(&nodes);
    (nodes, client)
}

fn default(nodes: &Nodes) -> LockClient {
    let builder =
        trusting(LockClient::builder().nodes(nodes.urls())).node_timeout(Duration::from_secs(5));
    builder
        .wait_for_all(true)
        .build()
        .expect("the settings are good")
}

#[test]
fn by_default_servers_that_have_just_been_started_are_quarantined_for_a_minute() {
    let servers = Servers::start(3);
    let client = trusting(LockClient::builder().nodes(servers.urls()))
        .build()
        .unwrap();
    let minute = Duration::from_secs(60);
    let has_asked = || quarantines(&client).iter().all(Option::is_some);
    assert!(eventually(LIMIT, has_asked));
    for left in quarantines(&client).into_iter().flatten() {
        assert!(!left.is_zero() && left <= minute, "{left:?}");
    }
    // A request that does not wait returns at once.
    let start = Instant::now();
    let error = with_long_timeout(servers.urls())
        .restart_guard(true)
        .build()
        .unwrap();
    let error = error.try_lock("fresh", LONG).unwrap_err();
    assert!(start.elapsed() < LIMIT);
    let text = error.to_string();
    assert!(
        text.contains("0 of 3 nodes gave an answer that counts"),
        "{text}"
    );
    assert!(
        text.contains("quarantined for another") && text.contains(" s: it may have"),
        "{text}"
    );
    assert!(
        text.contains("max_ttl") && text.contains("restart_guard"),
        "{text}"
    );
}

#[test]
fn a_waiting_request_gets_the_lock_when_the_quarantine_ends() {
    let mut servers = Servers::start(3);
    let ttl = Duration::from_secs(1);
    let max_ttl = Duration::from_secs(3);
    let client = guarded(servers.urls(), max_ttl);
    match client.try_lock("fresh", ttl) {
        Err(Error::NoQuorum(error)) => {
            for report in error.reports() {
                let NodeAnswer::Failed(NodeError::Quarantined { left }) = report.answer else {
                    panic!("{error}");
                };
                assert!(!left.is_zero() && left <= max_ttl);
            }
        }
        other => panic!("{other:?}"),
    }
    assert!(
        gone(&servers, "fresh"),
        "keys that were set during the quarantine are removed"
    );
    // It waits, and does not retry all the time.
    let requests = || scripts(&servers[0]) + calls(&servers[0], "client|caching");
    let before = requests();
    client.lock("fresh", ttl).unwrap().release().unwrap();
    let requests = requests() - before;
    // It enters the queue, where it renews its entry once a second, and each time has the node tell
    // it of changes; its turn and perhaps one that came too early; the release. Where nobody tells
    // it, it asks after short pauses.
    let most = if Capability::Tracking.is_there() {
        24
    } else {
        80
    };
    assert!((1..=most).contains(&requests), "{requests} requests");

    assert!(eventually(LIMIT, || quarantines(&client)
        .iter()
        .all(Option::is_none)));

    // A restarted node does not count, and a restarted majority is not a majority.
    servers[0].restart();
    take(&client, "one", ttl).release().unwrap();
    servers[1].restart();
    assert!(matches!(
        client.try_lock("two", ttl),
        Err(Error::NoQuorum(_))
    ));
}

#[test]
fn a_wait_that_ends_before_the_quarantine_does_fails_at_once() {
    let servers = Servers::start(3);
    let client = guarded(servers.urls(), MAX_TTL);
    for wait in [LIMIT, MAX_TTL / 2] {
        let start = Instant::now();
        match client.request("fresh").ttl(LONG).try_lock_for(wait) {
            Err(Error::NoQuorum(error)) => {
                let text = error.to_string();
                assert!(text.contains("quarantined for another"), "{wait:?}: {text}");
                assert!(
                    error.quarantine().is_some_and(|left| left > MAX_TTL / 2),
                    "{text}"
                );
            }
            other => panic!("{wait:?}: {other:?}"),
        }
        assert!(
            start.elapsed() < LIMIT / 2,
            "{wait:?}: {:?}",
            start.elapsed()
        );
    }
    assert!(
        gone(&servers, "fresh"),
        "neither a key nor a waiter is left"
    );
}

#[test]
fn nodes_that_are_not_up_may_come_back_in_time() {
    let mut servers = Servers::start(3);
    let client = guarded(servers.urls(), MAX_TTL);
    servers[0].kill();
    servers[1].kill();
    // The third alone does not keep a majority from the lock.
    let wait = Duration::from_millis(700);
    let start = Instant::now();
    let result = client.request("fresh").ttl(LONG).try_lock_for(wait);
    assert!(matches!(result, Err(Error::NoQuorum(_))), "{result:?}");
    assert!(start.elapsed() >= wait, "{:?}", start.elapsed());
}

#[test]
fn a_restart_cannot_give_a_guarded_lock_away() {
    let mut servers = Servers::start(3);
    let max_ttl = Duration::from_secs(4);
    let client = guarded(servers.urls(), max_ttl);
    let guard = client.lock("away", max_ttl).unwrap();
    servers[0].restart();
    servers[1].restart();
    let other = guarded(servers.urls(), max_ttl);
    // Two nodes know of no lock now, and another client must not get it ...
    let taken = other
        .request("away")
        .ttl(max_ttl)
        .try_lock_for(LIMIT)
        .unwrap()
        .unwrap();
    // ... before the lock expires.
    assert!(guard.remaining().is_zero());
    taken.release().unwrap();
}

#[test]
fn without_the_guard_a_restart_gives_a_held_lock_to_another_client() {
    let mut servers = Servers::start(3);
    let guard = take(
        &with_long_timeout(servers.urls()).build().unwrap(),
        "away",
        LONG,
    );
    servers[0].restart();
    servers[1].restart();
    let other = take(
        &with_long_timeout(servers.urls()).build().unwrap(),
        "away",
        LONG,
    );
    assert!(
        !guard.remaining().is_zero() && !other.remaining().is_zero(),
        "two holders"
    );
}

#[test]
fn a_lock_from_before_is_extended_while_every_node_restarts_in_turn() {
    let (nodes, client) = embedded(3);
    let mut guard = take(&client, "rolling", LONG);
    for index in 0..3 {
        nodes.restart(index).unwrap();
        idle();
        // The other nodes confirm it, and it is restored on this one, which confirms the next one.
        guard.extend(LONG).unwrap();
    }
    assert!(quarantines(&client).iter().all(Option::is_some));
    guard.extend(LONG).unwrap();
    // This holds for all clients: no other gets the lock, and the release reaches all nodes.
    let other = default(&nodes);
    assert!(
        other.try_lock("rolling", LONG).unwrap().is_none(),
        "refused, not quarantined"
    );
    assert_eq!(guard.release(), Ok(()));
    assert!(matches!(
        other.try_lock("rolling", LONG),
        Err(Error::NoQuorum(_))
    ));
}

#[test]
fn a_restarted_majority_has_lost_the_lock_and_grants_it_to_no_client() {
    let (nodes, client) = embedded(3);
    let mut guard = take(&client, "forgotten", LONG);
    nodes.restart(0).unwrap();
    nodes.restart(1).unwrap();
    idle();
    let other = default(&nodes);
    assert!(matches!(
        other.try_lock("forgotten", LONG),
        Err(Error::NoQuorum(_))
    ));
    assert!(matches!(guard.extend(LONG), Err(Error::Lost(_))));
}

#[test]
fn quarantined_nodes_that_have_the_key_take_part_in_a_handoff() {
    // The first and the second node restart, and an extension restores the key there. The second
    // loses it again, so for the next waiter it could only set a new key.
    for (is_forgotten, is_served) in [(false, true), (true, false)] {
        let (nodes, client) = embedded(3);
        let mut guard = take(&client, "handed", LONG);
        for index in 0..2 {
            nodes.restart(index).unwrap();
            idle();
            guard.extend(LONG).unwrap();
        }
        nodes.stop(2);
        if is_forgotten {
            nodes.restart(1).unwrap();
            idle();
        }
        let next = support::queue::spawn_waiter({
            let client = client.clone();
            move || {
                client
                    .request("handed")
                    .ttl(LONG)
                    .try_lock_for(Duration::from_secs(2))
            }
        });
        drop(guard);
        let got = finish(next);
        assert_eq!(matches!(got, Ok(Some(_))), is_served, "{got:?}");
    }
}

#[test]
fn without_a_reported_uptime_a_quarantine_counts_from_the_first_connection() {
    support::needs!(Users);
    let servers = Servers::start(1);
    servers[0].command(&["ACL", "SETUSER", "shy", "on", ">pw", "~*", "+@all", "-info"]);
    let url = servers.urls()[0].replace("://", "://shy:pw@");
    let max_ttl = Duration::from_secs(2);
    let start = Instant::now();
    let client = guarded(vec![url], max_ttl);
    let guard = client.lock("shy", max_ttl).unwrap();
    assert!(start.elapsed() >= max_ttl);
    assert_eq!(holders(&servers, "shy"), 1);
    guard.release().unwrap();
    // A new connection starts it again.
    servers[0].command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    idle();
    assert!(matches!(
        client.try_lock("shy", max_ttl),
        Err(Error::NoQuorum(_))
    ));
    assert_eq!(value(&servers[0], "shy"), None);
}

#[test]
fn a_ttl_that_is_longer_than_a_quarantine_is_refused() {
    let (_nodes, client) = embedded(1);
    let error = client
        .try_lock("long", Duration::from_secs(61))
        .unwrap_err();
    assert!(error.to_string().contains("setting max_ttl"), "{error}");
    let mut guard = take(&client, "long", LONG);
    assert!(matches!(
        guard.extend(Duration::from_secs(61)),
        Err(Error::Ttl(_))
    ));
}

#[test]
fn waiters_send_nothing_while_the_head_waits_for_the_end_of_a_quarantine() {
    let servers = Servers::start(3);
    let client = guarded(servers.urls(), Duration::from_secs(3));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                client
                    .lock("line", Duration::from_secs(2))
                    .unwrap()
                    .release()
            });
        }
    });
    let scripts = calls(&servers[0], "eval") + calls(&servers[0], "evalsha");
    // A handoff for each, a renewal of the head's place each second, and a few turns that are a
    // moment too early, with what each of these takes.
    let most = if Capability::Tracking.is_there() {
        8 * 4
    } else {
        8 * 12
    };
    assert!(scripts <= most, "{scripts} scripts");
}

#[test]
fn all_clients_see_a_quarantine_end_at_the_same_time_whenever_they_connect() {
    support::needs!(ExactUptime);
    let server = Servers::start(1);
    // Uptimes are whole seconds: a client that connects in the first second knows the start better.
    thread::sleep(Duration::from_millis(1_100));
    let mut ends = Vec::new();
    let start = Instant::now();
    let mut spread = Duration::MAX;
    for _ in 0..8 {
        let client = connected(guarded(server.urls(), LONG));
        let status = client.nodes().remove(0);
        ends.push(start.elapsed() + status.quarantine.expect("it was started a moment ago"));
        spread = ends
            .iter()
            .max()
            .unwrap()
            .saturating_sub(*ends.iter().min().unwrap());
        thread::sleep(Duration::from_millis(130));
    }
    assert!(spread < Duration::from_millis(300), "{spread:?}: {ends:?}");
}
