//! A network that refuses, resets, trickles, cuts and swallows.

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockError, ReleaseError, Released};
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, LONG, gone, holders, patient, take, thorough, words};
use support::proxy::{Mode, Proxy};
use support::redis::Server;
use support::servers::Servers;

/// Each server behind a proxy of its own, and the URLs of the proxies.
fn proxied(servers: &[Server]) -> (Vec<Proxy>, Vec<String>) {
    let proxies: Vec<_> = servers.iter().map(|server| Proxy::start(server.port())).collect();
    let urls = proxies.iter().map(Proxy::url).collect();
    (proxies, urls)
}

#[track_caller]
fn connected(client: LockClient) -> LockClient {
    assert!(eventually(LIMIT, || client.nodes().iter().all(|node| node.is_connected)));
    client
}

fn is_to_be_had(client: &LockClient, name: &str) -> bool {
    client.try_lock(name, LONG).is_ok_and(|guard| guard.is_some())
}

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
        client.lock(&name, LONG).unwrap().release().unwrap();
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
fn a_greeting_cut_at_any_byte_is_survived() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let mut plain = server.client();
    let words: [&[&str]; 3] =
        [&["HELLO", "3"], &["CLIENT", "SETNAME", "redlatch"], &["INFO", "server"]];
    let replies = words.map(|words| {
        let bytes = support::cli::encode(words);
        plain.try_raw(&bytes).unwrap().len()
    });
    let greeting: usize = replies.iter().sum();
    // Numbers in these replies grow a digit now and then, so a little less than all.
    for offset in 0..greeting - 16 {
        proxy.set(Mode::CutAfter(offset));
        let client = patient([proxy.url()]).build().unwrap();
        match client.try_lock("greeting", LONG) {
            Err(LockError::NoQuorum(_)) => {}
            other => panic!("{offset} of {greeting}: {other:?}"),
        }
    }
    assert_eq!(server.command(&["DBSIZE"]), Value::Integer(0));
    proxy.set(Mode::Pass);
    take(&patient([proxy.url()]).build().unwrap(), "greeting", LONG).release().unwrap();
}

#[test]
fn an_answer_cut_at_any_byte_is_unknown_and_undone() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let client = connected(patient([proxy.url()]).build().unwrap());
    let nodes = std::slice::from_ref(&server);
    for offset in 0..=5 {
        let name = format!("cut-{offset}");
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        proxy.set(Mode::CutAfter(offset));
        let taken = client.try_lock(&name, LONG);
        // `+OK` and a line break have five bytes; with one less, who knows.
        assert_eq!(taken.is_ok(), offset == 5, "{offset}: {taken:?}");
        assert_eq!(holders(nodes, &name), 1, "it was planted, whatever was heard");
        if let Err(LockError::NoQuorum(error)) = &taken {
            assert!(words(error)[0].starts_with("connection lost"), "{error}");
        }
        drop(taken);
        // There is no connection for its removal: it is owed, and paid with the next traffic.
        assert_eq!(holders(nodes, &name), 1);
        proxy.set(Mode::Pass);
        let paid = || client.nodes()[0].is_connected && holders(nodes, &name) == 0;
        assert!(eventually(LIMIT, paid), "{offset}");
    }
}

#[test]
fn an_extension_or_release_cut_at_any_byte_is_unknown() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let client = connected(patient([proxy.url()]).build().unwrap());
    for offset in 0..=4 {
        let name = format!("cut-{offset}");
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        let mut guard = take(&client, &name, Duration::from_secs(25));
        let before = guard.remaining();
        proxy.set(Mode::CutAfter(offset));
        let extended = guard.extend(LONG);
        assert_eq!(extended.is_ok(), offset == 4, "{offset}: {extended:?}");
        assert_eq!(guard.remaining() > before, offset == 4, "unheard, it does not count");
        assert!(guard.ensure_held().is_ok());
        proxy.set(Mode::Pass);
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        proxy.set(Mode::CutAfter(offset));
        match (guard.release(), offset) {
            (Ok(Released::InTime), 4) | (Err(ReleaseError::NoQuorum(_)), 0..4) => {}
            (other, _) => panic!("{offset}: {other:?}"),
        }
        proxy.set(Mode::Pass);
        assert!(gone(std::slice::from_ref(&server), &name));
    }
}

#[test]
fn an_answer_that_is_swallowed_leaves_no_key() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let round = Duration::from_millis(200);
    let client = connected(patient(urls).node_timeout(round).build().unwrap());
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Swallow));
    let error = client.try_lock("swallowed", LONG);
    assert!(matches!(error, Err(LockError::NoQuorum(_))), "{error:?}");
    // The removal was written behind it, though nobody heard of either.
    assert!(gone(&servers, "swallowed"));
    // What was lost is lost for good, and the connections with it.
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Reset));
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Pass));
    assert!(eventually(LIMIT, || is_to_be_had(&client, "after")));
    let paid = || !client.nodes().is_empty() && holders(&servers, "after") == 0;
    assert!(eventually(LIMIT, paid));
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
            Mode::Swallow,
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
