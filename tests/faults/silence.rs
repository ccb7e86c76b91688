//! Nothing is heard: connections without a peer, replies lost together with their server, servers
//! that do not take a connection, and commands that arrive when nobody waits any more.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, Phase};
use redlatch::{LockClient, LockError, NodeError, Released};
use socket2::{Domain, Socket, Type};

use super::support::eventually;
use super::support::locks::{LIMIT, LONG, calls, gone, holders, patient, take, thorough, words};
use super::support::proxy::{Mode, Proxy};
use super::support::redis::Server;
use super::support::servers::Servers;
use super::{connected, is_to_be_had, proxied};

const ROUND: Duration = Duration::from_millis(200);

/// How much later than its deadline an operation may end on a busy machine.
const MARGIN: Duration = Duration::from_secs(10);

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
fn a_minority_whose_connections_are_half_open_holds_nobody_up() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    // Whoever waited for the silent would wait for a minute.
    let minute = Duration::from_secs(60);
    let client = connected(patient(urls).node_timeout(minute).build().unwrap());
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Vanish));
    let start = Instant::now();
    for round in 0..20 {
        let mut guard = take(&client, format!("half-open-{round}"), LONG);
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(Released::InTime));
    }
    assert!(start.elapsed() < minute);
}

#[test]
fn a_majority_whose_connections_are_half_open_is_reported_in_time_and_replaced() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let client = connected(patient(urls).node_timeout(ROUND).wait_for_all(true).build().unwrap());
    let mut guard = take(&client, "held", LONG);
    // The connections are idle when their peers go, and nothing tells the client so.
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Vanish));
    let start = Instant::now();
    match client.try_lock("half-open", LONG) {
        Err(LockError::NoQuorum(error)) => {
            let silent = NodeAnswer::Failed(NodeError::TimedOut(Phase::Answering));
            assert!(error.reports()[..2].iter().all(|report| report.answer == silent), "{error}");
            assert_eq!(error.answered(), 1, "an open connection is no answer");
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() >= ROUND && start.elapsed() < ROUND + MARGIN);
    let before = guard.remaining();
    assert!(guard.extend(LONG).is_err());
    assert!(guard.ensure_held().is_ok() && guard.remaining() <= before);
    // The old connections stay as they are, so it takes new ones.
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    let accepted: Vec<_> = proxies.iter().map(Proxy::accepted).collect();
    assert!(eventually(LIMIT, || is_to_be_had(&client, "half-open")));
    assert!(
        proxies.iter().zip(accepted).filter(|(proxy, old)| proxy.accepted() > *old).count() > 0
    );
    assert!(eventually(LIMIT, || guard.extend(LONG).is_ok()));
    assert_eq!(guard.release(), Ok(Released::InTime));
    let clean = || !client.nodes().is_empty() && holders(&servers, "half-open") == 0;
    assert!(eventually(LIMIT, clean));
}

/// Servers that lose nothing when they are killed, two of which answer and are not heard.
fn unheard() -> (Servers, Vec<Proxy>, LockClient) {
    let servers = Servers::start_with(3, &["--appendonly", "yes", "--appendfsync", "always"]);
    let (proxies, urls) = proxied(&servers);
    let builder = patient(urls).restart_guard(false);
    let client = connected(builder.build().expect("the settings are good"));
    (servers, proxies, client)
}

#[test]
fn what_a_majority_did_unheard_before_it_was_killed_is_undone_when_it_is_back() {
    let (mut servers, proxies, client) = unheard();
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Swallow));
    let attempt = thread::scope(|scope| {
        let attempt = scope.spawn(|| client.try_lock("unheard", LONG));
        assert!(eventually(LIMIT, || holders(&servers[..2], "unheard") == 2));
        servers[..2].iter_mut().for_each(Server::kill);
        attempt.join().expect("it does not panic")
    });
    match attempt {
        Err(LockError::NoQuorum(error)) => {
            let unknown = |words: &String| words.starts_with("connection lost");
            assert!(words(&error)[..2].iter().all(unknown), "{error}");
        }
        other => panic!("{other:?}"),
    }
    servers[..2].iter_mut().for_each(Server::restart);
    assert_eq!(holders(&servers[..2], "unheard"), 2, "they remember what nobody heard of");
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    let undone = || !client.nodes().is_empty() && holders(&servers, "unheard") == 0;
    assert!(eventually(LIMIT, undone));
    assert!(eventually(LIMIT, || is_to_be_had(&client, "unheard")));
}

#[test]
fn a_grant_that_was_lost_with_its_server_is_released_there_too() {
    let (mut servers, proxies, client) = unheard();
    proxies[0].set(Mode::Swallow);
    let guard = take(&client, "lost", LONG);
    assert!(eventually(LIMIT, || holders(&servers[..1], "lost") == 1), "it did what it was told");
    // Killed with its answer on the way, and back with the key that nobody knows of.
    servers[0].kill();
    proxies[0].set(Mode::Pass);
    servers[0].restart();
    assert_eq!(holders(&servers[..1], "lost"), 1);
    assert_eq!(guard.release(), Ok(Released::InTime));
    let is_gone = || !client.nodes().is_empty() && holders(&servers, "lost") == 0;
    assert!(eventually(LIMIT, is_gone));
}

#[test]
fn a_grant_that_lands_after_the_release_is_taken_back_behind_it() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    let client = connected(patient(urls).build().unwrap());
    let late = Duration::from_millis(300);
    proxies[4].set(Mode::Delay { to_server: late, to_client: Duration::ZERO });
    for round in 0..3 {
        let name = format!("late-{round}");
        let before = calls(&servers[4], "set");
        let guard = take(&client, &name, LONG);
        // Dropped, or released.
        let released = (round > 0).then(|| guard.release());
        assert!(matches!(released, None | Some(Ok(Released::InTime))), "{released:?}");
        assert!(eventually(LIMIT, || calls(&servers[4], "set") > before));
        assert!(gone(&servers, &name));
    }
}

#[test]
fn a_node_that_never_takes_the_connection_holds_nobody_up() {
    // A queue for one that nobody is taken from: the kernel leaves further requests unanswered, as
    // a firewall would that drops them.
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    let is_full = || match TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        Ok(stream) => {
            queued.push(stream);
            false
        }
        Err(_) => true,
    };
    assert!(eventually(LIMIT, is_full));

    let servers = Servers::start(2);
    let silent = format!("redis://{address}");
    let urls = servers.urls().into_iter().chain([silent.clone()]);
    let minute = Duration::from_secs(60);
    let client = patient(urls).node_timeout(minute).build().unwrap();
    let start = Instant::now();
    for round in 0..10 {
        let _ = take(&client, format!("unconnected-{round}"), LONG).release().unwrap();
    }
    assert!(start.elapsed() < minute);

    // Where it is the majority, its silence ends with the round, connecting included.
    let client = patient([silent]).node_timeout(ROUND).build().unwrap();
    let start = Instant::now();
    match client.try_lock("unconnected", LONG) {
        Err(LockError::NoQuorum(error)) => {
            assert_eq!(words(&error), ["timed out connecting"], "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() >= ROUND && start.elapsed() < ROUND + MARGIN);
    assert!(thorough(servers.urls()).try_lock("unconnected", LONG).unwrap().is_some());
}
