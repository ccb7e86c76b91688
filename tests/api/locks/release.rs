//! Releasing locks, with `release` and by dropping guards: the client's own keys are removed, and
//! no others.

use std::thread;
use std::time::Duration;

use redlatch::{Error, LockClient};
use support::cli::Value;
use support::eventually;
use support::locks::{
    BRIEF, LIMIT, LONG, all_nodes_client, connected, gone, holders, pause, report_texts, resume,
    take, value, with_long_timeout,
};
use support::redis::Server;
use support::servers::Servers;

const SHORT_ROUND: Duration = Duration::from_millis(300);

/// A client that has its connections, and waits for all nodes, but not for long.
fn connected_client(servers: &Servers) -> LockClient {
    let builder = with_long_timeout(servers.urls()).node_timeout(SHORT_ROUND);
    connected(
        builder
            .wait_for_all(true)
            .build()
            .expect("the settings are good"),
    )
}

#[test]
fn a_release_after_the_validity_is_too_late_but_no_error() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "late", BRIEF);
    assert!(eventually(LIMIT, || guard.remaining().is_zero()));
    assert!(matches!(guard.release(), Err(Error::Lost(_))));

    // The same if a majority has lost the key before.
    let guard = take(&client, "lost", LONG);
    servers[0].command(&["DEL", "lost"]);
    servers[2].command(&["DEL", "lost"]);
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert!(gone(&servers, "lost"));
}

#[test]
fn a_foreign_key_is_never_deleted() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let dropped = take(&client, "theirs", LONG);
    for server in servers.iter() {
        server.command(&["SET", "theirs", "another's", "PX", "60000"]);
    }
    drop(dropped);
    let untouched = || {
        let is_there = |server| value(server, "theirs").as_deref() == Some(&b"another's"[..]);
        // All earlier replies have come when these have.
        client.nodes().iter().all(|node| node.is_connected) && servers.iter().all(is_there)
    };
    assert!(untouched());
    // The release of the former holder then finds no key of its own.
    let late = take(&client, "late", BRIEF);
    assert!(eventually(LIMIT, || late.remaining().is_zero()
        && holders(&servers, "late") == 0));
    let theirs = take(&all_nodes_client(servers.urls()), "late", LONG);
    assert!(matches!(late.release(), Err(Error::Lost(_))));
    assert!(untouched());
    assert_eq!(theirs.release(), Ok(()));
}

#[test]
fn a_key_of_another_type_is_not_deleted() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "list", LONG);
    for server in &servers[..2] {
        server.command(&["DEL", "list"]);
        server.command(&["RPUSH", "list", "item"]);
    }
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert_eq!(servers[0].command(&["LLEN", "list"]), Value::Integer(1));
    assert!(gone(&servers[2..], "list"));
}

#[test]
fn with_a_minority_down_a_release_is_in_time() {
    let mut servers = Servers::start(5);
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .build()
        .unwrap();
    let guard = take(&client, "minority", LONG);
    servers[0].kill();
    servers[1].kill();
    assert_eq!(guard.release(), Ok(()));
    assert!(gone(&servers[2..], "minority"));
}

#[test]
fn with_a_paused_majority_a_release_is_unknown_and_happens_when_they_resume() {
    let servers = Servers::start(5);
    let client = connected_client(&servers);
    let guard = take(&client, "majority", LONG);
    assert_eq!(holders(&servers, "majority"), 5);
    pause(&servers, 3);
    let Error::NoQuorum(error) = guard.release().unwrap_err() else {
        panic!()
    };
    assert_eq!((error.answered(), error.needed()), (2, 3));
    assert_eq!(holders(&servers[3..], "majority"), 0);
    resume(&servers, 3);
    // It was written to them, so no further call is needed.
    assert!(gone(&servers, "majority"));
}

#[test]
fn with_a_majority_down_a_release_says_why() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "down", LONG);
    servers[0].kill();
    servers[1].kill();
    let Error::NoQuorum(error) = guard.release().unwrap_err() else {
        panic!()
    };
    // Not a timeout: they refused at once.
    let refused = "no connection: Connection refused (os error 111)";
    assert_eq!(report_texts(&error), [refused, refused, "granted"]);
    assert!(gone(&servers[2..], "down"));
}

#[test]
fn a_removal_that_could_not_be_written_is_sent_on_the_next_connection() {
    let servers = Servers::start(3);
    let client = connected_client(&servers);
    let guard = take(&client, "owed", LONG);
    // The first node's connection breaks without notice, and no new one is possible for now.
    let mut only = servers[0].client();
    only.command(&["CONFIG", "SET", "maxclients", "1"]);
    only.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert_eq!(guard.release(), Ok(()));
    assert_eq!(only.command(&["EXISTS", "owed"]), Value::Integer(1));
    only.command(&["CONFIG", "SET", "maxclients", "100"]);
    // Any traffic sends the pending release.
    let paid = || {
        drop(client.nodes());
        only.command(&["EXISTS", "owed"]) == Value::Integer(0)
    };
    assert!(eventually(LIMIT, paid));
}

/// Ends all connections of clients, as a server's `timeout` does.
fn end_connections(servers: &Servers) {
    for server in servers.iter() {
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    // A call that follows on another within a quarter of a millisecond does not look for ends.
    thread::sleep(Duration::from_millis(1));
}

#[test]
fn a_lock_whose_connections_have_ended_is_removed_over_new_ones() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let released = take(&client, "released", LONG);
    end_connections(&servers);
    assert_eq!(released.release(), Ok(()));
    assert!(gone(&servers, "released"));

    // A drop waits for nothing, so the next call connects.
    let dropped = take(&client, "dropped", LONG);
    end_connections(&servers);
    drop(dropped);
    take(&client, "next", LONG).release().unwrap();
    assert!(gone(&servers, "dropped"));

    // An I/O thread needs no call.
    let builder = with_long_timeout(servers.urls()).io_thread(true);
    let client = builder.build().expect("the settings are good");
    let dropped = take(&client, "dropped", LONG);
    end_connections(&servers);
    drop(dropped);
    assert!(gone(&servers, "dropped"));
}

#[test]
fn dropping_thousands_of_guards_at_once_releases_all() {
    let server = Server::start(&[]);
    let client = all_nodes_client([server.url()]);
    let guards: Vec<_> = (0..3_000)
        .map(|i| take(&client, format!("many-{i}"), LONG))
        .collect();
    drop(guards);
    let is_empty = || server.command(&["DBSIZE"]) == Value::Integer(0);
    assert!(eventually(LIMIT, || !client.nodes().is_empty() && is_empty()));
}

#[test]
fn dropping_a_guard_does_not_wait_for_a_paused_node() {
    let servers = Servers::start(5);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    let guards: Vec<_> = (0..50)
        .map(|i| take(&client, format!("stopped-{i}"), LONG))
        .collect();
    pause(&servers, 3);
    // If it waited, it would be for 5 s each (node_timeout), longer than the test allows.
    let dropping = thread::spawn(move || drop(guards));
    assert!(eventually(LIMIT, || dropping.is_finished()));
    resume(&servers, 3);
    assert!(eventually(LIMIT, || servers
        .iter()
        .all(|server| server.command(&["DBSIZE"]) == Value::Integer(0))));
}

#[test]
fn dropping_a_client_waits_for_its_removals() {
    const LOCKS: usize = 400;
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let name = |index: usize| format!("many:{index}");
    let guards: Vec<_> = (0..LOCKS)
        .map(|index| take(&client, name(index), LONG))
        .collect();
    // More than a server reads at once: it never reads bytes that are unread when it finds the
    // connection closed.
    pause(&servers, 1);
    drop(guards);
    thread::scope(|scope| {
        scope.spawn(|| {
            // The client should run first. If it does not, the test checks less, but does not fail.
            thread::sleep(Duration::from_millis(100));
            resume(&servers, 1);
        });
        drop(client);
    });
    let sizes = servers.iter().map(|server| server.command(&["DBSIZE"]));
    sizes.for_each(|size| assert_eq!(size, Value::Integer(0)));
}

#[test]
fn after_many_guards_are_dropped_at_once_locks_can_be_acquired_again() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    let guards: Vec<_> = (0..700)
        .map(|lock| take(&client, format!("many-{lock}"), LONG))
        .collect();
    // So many removals are unanswered that there is room for removals only. Their replies have
    // arrived.
    drop(guards);
    assert!((0..700).all(|lock| gone(&servers, format!("many-{lock}"))));
    assert!(client.try_lock("another", LONG).unwrap().is_some());
}
