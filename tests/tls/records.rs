//! The records of TLS on the network: split, joined, repeated, altered, delayed and cut.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use redlatch::Error;

use support::bad_network::{check_mutual_exclusion, check_single_bytes};
use support::certificates::{Authority, Purpose};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, holders, pttl, report_texts, take,
    without_restart_guard,
};
use support::proxy::{Mode, Proxy, proxied_by};
use support::redis::Server;
use support::servers::Servers;
use support::terminator::{Terminator, server_config};

/// A proxy that acts on the bytes of TLS.
fn before_tls(server: &Server) -> Proxy {
    Proxy::before_tls(server.secure_port())
}

/// Each server behind one.
fn proxied(servers: &[Server]) -> (Vec<Proxy>, Vec<String>) {
    proxied_by(servers, before_tls)
}

#[test]
fn records_in_single_bytes_work_like_whole_ones() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    check_single_bytes(&proxies, urls);
}

#[test]
fn a_reply_over_many_records_is_one_reply() {
    let server = Server::start(&[]);
    let identity = Authority::trusted().issue(Purpose::Server);
    let mut config = Arc::unwrap_or_clone(server_config(&identity));
    // The smallest that there is, with a record's own bytes.
    config.max_fragment_size = Some(32);
    let terminator = Terminator::with_config(server.port(), Arc::new(config));
    let client = all_nodes_client([format!("rediss://127.0.0.1:{}", terminator.port())]);
    let owner = "x".repeat(250);
    let request = client.request("fragments").ttl(LONG).owner(&owner);
    let guard = request.try_lock().unwrap().expect("it is free");
    let seen = format!(
        "{:?}",
        client.inspect("fragments").expect("the node answers")
    );
    assert!(seen.contains(&owner), "{seen}");
    assert_eq!(guard.release(), Ok(()));
    assert!(client.nodes()[0].is_connected);
}

#[test]
fn many_replies_in_one_record_are_many_replies() {
    const THREADS: usize = 16;
    let servers = Servers::start(3);
    // Behind the terminators, so replies that were held back together are one record.
    let (proxies, urls) = support::proxy::proxied(&servers);
    let client = &connected(all_nodes_client(urls));
    let delay = Duration::from_millis(5);
    let mode = Mode::Delay {
        to_server: Duration::ZERO,
        to_client: delay,
    };
    proxies.iter().for_each(|proxy| proxy.set(mode));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..10 {
                    let mut guard = take(client, format!("{thread}-{round}"), LONG);
                    guard.extend(LONG).unwrap();
                    assert_eq!(guard.release(), Ok(()));
                }
            });
        }
    });
    assert_eq!(
        proxies.iter().map(Proxy::accepted).sum::<usize>(),
        3,
        "no connection was lost"
    );
}

/// A node's connection breaks in this mode, nothing that arrived by it counts, and a new connection
/// works.
#[track_caller]
fn check_broken_by(mode: Mode) {
    let server = Server::start(&[]);
    let proxy = Proxy::before_tls(server.secure_port());
    let client = connected(all_nodes_client([proxy.url()]));
    let other = all_nodes_client([server.url()]);
    let theirs = take(&other, "theirs", LONG);
    for round in 0..10 {
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        let name = format!("broken-{round}");
        let connections = proxy.accepted();
        proxy.set(mode);
        drop(client.try_lock(&name, LONG));
        proxy.set(Mode::Pass);
        let is_new = || client.nodes()[0].is_connected && proxy.accepted() > connections;
        assert!(eventually(LIMIT, is_new), "{round}");
        assert!(matches!(client.try_lock("theirs", LONG), Ok(None)));
        assert!(gone(std::slice::from_ref(&server), &name));
    }
    assert_eq!(theirs.release(), Ok(()));
}

#[test]
fn repeated_records_break_the_connection() {
    check_broken_by(Mode::Twice);
}

#[test]
fn an_altered_record_breaks_the_connection_and_is_no_reply() {
    check_broken_by(Mode::Alter);
    let server = Server::start(&[]);
    let proxy = Proxy::before_tls(server.secure_port());
    let client = connected(all_nodes_client([proxy.url()]));
    proxy.set(Mode::Alter);
    match client.try_lock("altered", LONG) {
        Err(Error::NoQuorum(error)) => {
            let text = &report_texts(&error)[0];
            assert!(text.contains("TLS") || text.contains("decrypt"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// What a client reports of a connection that ends before the reply.
#[test]
fn bytes_of_an_abandoned_connection_that_arrive_late_do_no_harm() {
    const SHORT: Duration = Duration::from_secs(12);
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let settings = without_restart_guard(urls).node_timeout(Duration::from_millis(200));
    let client = connected(settings.build().unwrap());
    let request = client.request("late").ttl(SHORT);
    let mut guard = request.try_lock_for(LIMIT).unwrap().expect("it is free");
    assert!(eventually(LIMIT, || holders(&servers, "late") == 3));
    // Records that are written now arrive after those of the next connection.
    let accepted: Vec<_> = proxies.iter().map(Proxy::accepted).collect();
    let late = Duration::from_secs(6);
    let mode = Mode::Delay {
        to_server: late,
        to_client: Duration::ZERO,
    };
    proxies[..2].iter().for_each(|proxy| proxy.set(mode));
    let failed = guard.extend(SHORT);
    assert!(matches!(failed, Err(Error::NoQuorum(_))), "{failed:?}");
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    let is_replaced = || {
        drop(client.try_lock("at-work", Duration::from_secs(5)));
        proxies[..2]
            .iter()
            .zip(&accepted)
            .all(|(proxy, before)| proxy.accepted() > *before)
    };
    assert!(eventually(LIMIT, is_replaced));
    let is_long = || servers.iter().all(|server| pttl(server, "late") > 20_000);
    assert!(eventually(LIMIT, || guard.extend(LONG).is_ok() && is_long()));
    thread::sleep(late);
    assert!(is_long(), "a late extension shortened the ttl");
    assert_eq!(guard.release(), Ok(()));
    assert!(gone(&servers, "late"));
}

#[test]
fn mutual_exclusion_holds_with_all_faults_of_records_at_once() {
    let others = [
        Mode::CutAfter(300),
        Mode::Alter,
        Mode::ResetAfter(20),
        Mode::Twice,
        Mode::StallAfter(1000),
    ];
    check_mutual_exclusion(before_tls, &others);
}
