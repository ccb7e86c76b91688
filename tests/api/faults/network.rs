//! A network that refuses connections, resets them, delivers single bytes, and all of this at once.

use redlatch::Error;

use support::bad_network::{check_mutual_exclusion, check_single_bytes};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, holders, report_texts, take, with_long_timeout,
};
use support::proxy::{Mode, Proxy, proxied};
use support::servers::Servers;

#[test]
fn a_minority_that_refuses_connections_has_no_effect_and_a_majority_is_reported() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    let client = all_nodes_client(urls);
    let cycle = |name: &str| {
        let mut guard = take(&client, name, LONG);
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(()));
    };
    cycle("whole");
    proxies[..2]
        .iter()
        .for_each(|proxy| proxy.set(Mode::Refuse));
    (0..20).for_each(|round| cycle(&format!("minority-{round}")));
    proxies[2].set(Mode::Refuse);
    for _ in 0..20 {
        match client.try_lock("majority", LONG) {
            Err(Error::NoQuorum(error)) => {
                let refused = |words: &String| words.starts_with("no connection: ");
                assert!(report_texts(&error)[..2].iter().all(refused), "{error}");
                assert_eq!(error.answered(), 2);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(gone(&servers, "majority"));
    // They accept connections again, and with some traffic all are used again.
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    let is_whole = || {
        let guard = client.try_lock("back", LONG).ok().flatten();
        guard.is_some() && holders(&servers, "back") == 5
    };
    assert!(eventually(LIMIT, is_whole));
}

#[test]
fn a_reset_costs_a_connection_and_nothing_else() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let client = connected(with_long_timeout(urls).build().unwrap());
    for round in 0..5 {
        proxies.iter().for_each(|proxy| proxy.set(Mode::Reset));
        let name = format!("reset-{round}");
        // An open connection works for another moment; then no new one is possible.
        assert!(eventually(LIMIT, || client.try_lock(&name, LONG).is_err()));
        proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
        client.lock(&name, LONG).unwrap().release().unwrap();
        // The removal for a node that was not reached since stays pending until there is traffic.
        assert!(eventually(LIMIT, || !client.nodes().is_empty()
            && holders(&servers, &name) == 0));
    }
}

#[test]
fn replies_in_single_bytes_work_like_whole_ones() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    check_single_bytes(&proxies, urls);
}

#[test]
fn mutual_exclusion_holds_in_a_network_with_all_faults_at_once() {
    let others = [Mode::CutAfter(3), Mode::ResetAfter(2)];
    check_mutual_exclusion(|server| Proxy::start(server.port()), &others);
}
