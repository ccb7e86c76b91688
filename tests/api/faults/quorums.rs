//! Majorities: an even number of nodes that is split, and URLs that are one server.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::Error;

use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, can_be_acquired, connected, gone, take, value, with_long_timeout,
};
use support::proxy::{Mode, proxied};
use support::redis::Server;
use support::servers::Servers;

#[test]
fn four_nodes_split_two_and_two_grant_no_lock() {
    let servers = Servers::start(4);
    let client = all_nodes_client(servers.urls());
    for server in &servers[..2] {
        server.command(&["SET", "split", "another's", "PX", "60000"]);
    }
    assert!(matches!(client.try_lock("split", LONG), Ok(None)));
    let start = Instant::now();
    let wait = Duration::from_millis(300);
    assert!(matches!(
        client.request("split").ttl(LONG).try_lock_for(wait),
        Ok(None)
    ));
    assert!(start.elapsed() < LIMIT);
    assert!(
        gone(&servers[2..], "split"),
        "half is not a majority, so its keys are removed"
    );
    assert!(
        servers[..2]
            .iter()
            .all(|server| value(server, "split").is_some())
    );
    servers[0].command(&["DEL", "split"]);
    assert_eq!(take(&client, "split", LONG).release(), Ok(()));
    assert_eq!(
        value(&servers[1], "split").as_deref(),
        Some(&b"another's"[..])
    );
}

#[test]
fn two_clients_that_repeatedly_split_four_nodes_both_get_the_lock() {
    let servers = Servers::start(4);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let client = with_long_timeout(servers.urls()).build().unwrap();
                for _ in 0..20 {
                    client.lock("split", LONG).unwrap().release().unwrap();
                }
            });
        }
    });
    assert!(gone(&servers, "split"));
}

#[test]
fn an_attempt_that_is_split_does_not_wait_for_a_node_that_is_known_to_be_silent() {
    let servers = Servers::start(3);
    let round = Duration::from_secs(3);
    let client = connected(
        with_long_timeout(servers.urls())
            .node_timeout(round)
            .build()
            .unwrap(),
    );
    servers[0].command(&["SET", "split", "another's", "PX", "60000"]);
    servers[2].pause();
    // As far as the client knows, the third node may still complete a majority.
    assert!(matches!(client.try_lock("split", LONG), Ok(None)));
    let start = Instant::now();
    for _ in 0..5 {
        assert!(matches!(client.try_lock("split", LONG), Ok(None)));
    }
    assert!(start.elapsed() < 2 * round, "each attempt waited for it");
    servers[2].resume();
    assert!(
        gone(&servers[1..], "split"),
        "it is removed from the silent node as well"
    );
    // The node votes again.
    assert!(eventually(LIMIT, || can_be_acquired(&client, "split")));
    assert!(value(&servers[0], "split").is_some());
}

#[test]
fn one_server_with_several_addresses_has_one_vote() {
    let has_ipv6 = TcpListener::bind(("::1", 0)).is_ok();
    let addresses = ["--bind", "127.0.0.1", "127.0.0.2", "::1"];
    let server = Server::start(&addresses[..if has_ipv6 { 4 } else { 3 }]);
    let at = |host| server.url().replace("127.0.0.1", host);
    let mut others = vec![at("127.0.0.2"), at("localhost")];
    if has_ipv6 {
        others.push(at("[::1]"));
    }
    for other in others {
        let twins = all_nodes_client([server.url(), other.clone()]);
        match twins.try_lock("twins", LONG) {
            Err(Error::SameServer { .. }) => {}
            outcome => panic!("{other}: {outcome:?}"),
        }
        assert!(gone(std::slice::from_ref(&server), "twins"));
    }
}

#[test]
fn attempts_that_time_out_at_once_leave_no_key() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let client = with_long_timeout(urls).build().unwrap();
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    for (round, millis) in [0, 1, 5].into_iter().cycle().take(30).enumerate() {
        let delay = Duration::from_millis(millis);
        proxies[round % 3].set(Mode::Delay {
            to_server: delay,
            to_client: delay,
        });
        for wait in [Duration::ZERO, Duration::from_millis(1)] {
            let name = format!("hurry-{round}");
            drop(client.request(&name).ttl(LONG).try_lock_for(wait));
            drop(
                client
                    .request(&name)
                    .ttl(LONG)
                    .try_lock_until(Instant::now() + wait),
            );
        }
    }
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    let empty = |server: &Server| server.command(&["DBSIZE"]).integer() == 0;
    assert!(eventually(LIMIT, || !client.nodes().is_empty()
        && servers.iter().all(empty)));
}
