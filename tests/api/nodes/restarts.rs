//! Nodes that restart, close idle connections, pause and resume.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard};
use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connections, gone, holders, idle, pause, resume, take, value,
    with_long_timeout,
};
use support::proxy::{Mode, Proxy};
use support::redis::Server;
use support::servers::Servers;

/// Ends all connections but its own, and waits until they are closed.
fn hang_up(server: &Server) {
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert!(eventually(LIMIT, || connections(server, "redlatch") == 0));
    idle();
}

#[test]
fn a_connection_closed_while_idle_costs_no_vote() {
    // With one node, and with three that must all reply.
    for count in [1, 3] {
        let servers = Servers::start(count);
        let client = all_nodes_client(servers.urls());
        for round in 0..20 {
            let name = format!("idle-{round}");
            let mut guard = take(&client, &name, LONG);
            assert_eq!(holders(&servers, &name), count);
            servers.iter().for_each(hang_up);
            guard.extend(LONG).unwrap();
            servers.iter().for_each(hang_up);
            assert_eq!(guard.release(), Ok(()));
            assert_eq!(holders(&servers, &name), 0);
            servers.iter().for_each(hang_up);
        }
    }
}

#[test]
fn a_servers_idle_timeout_costs_no_vote() {
    let server = Server::start(&["--timeout", "1"]);
    let client = all_nodes_client([server.url()]);
    for round in 0..2 {
        take(&client, format!("idle-{round}"), LONG)
            .release()
            .unwrap();
        assert!(eventually(LIMIT, || connections(&server, "redlatch") == 0));
    }
    take(&client, "idle", LONG).release().unwrap();
}

#[test]
fn a_restart_while_the_client_is_idle_costs_no_vote() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    for round in 0..3 {
        let name = format!("restart-{round}");
        let guard = take(&client, &name, LONG);
        assert_eq!(holders(&servers, &name), 3);
        guard.release().unwrap();
        servers.iter_mut().for_each(Server::restart);
    }
}

#[test]
fn a_guard_dropped_while_a_connection_is_broken_is_removed_with_the_next_traffic() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "dead", LONG);
    servers.iter().for_each(hang_up);
    drop(guard);
    assert!(eventually(LIMIT, || !client.nodes().is_empty()
        && holders(&servers, "dead") == 0));
}

#[test]
fn a_lock_that_is_extended_outlives_the_restart_of_every_node_in_turn() {
    let mut servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "rolling", LONG);
    let token = value(&servers[0], "rolling");
    for index in 0..5 {
        servers[index].restart();
        assert_eq!(
            value(&servers[index], "rolling"),
            None,
            "it restarts without keys"
        );
        guard.extend(LONG).unwrap();
        assert!(eventually(LIMIT, || holders(&servers, "rolling") == 5));
    }
    assert!(
        servers
            .iter()
            .all(|server| value(server, "rolling") == token)
    );
    assert!(
        all_nodes_client(servers.urls())
            .try_lock("rolling", LONG)
            .unwrap()
            .is_none()
    );
    assert_eq!(guard.release(), Ok(()));
    assert!(gone(&servers, "rolling"));
}

#[test]
fn a_majority_that_restarts_empty_has_lost_the_lock() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let mut guard = take(&client, "forgotten", LONG);
    servers[..2].iter_mut().for_each(Server::restart);
    assert!(guard.extend(LONG).is_err());
    assert!(guard.remaining().is_zero());
    assert_eq!(holders(&servers[..2], "forgotten"), 0);
}

#[test]
fn a_node_that_comes_back_is_used_again() {
    let mut servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    take(&client, "before", LONG).release().unwrap();
    servers[0].kill();
    for round in 0..50 {
        take(&client, format!("without-{round}"), LONG)
            .release()
            .unwrap();
    }
    servers[0].restart();
    let is_used = || {
        let guard = take(&client, "with", LONG);
        let used = eventually(Duration::from_millis(20), || {
            holders(&servers[..1], "with") == 1
        });
        guard.release().unwrap();
        used
    };
    assert!(eventually(LIMIT, is_used));
}

#[test]
fn a_node_that_was_paused_for_long_is_used_again() {
    let servers = Servers::start(3);
    // The connection is abandoned after ten times this.
    let round = Duration::from_millis(50);
    let client = with_long_timeout(servers.urls())
        .node_timeout(round)
        .build()
        .unwrap();
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    pause(&servers, 1);
    let is_given_up = || {
        drop(client.try_lock("while", LONG));
        !client.nodes()[0].is_connected
    };
    assert!(eventually(LIMIT, is_given_up));
    resume(&servers, 1);
    assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
    // Commands that were written on abandoned connections were undone too.
    let is_clean = || !client.nodes().is_empty() && holders(&servers, "while") == 0;
    assert!(eventually(LIMIT, is_clean));
}

#[test]
fn an_orderly_shutdown_of_a_server_is_handled_like_a_crash() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let stopping = thread::scope(|scope| {
        let stopping = scope.spawn(|| {
            servers[2].stop();
        });
        for round in 0..100 {
            take(&client, format!("stopping-{round}"), LONG)
                .release()
                .unwrap();
        }
        stopping.join()
    });
    assert!(stopping.is_ok());
    take(&client, "stopped", LONG).release().unwrap();
    let empty = |server: &Server| server.command(&["DBSIZE"]) == Value::Integer(0);
    assert!(eventually(LIMIT, || servers[..2].iter().all(empty)));
}

/// The longest pause before a node is connected to again.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A call times out at a frozen server, which is then killed and started again. Nobody drives the
/// connection meanwhile, so that the next call is the first to see that it has ended.
#[test]
fn the_first_call_after_one_that_timed_out_asks_a_node_that_is_back() {
    type Call = fn(&LockClient, LockGuard) -> Result<(), Error>;
    let calls: [(&str, Call); 6] = [
        ("try_lock", |client, _| {
            client.try_lock("other", LONG).map(drop)
        }),
        ("inspect", |client, _| client.inspect("other").map(drop)),
        ("extend", |_, mut guard| guard.extend(LONG)),
        ("release", |_, guard| guard.release()),
        ("register", |client, _| {
            Ok(client.register("other")?.read().map(drop)?)
        }),
        ("nodes", |client, _| {
            let node = &client.nodes()[0];
            assert!(node.is_connected, "{node:?}");
            Ok(())
        }),
    ];
    let keeps = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start(&keeps);
    let client = || {
        let round = Duration::from_millis(300);
        with_long_timeout([server.url()])
            .node_timeout(round)
            .build()
            .unwrap()
    };
    client()
        .registers()
        .form(false)
        .expect("it keeps what it answers");
    let callers = calls.map(|(name, call)| {
        let client = client();
        let held = take(&client, name, LONG);
        (name, call, client, held)
    });
    // The greeting of this one times out.
    let new = client();
    server.pause();
    thread::scope(|scope| {
        let clients = callers.iter().map(|(_, _, client, _)| client).chain([&new]);
        let timed_out = |client: &LockClient| client.try_lock("while", LONG).expect_err("frozen");
        let calls: Vec<_> = clients
            .map(|client| scope.spawn(move || timed_out(client)))
            .collect();
        calls
            .into_iter()
            .for_each(|call| drop(call.join().expect("an error")));
    });
    server.kill();
    server.restart();
    thread::sleep(PAUSE_MAX);
    for (name, call, client, held) in callers {
        call(&client, held).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    take(&new, "new", LONG).release().expect("the node is back");
}

/// As before, but the end of the connection is never seen, as behind a firewall that forgot it.
#[test]
fn the_first_call_after_one_that_timed_out_trusts_no_connection_that_was_silent_for_long() {
    let server = Server::start(&[]);
    let round = Duration::from_millis(200);
    let is_asked = || {
        let proxy = Proxy::start(server.port());
        let client = with_long_timeout([proxy.url()])
            .node_timeout(round)
            .build()
            .unwrap();
        assert!(eventually(LIMIT, || client
            .try_lock("before", LONG)
            .is_ok()));
        proxy.set(Mode::Vanish);
        client
            .try_lock("while", LONG)
            .expect_err("nothing is answered");
        proxy.set(Mode::Pass);
        // The connection is given up after ten times this.
        thread::sleep(round * 10);
        let start = Instant::now();
        match client.try_lock("after", LONG) {
            Ok(_) => true,
            // On a busy machine, the connection may not be made in time.
            Err(Error::NoQuorum(_)) if start.elapsed() >= round => false,
            Err(error) => panic!("after {:?}: {error}", start.elapsed()),
        }
    };
    assert!(eventually(LIMIT, is_asked));
}
