//! Connections over TLS as a whole: how they end, with and without the alert that announces it,
//! many locks on one, and who drives them.

use std::thread;

use redlatch::Error;

use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, idle, report_texts, take, with_long_timeout,
};
use support::proxy::Proxy;
use support::proxy::{Mode, proxied};
use support::redis::Server;
use support::servers::Servers;
use support::terminator::Ending;

#[track_caller]
fn reported_ending(ending: Ending) -> String {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    proxy.terminator().set_ending(ending);
    let client = connected(all_nodes_client([proxy.url()]));
    proxy.set(Mode::CutAfter(0));
    match client.try_lock("ended", LONG) {
        Err(Error::NoQuorum(error)) => report_texts(&error)[0].clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_end_with_close_notify_is_told_from_one_without() {
    let in_order = reported_ending(Ending::CloseNotify);
    assert_eq!(in_order, "connection lost: closed by the server");
    let abrupt = reported_ending(Ending::Abrupt);
    assert!(
        abrupt.starts_with("connection lost: ") && abrupt != in_order,
        "{abrupt}"
    );
    assert!(abrupt.contains("close_notify"), "{abrupt}");
}

#[test]
fn connections_closed_while_idle_in_both_ways_cost_no_vote() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let client = connected(with_long_timeout(urls).build().unwrap());
    for ending in [Ending::CloseNotify, Ending::Abrupt] {
        for round in 0..5 {
            connected(client.clone());
            for (server, proxy) in servers.iter().zip(&proxies) {
                proxy.terminator().set_ending(ending);
                server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
            }
            assert!(eventually(LIMIT, || proxies
                .iter()
                .all(|it| it.terminator().has_ended())));
            idle();
            // In one attempt, on new connections.
            let guard = take(&client, format!("{ending:?}-{round}"), LONG);
            assert_eq!(guard.release(), Ok(()));
        }
    }
}

#[test]
fn a_client_ends_its_connections_with_close_notify_after_its_removals() {
    for round in 0..10 {
        let servers = Servers::start(3);
        let (proxies, urls) = proxied(&servers);
        let client = all_nodes_client(urls);
        let guards: Vec<_> = (0..20)
            .map(|lock| take(&client, format!("last-{lock}"), LONG))
            .collect();
        // The client may go first or last.
        if round % 2 == 0 {
            drop(guards);
            drop(client);
        } else {
            drop(client);
            drop(guards);
        }
        assert!((0..20).all(|lock| gone(&servers, format!("last-{lock}"))));
        let ended = || {
            proxies
                .iter()
                .all(|proxy| proxy.terminator().closed_in_order() == 1)
        };
        assert!(eventually(LIMIT, ended), "round {round}");
    }
}

#[test]
fn a_thousand_locks_of_one_client_are_acquired_extended_and_released() {
    const THREADS: usize = 20;
    let servers = Servers::start(3);
    let client = &connected(all_nodes_client(servers.urls()));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let name = |lock| format!("{thread}-{lock}");
                let mut guards: Vec<_> = (0..1000 / THREADS)
                    .map(|lock| take(client, name(lock), LONG))
                    .collect();
                guards
                    .iter_mut()
                    .for_each(|guard| guard.extend(LONG).unwrap());
                for guard in guards.drain(..guards.len() / 2) {
                    assert_eq!(guard.release(), Ok(()));
                }
            });
        }
    });
    let is_empty = || {
        servers
            .iter()
            .all(|it| it.command(&["DBSIZE"]) == Value::Integer(0))
    };
    assert!(eventually(LIMIT, || !client.nodes().is_empty() && is_empty()));
}

#[test]
fn an_io_thread_drives_tls_as_well() {
    let servers = Servers::start(3);
    let settings = with_long_timeout(servers.urls())
        .io_thread(true)
        .wait_for_all(true);
    let client = connected(settings.build().unwrap());
    for round in 0..50 {
        let mut guard = take(&client, format!("driven-{round}"), LONG);
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(()));
    }
    drop(take(&client, "dropped", LONG));
    drop(client);
    assert!(gone(&servers, "dropped"));
}
