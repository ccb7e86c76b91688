//! A network that refuses connections, resets them, delivers single bytes, and all of this at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockError;

use super::support::eventually;
use super::support::locks::{
    LIMIT, LONG, all_nodes_client, can_be_acquired, connected, gone, holders, report_texts, take,
    with_long_timeout,
};
use super::support::proxy::{Mode, Proxy, proxied};
use super::support::servers::Servers;

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
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Refuse));
    (0..20).for_each(|round| cycle(&format!("minority-{round}")));
    proxies[2].set(Mode::Refuse);
    for _ in 0..20 {
        match client.try_lock("majority", LONG) {
            Err(LockError::NoQuorum(error)) => {
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
        assert!(eventually(LIMIT, || !client.nodes().is_empty() && holders(&servers, &name) == 0));
    }
}

#[test]
fn replies_in_single_bytes_work_like_whole_ones() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    check_single_bytes(&proxies, urls);
}

/// All operations work on new connections through these proxies, which pass single bytes.
#[track_caller]
pub(crate) fn check_single_bytes(proxies: &[Proxy], urls: Vec<String>) {
    proxies.iter().for_each(|proxy| proxy.set(Mode::Bytewise));
    let client = all_nodes_client(urls);
    for round in 0..10 {
        let name = format!("bytes-{round}\r\n\0");
        let mut guard = take(&client, &name, LONG);
        assert!(client.try_lock(&name, LONG).expect("all nodes answer").is_none());
        guard.extend(LONG).expect("all nodes answer");
        assert_eq!(guard.release(), Ok(()));
    }
    assert!(client.nodes().iter().all(|node| node.is_connected && node.version.is_some()));
    assert_eq!(proxies.iter().map(Proxy::accepted).sum::<usize>(), 3);
}

#[test]
fn mutual_exclusion_holds_in_a_network_with_all_faults_at_once() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    let delay = Duration::from_millis(30);
    let modes = [
        Mode::Reset,
        Mode::Delay { to_server: delay, to_client: delay },
        Mode::CutAfter(3),
        Mode::Bytewise,
        Mode::Refuse,
        Mode::ResetAfter(2),
        Mode::Swallow,
        Mode::Vanish,
        Mode::Delay { to_server: Duration::ZERO, to_client: 4 * delay },
    ];
    check_mutual_exclusion(&servers, &proxies, &urls, &modes);
}

/// Four clients contend for a lock on five servers, whose proxies change between these modes.
#[track_caller]
pub(crate) fn check_mutual_exclusion(
    servers: &Servers,
    proxies: &[Proxy],
    urls: &[String],
    modes: &[Mode],
) {
    let (is_over, is_inside) = (AtomicBool::new(false), AtomicBool::new(false));
    let turns = AtomicUsize::new(0);
    let round = Duration::from_millis(100);
    let contend = || {
        let client =
            with_long_timeout(urls.to_vec()).node_timeout(round).build().expect("good settings");
        while !is_over.load(Ordering::SeqCst) {
            let ttl = Duration::from_secs(5);
            if let Ok(Some(guard)) = client.try_lock_for("chaos", ttl, ttl) {
                assert!(!is_inside.swap(true, Ordering::SeqCst), "two at once");
                thread::sleep(Duration::from_micros(200));
                let was_inside = is_inside.swap(false, Ordering::SeqCst);
                assert!(was_inside && guard.ensure_held().is_ok());
                turns.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(contend);
        }
        let start = Instant::now();
        for step in 0.. {
            if start.elapsed() > Duration::from_secs(4) {
                break;
            }
            // Mostly one or two nodes have a fault, and sometimes three.
            proxies[step % 5].set(modes[step % modes.len()]);
            proxies[(step + 3 - usize::from(step % 11 == 0)) % 5].set(Mode::Pass);
            thread::sleep(Duration::from_millis(40));
        }
        proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(turns.into_inner() > 0);
    // Whatever was lost: the lock can be acquired again.
    assert!(eventually(LIMIT, || can_be_acquired(&all_nodes_client(servers.urls()), "chaos")));
}
