//! A network that refuses, resets, trickles, and does everything at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockError, Released};

use super::support::eventually;
use super::support::locks::{LIMIT, LONG, gone, holders, patient, take, thorough, words};
use super::support::proxy::{Mode, Proxy};
use super::support::servers::Servers;
use super::{connected, is_to_be_had, proxied};

#[test]
fn a_minority_that_refuses_is_not_noticed_and_a_majority_is_reported() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    let client = thorough(urls);
    let cycle = |name: &str| {
        let mut guard = take(&client, name, LONG);
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(Released::InTime));
    };
    cycle("whole");
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Refuse));
    (0..20).for_each(|round| cycle(&format!("minority-{round}")));
    proxies[2].set(Mode::Refuse);
    for _ in 0..20 {
        match client.try_lock("majority", LONG) {
            Err(LockError::NoQuorum(error)) => {
                let refused = |words: &String| words.starts_with("no connection: ");
                assert!(words(&error)[..2].iter().all(refused), "{error}");
                assert_eq!(error.answered(), 2);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(gone(&servers, "majority"));
    // They come back, and with some traffic all are used again.
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    let is_whole = || {
        let guard = client.try_lock("back", LONG).ok().flatten();
        guard.is_some() && holders(&servers, "back") == 5
    };
    assert!(eventually(LIMIT, is_whole));
}

#[test]
fn resets_cost_a_connection_and_no_more() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let client = connected(patient(urls).build().unwrap());
    for round in 0..5 {
        proxies.iter().for_each(|proxy| proxy.set(Mode::Reset));
        let name = format!("reset-{round}");
        // A connection lives for another moment; then there is none to be had.
        assert!(eventually(LIMIT, || client.try_lock(&name, LONG).is_err()));
        proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
        let _ = client.lock(&name, LONG).unwrap().release().unwrap();
        // What a node took that has not been reached again since is owed until there is traffic.
        assert!(eventually(LIMIT, || !client.nodes().is_empty() && holders(&servers, &name) == 0));
    }
}

#[test]
fn byte_by_byte_is_as_good_as_whole() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    proxies.iter().for_each(|proxy| proxy.set(Mode::Bytewise));
    let client = thorough(urls);
    for round in 0..10 {
        let name = format!("bytes-{round}\r\n\0");
        let mut guard = take(&client, &name, LONG);
        assert!(client.try_lock(&name, LONG).unwrap().is_none());
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(Released::InTime));
    }
    assert!(client.nodes().iter().all(|node| node.is_connected && node.version.is_some()));
    assert_eq!(proxies.iter().map(Proxy::accepted).sum::<usize>(), 3);
}

#[test]
fn mutual_exclusion_survives_a_network_that_does_everything_at_once() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    let (is_over, is_inside) = (AtomicBool::new(false), AtomicBool::new(false));
    let turns = AtomicUsize::new(0);
    let round = Duration::from_millis(100);
    let contend = || {
        let client = patient(urls.clone()).node_timeout(round).build().unwrap();
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
        let (start, delay) = (Instant::now(), Duration::from_millis(30));
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
        for step in 0.. {
            if start.elapsed() > Duration::from_secs(4) {
                break;
            }
            // Mostly one or two nodes are ill, and now and then three.
            proxies[step % 5].set(modes[step % modes.len()]);
            proxies[(step + 3 - usize::from(step % 11 == 0)) % 5].set(Mode::Pass);
            thread::sleep(Duration::from_millis(40));
        }
        proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(turns.into_inner() > 0);
    // Whatever became of everything that was lost: the lock can be had again.
    assert!(eventually(LIMIT, || is_to_be_had(&thorough(servers.urls()), "chaos")));
}
