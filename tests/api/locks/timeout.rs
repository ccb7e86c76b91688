//! Deadlines: when operations end, and that later replies do not count.

use std::array::from_fn;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, Phase};
use redlatch::{Error, LockClient, NoQuorum, NodeError};
use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, calls, connected, gone, holders, pause, report_texts, resume,
    take, with_long_timeout,
};
use support::proxy::{Mode, Proxy};
use support::servers::Servers;
use support::transport::is_tls;

/// How much later than its deadline an operation may end on a busy machine.
const MARGIN: Duration = Duration::from_secs(10);

const SHORT_ROUND: Duration = Duration::from_millis(300);

/// A client that has its connections, and waits for no node for long.
#[track_caller]
fn hasty<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> LockClient {
    let builder = with_long_timeout(urls).node_timeout(SHORT_ROUND);
    connected(builder.build().expect("the settings are good"))
}

#[track_caller]
fn no_quorum<T: std::fmt::Debug>(result: Result<T, Error>) -> NoQuorum {
    match result {
        Err(Error::NoQuorum(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// As when all nodes wait for one disk.
#[test]
fn nodes_that_are_slow_at_the_same_time_are_waited_for() {
    let servers = Servers::start(3);
    let client = hasty(servers.urls());
    let start = Instant::now();
    servers.iter().for_each(|server| {
        assert_eq!(
            server.command(&["CLIENT", "PAUSE", "1000", "ALL"]),
            Value::ok()
        );
    });
    let lock = client
        .try_lock("loaded", LONG)
        .unwrap()
        .expect("it is free");
    assert!(start.elapsed() > SHORT_ROUND && lock.remaining() < LONG - SHORT_ROUND);
    servers.iter().for_each(|server| {
        assert_eq!(
            server.command(&["CLIENT", "PAUSE", "1000", "ALL"]),
            Value::ok()
        );
    });
    lock.release().unwrap();
    assert!(gone(&servers, "loaded"));
}

#[test]
fn waiting_for_a_held_lock_retries_with_pauses() {
    let servers = Servers::start(3);
    let holder = all_nodes_client(servers.urls());
    let _held = take(&holder, "held", LONG);
    let pause = Duration::from_millis(200);
    let builder = with_long_timeout(servers.urls())
        .retry(pause, pause)
        .queue(false);
    let client = connected(builder.build().unwrap());
    let before = calls(&servers[0], "set");
    assert!(
        client
            .request("held")
            .ttl(LONG)
            .try_lock_for(pause * 5)
            .unwrap()
            .is_none()
    );
    // Ten attempts are usual; a tight loop makes hundreds.
    let attempts = calls(&servers[0], "set") - before;
    assert!((2..60).contains(&attempts), "{attempts}");
}

#[test]
fn the_longest_wait_has_no_end() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = take(&client, "ever", LONG);
    // In the nodes' queue, and with attempts after random pauses.
    let waiting = [true, false].map(|queue| {
        let client = with_long_timeout(servers.urls())
            .queue(queue)
            .build()
            .unwrap();
        thread::spawn(move || {
            client
                .request("ever")
                .ttl(LONG)
                .try_lock_for(Duration::MAX)
                .map(|it| it.is_some())
        })
    });
    assert!(eventually(LIMIT, || calls(&servers[0], "set") > 9));
    assert!(waiting.iter().all(|waiter| !waiter.is_finished()));
    held.release().unwrap();
    waiting
        .into_iter()
        .for_each(|waiter| assert_eq!(waiter.join().unwrap(), Ok(true)));
}

#[test]
fn a_held_lock_is_never_reported_as_nodes_that_are_down() {
    let servers = Servers::start(3);
    let delay = Duration::from_millis(10);
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::start(server.port()))
        .collect();
    let client = connected(
        with_long_timeout(proxies.iter().map(Proxy::url))
            .build()
            .unwrap(),
    );
    let _held = take(&all_nodes_client(servers.urls()), "held", LONG);
    proxies.iter().for_each(|proxy| {
        proxy.set(Mode::Delay {
            to_server: delay,
            to_client: delay,
        });
    });
    // Each of these ends while replies are pending, after others have come. Only if none has come,
    // because the machine is very busy, nothing is known: then there was no second attempt.
    let mut known = 0;
    for extra in 0..20 {
        let wait = Duration::from_millis(100 + 2 * extra);
        let before = calls(&servers[0], "set");
        let ended = client.request("held").ttl(LONG).try_lock_for(wait);
        let attempts = calls(&servers[0], "set") - before;
        let is_known = matches!(ended, Ok(None));
        assert!(
            is_known || attempts <= 1,
            "{ended:?} after {attempts} attempts"
        );
        known += usize::from(is_known);
    }
    assert!(known > 0);
}

#[test]
fn a_paused_majority_is_reported_before_its_connections_are_given_up() {
    let servers = Servers::start(5);
    let client = hasty(servers.urls());
    pause(&servers, 3);
    let start = Instant::now();
    let error = no_quorum(client.try_lock("stopped", LONG));
    assert!(start.elapsed() >= SHORT_ROUND && start.elapsed() < SHORT_ROUND + MARGIN);
    assert_eq!(
        (error.answered(), error.needed(), error.reports().len()),
        (2, 3, 5)
    );
    for report in &error.reports()[..3] {
        let timed_out = NodeAnswer::Failed(NodeError::TimedOut(Phase::Answering));
        assert_eq!(report.answer, timed_out);
    }
    for report in &error.reports()[3..] {
        assert_eq!(report.answer, NodeAnswer::Granted);
    }

    // A caller's own deadline also limits the round.
    let wait = Duration::from_secs(1);
    let start = Instant::now();
    let error = no_quorum(client.request("stopped").ttl(LONG).try_lock_for(wait));
    assert!(start.elapsed() > wait / 4 && start.elapsed() < wait + MARGIN);
    assert!(report_texts(&error)[0].starts_with("timed out"), "{error}");
    resume(&servers, 3);
    assert!(eventually(LIMIT, || client
        .try_lock("stopped", LONG)
        .is_ok_and(|it| it.is_some())));
    // A node that was not greeted yet when a majority was gets its removal with a later call.
    assert!(eventually(LIMIT, || !client.nodes().is_empty()
        && holders(&servers, "stopped") == 0));
}

#[test]
fn nodes_paused_before_the_first_connection_time_out_as_well() {
    let servers = Servers::start(3);
    pause(&servers, 2);
    let client = with_long_timeout(servers.urls())
        .node_timeout(SHORT_ROUND)
        .build()
        .unwrap();
    let error = no_quorum(client.try_lock("cold", LONG));
    // The kernel accepts the connections; the servers are silent.
    let phase = if is_tls() {
        Phase::Securing
    } else {
        Phase::Greeting
    };
    assert_eq!(
        error.reports()[0].answer,
        NodeAnswer::Failed(NodeError::TimedOut(phase))
    );
    resume(&servers, 2);
    assert!(eventually(LIMIT, || client
        .try_lock("cold", LONG)
        .is_ok_and(|it| it.is_some())));
    assert!(gone(&servers, "cold"));
}

#[test]
fn a_paused_minority_delays_no_call() {
    let servers = Servers::start(5);
    // A round that waited for it would take a minute.
    let builder = with_long_timeout(servers.urls()).node_timeout(Duration::from_secs(60));
    let client = connected(builder.build().unwrap());
    pause(&servers, 2);
    let start = Instant::now();
    for round in 0..20 {
        let mut guard = take(&client, format!("minority-{round}"), LONG);
        guard.extend(LONG).unwrap();
        guard.release().unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(60));
    resume(&servers, 2);
    assert!((0..20).all(|round| gone(&servers, format!("minority-{round}"))));
}

#[test]
fn nodes_that_resume_after_the_timeout_keep_no_key() {
    let servers = Servers::start(5);
    let client = hasty(servers.urls());
    pause(&servers, 3);
    for round in 0..3 {
        let name = format!("orphan-{round}");
        no_quorum(client.request(name).ttl(LONG).try_lock_for(SHORT_ROUND));
    }
    assert_eq!(
        (0..3)
            .map(|round| holders(&servers[3..], format!("orphan-{round}")))
            .max(),
        Some(0)
    );
    resume(&servers, 3);
    // The removal was written after the command, so the client has nothing more to do.
    for (round, server) in (0..3).flat_map(|round| servers.iter().map(move |it| (round, it))) {
        assert!(eventually(LIMIT, || calls(server, "set") > round));
    }
    assert!((0..3).all(|round| gone(&servers, format!("orphan-{round}"))));
}

#[test]
fn late_replies_do_not_count() {
    let servers = Servers::start(3);
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::start(server.port()))
        .collect();
    let client = hasty(proxies.iter().map(Proxy::url));
    let _held = take(&all_nodes_client(servers.urls()), "held", LONG);
    let late = Mode::Delay {
        to_server: Duration::ZERO,
        to_client: SHORT_ROUND + SHORT_ROUND / 2,
    };
    for round in 0..3 {
        // The grants of a free lock come late ...
        let free = format!("free-{round}");
        proxies.iter().for_each(|proxy| proxy.set(late));
        // If this thread slept for longer than the replies took, they were not late.
        let request = || client.request(&free).ttl(LONG);
        let is_late = || matches!(request().try_lock_for(SHORT_ROUND), Err(Error::NoQuorum(_)));
        assert!(eventually(LIMIT, is_late));
        // ... while the next lock, which is held, is requested.
        proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
        let waited = client
            .request("held")
            .ttl(LONG)
            .try_lock_for(Duration::from_millis(800));
        assert!(matches!(waited, Ok(None)), "{waited:?}");
        assert!(gone(&servers, &free), "late grants are removed");
    }
}

#[test]
fn grants_that_come_after_their_validity_are_no_lock() {
    let servers = Servers::start(3);
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::start(server.port()))
        .collect();
    let client = connected(
        with_long_timeout(proxies.iter().map(Proxy::url))
            .build()
            .unwrap(),
    );
    let delay = Duration::from_millis(150);
    proxies.iter().for_each(|proxy| {
        proxy.set(Mode::Delay {
            to_server: delay,
            to_client: delay,
        });
    });
    let ttl = Duration::from_millis(200);
    match client.try_lock("late", ttl) {
        Err(Error::TooSlow { took, ttl: asked }) => assert!(took >= 2 * delay && asked == ttl),
        other => panic!("{other:?}"),
    }
    // The same with less validity left than requested.
    let least = LONG - Duration::from_millis(200);
    let builder = with_long_timeout(proxies.iter().map(Proxy::url))
        .min_validity(least)
        .drift_factor(0.0);
    let client = connected(builder.build().unwrap());
    assert!(matches!(
        client.try_lock("little", LONG),
        Err(Error::TooSlow { .. })
    ));
    assert!(gone(&servers, "little"));
}

#[test]
fn pending_bytes_for_a_paused_node_are_bounded_and_delay_no_call() {
    let servers = Servers::start(3);
    let huge = |number: usize| format!("{number:060000}");
    let builder = with_long_timeout(servers.urls()).node_timeout(Duration::from_secs(60));
    let client = connected(builder.build().unwrap());
    pause(&servers, 1);
    // Far more than the socket and the client buffer.
    let guards: Vec<_> = (0..100)
        .map(|number| take(&client, huge(number), LONG))
        .collect();
    assert!(guards.into_iter().all(|guard| guard.release() == Ok(())));
    resume(&servers, 1);
    let empty = || {
        servers
            .iter()
            .all(|server| server.command(&["DBSIZE"]) == Value::Integer(0))
    };
    assert!(eventually(LIMIT, || client.nodes().len() == 3 && empty()));

    // With no other node, that is the reported error.
    let builder = with_long_timeout([servers[0].url()]).node_timeout(Duration::from_millis(100));
    let client = connected(builder.build().unwrap());
    pause(&servers, 1);
    // Together more than is kept for a node, within the time after which it is abandoned.
    let refused = |number| no_quorum(client.try_lock(huge(number), LONG));
    let errors = || {
        thread::scope(|scope| {
            let calls: [_; 30] = from_fn(|number| scope.spawn(move || refused(number)));
            calls.map(|call| report_texts(&call.join().unwrap())[0].clone())
        })
    };
    assert!(eventually(LIMIT, || errors()
        .iter()
        .any(|error| error.starts_with("overload"))));
}

#[test]
fn a_paused_node_with_too_many_pending_commands_is_abandoned_and_reconnected() {
    let servers = Servers::start(1);
    let client = with_long_timeout(servers.urls())
        .node_timeout(SHORT_ROUND)
        .build()
        .unwrap();
    let lock = |number| client.lock(format!("many-{number}"), LONG).unwrap();
    let guards: Vec<_> = (0..700).map(lock).collect();
    pause(&servers, 1);
    drop(guards);
    // Each attempt ends at once, so no call waits long enough to notice the silence.
    let reason = || report_texts(&no_quorum(client.try_lock("another", LONG)))[0].clone();
    assert!(
        eventually(LIMIT, || reason().starts_with("overload")),
        "{}",
        reason()
    );
    assert!(
        eventually(LIMIT, || !reason().starts_with("overload")),
        "{}",
        reason()
    );
    resume(&servers, 1);
    let is_taken = || {
        client
            .try_lock("another", LONG)
            .is_ok_and(|guard| guard.is_some())
    };
    assert!(eventually(LIMIT, is_taken));
}
