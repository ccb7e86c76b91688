//! Silence: connections without a peer, replies lost together with their server, servers that
//! accept no connection, and commands that arrive after the timeout.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, Phase};
use redlatch::{Error, LockClient, NodeError};

use support::deaf_port::DeafPort;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, calls, can_be_acquired, connected, gone, holders, report_texts,
    take, with_long_timeout, without_restart_guard,
};
use support::proxy::{Mode, Proxy, proxied};
use support::redis::Server;
use support::servers::Servers;
use support::transport::scheme;

const ROUND: Duration = Duration::from_millis(200);

/// How much later than its deadline an operation may end on a busy machine.
const MARGIN: Duration = Duration::from_secs(10);

#[test]
fn a_lost_reply_leaves_no_key() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let round = Duration::from_millis(200);
    let client = connected(with_long_timeout(urls).node_timeout(round).build().unwrap());
    proxies[..2]
        .iter()
        .for_each(|proxy| proxy.set(Mode::Swallow));
    let error = client.try_lock("swallowed", LONG);
    assert!(matches!(error, Err(Error::NoQuorum(_))), "{error:?}");
    // The removal was written after the command, although no reply to either came.
    assert!(gone(&servers, "swallowed"));
    // Lost replies do not come back, and their connections are replaced.
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Reset));
    proxies[..2].iter().for_each(|proxy| proxy.set(Mode::Pass));
    assert!(eventually(LIMIT, || can_be_acquired(&client, "after")));
    let paid = || !client.nodes().is_empty() && holders(&servers, "after") == 0;
    assert!(eventually(LIMIT, paid));
}

#[test]
fn a_minority_with_half_open_connections_delays_no_call() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    // A call that waited for the silent nodes would take that long, as dropping the client does.
    let limit = Duration::from_secs(15);
    let client = connected(with_long_timeout(urls).node_timeout(limit).build().unwrap());
    proxies[..2]
        .iter()
        .for_each(|proxy| proxy.set(Mode::Vanish));
    let start = Instant::now();
    for round in 0..20 {
        let mut guard = take(&client, format!("half-open-{round}"), LONG);
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(()));
    }
    assert!(start.elapsed() < limit);
}

#[test]
fn a_majority_with_half_open_connections_is_reported_in_time_and_reconnected() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let client = connected(
        with_long_timeout(urls)
            .node_timeout(ROUND)
            .wait_for_all(true)
            .build()
            .unwrap(),
    );
    let mut guard = take(&client, "held", LONG);
    // The connections are idle when their peers disappear, and the client does not notice.
    proxies[..2]
        .iter()
        .for_each(|proxy| proxy.set(Mode::Vanish));
    let accepted: Vec<_> = proxies.iter().map(Proxy::accepted).collect();
    let start = Instant::now();
    match client.try_lock("half-open", LONG) {
        Err(Error::NoQuorum(error)) => {
            let silent = NodeAnswer::Failed(NodeError::TimedOut(Phase::Answering));
            assert!(
                error.reports()[..2]
                    .iter()
                    .all(|report| report.answer == silent),
                "{error}"
            );
            assert_eq!(error.answered(), 1, "an open connection is not a reply");
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() >= ROUND && start.elapsed() < ROUND + MARGIN);
    let before = guard.remaining();
    assert!(guard.extend(LONG).is_err());
    assert!(guard.ensure_held().is_ok() && guard.remaining() <= before);
    // The old connections stay silent, so new ones are needed.
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    assert!(eventually(LIMIT, || can_be_acquired(&client, "half-open")));
    assert!(
        proxies
            .iter()
            .zip(accepted)
            .filter(|(proxy, old)| proxy.accepted() > *old)
            .count()
            > 0
    );
    assert!(eventually(LIMIT, || guard.extend(LONG).is_ok()));
    assert_eq!(guard.release(), Ok(()));
    let clean = || !client.nodes().is_empty() && holders(&servers, "half-open") == 0;
    assert!(eventually(LIMIT, clean));
}

/// Servers that lose no data when they are killed. The replies of two of them are lost.
fn unheard() -> (Servers, Vec<Proxy>, LockClient) {
    let servers = Servers::start_with(3, &["--appendonly", "yes", "--appendfsync", "always"]);
    let (proxies, urls) = proxied(&servers);
    let builder = with_long_timeout(urls).restart_guard(false);
    let client = connected(builder.build().expect("the settings are good"));
    (servers, proxies, client)
}

#[test]
fn grants_whose_replies_were_lost_with_a_killed_majority_are_removed_after_its_restart() {
    let (mut servers, proxies, client) = unheard();
    proxies[..2]
        .iter()
        .for_each(|proxy| proxy.set(Mode::Swallow));
    let attempt = thread::scope(|scope| {
        let attempt = scope.spawn(|| client.try_lock("unheard", LONG));
        assert!(eventually(LIMIT, || holders(&servers[..2], "unheard") == 2));
        servers[..2].iter_mut().for_each(Server::kill);
        attempt.join().expect("it does not panic")
    });
    match attempt {
        Err(Error::NoQuorum(error)) => {
            let unknown = |words: &String| words.starts_with("connection lost");
            assert!(report_texts(&error)[..2].iter().all(unknown), "{error}");
        }
        other => panic!("{other:?}"),
    }
    servers[..2].iter_mut().for_each(Server::restart);
    assert_eq!(
        holders(&servers[..2], "unheard"),
        2,
        "they have the keys although no reply arrived"
    );
    proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    let undone = || !client.nodes().is_empty() && holders(&servers, "unheard") == 0;
    assert!(eventually(LIMIT, undone));
    assert!(eventually(LIMIT, || can_be_acquired(&client, "unheard")));
}

#[test]
fn a_grant_whose_reply_was_lost_with_its_server_is_released_there_too() {
    let (mut servers, proxies, client) = unheard();
    proxies[0].set(Mode::Swallow);
    let guard = take(&client, "lost", LONG);
    assert!(
        eventually(LIMIT, || holders(&servers[..1], "lost") == 1),
        "it ran the command"
    );
    // Killed with its reply on the way, and restarted with the key.
    servers[0].kill();
    proxies[0].set(Mode::Pass);
    servers[0].restart();
    assert_eq!(holders(&servers[..1], "lost"), 1);
    assert_eq!(guard.release(), Ok(()));
    let is_gone = || !client.nodes().is_empty() && holders(&servers, "lost") == 0;
    assert!(eventually(LIMIT, is_gone));
}

#[test]
fn a_grant_that_arrives_after_the_release_is_removed() {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied(&servers);
    let client = connected(with_long_timeout(urls).build().unwrap());
    let late = Duration::from_millis(300);
    proxies[4].set(Mode::Delay {
        to_server: late,
        to_client: Duration::ZERO,
    });
    for round in 0..3 {
        let name = format!("late-{round}");
        let before = calls(&servers[4], "set");
        let guard = take(&client, &name, LONG);
        // Dropped, or released.
        let released = (round > 0).then(|| guard.release());
        assert!(matches!(released, None | Some(Ok(()))), "{released:?}");
        assert!(eventually(LIMIT, || calls(&servers[4], "set") > before));
        assert!(gone(&servers, &name));
    }
}

#[test]
fn a_node_that_never_accepts_a_connection_delays_no_call() {
    let deaf = DeafPort::open("127.0.0.1:0");
    let address = deaf.address();

    let servers = Servers::start(2);
    let silent = format!("{}://{address}", scheme());
    let urls = servers.urls().into_iter().chain([silent.clone()]);
    let minute = Duration::from_secs(60);
    let client = with_long_timeout(urls)
        .node_timeout(minute)
        .build()
        .unwrap();
    let start = Instant::now();
    for round in 0..10 {
        take(&client, format!("unconnected-{round}"), LONG)
            .release()
            .unwrap();
    }
    assert!(start.elapsed() < minute);

    // With a silent majority, the round ends at its deadline, which includes connecting.
    let client = with_long_timeout([silent])
        .node_timeout(ROUND)
        .build()
        .unwrap();
    let start = Instant::now();
    match client.try_lock("unconnected", LONG) {
        Err(Error::NoQuorum(error)) => {
            assert_eq!(report_texts(&error), ["timed out connecting"], "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() >= ROUND && start.elapsed() < ROUND + MARGIN);
    assert!(
        all_nodes_client(servers.urls())
            .try_lock("unconnected", LONG)
            .unwrap()
            .is_some()
    );
}

/// A wait begins no attempt that is sure to fail, and does not end with the last one either.
#[test]
fn a_wait_for_servers_that_accept_no_connection_ends_at_its_deadline() {
    let deaf = DeafPort::open("127.0.0.1:0");
    let url = format!("{}://{}", scheme(), deaf.address());
    type Verb = fn(&LockClient, Duration) -> Result<bool, Error>;
    let verbs: [(&str, Verb); 6] = [
        ("alone", |client, wait| {
            Ok(client.request("a").try_lock_for(wait)?.is_some())
        }),
        ("until", |client, wait| {
            let deadline = Instant::now() + wait;
            Ok(client
                .request("a")
                .keep_alive()
                .try_lock_until(deadline)?
                .is_some())
        }),
        ("set", |client, wait| {
            Ok(client.request_all(["a", "b"]).try_lock_for(wait)?.is_some())
        }),
        ("shared", |client, wait| {
            Ok(client.request("a").shared().try_lock_for(wait)?.is_some())
        }),
        ("body", |client, wait| {
            let request = client.request("a").one_of(3);
            Ok(request
                .try_with_lock_for(wait, |_| Ok::<_, Error>(()))?
                .is_some())
        }),
        ("leader", |client, wait| {
            Ok(client.election("a").campaign_for(wait)?.is_some())
        }),
    ];
    thread::scope(|scope| {
        for (name, verb) in verbs {
            // A new client makes its first attempt for 500 ms. The others end during a later one.
            for wait in [700, 950, 1_700].map(Duration::from_millis) {
                let builder = without_restart_guard([&url]);
                scope.spawn(move || {
                    let client = builder.connect_timeout(Duration::from_millis(500)).build();
                    let client = client.expect("the settings are good");
                    let start = Instant::now();
                    let result = verb(&client, wait);
                    let took = start.elapsed();
                    let Err(Error::NoQuorum(error)) = result else {
                        panic!("{name}: {result:?}")
                    };
                    assert_eq!(report_texts(&error), ["timed out connecting"], "{name}");
                    assert!(
                        took >= wait && took < wait + MARGIN,
                        "{name}: {took:?} of {wait:?}"
                    );
                });
            }
        }
    });
}
