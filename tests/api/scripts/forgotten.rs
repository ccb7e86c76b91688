//! Servers may forget scripts at any time: removals still work.

use std::thread;
use std::time::Duration;

use redlatch::LockClient;
use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, calls, connected, gone, holders, take, with_long_timeout,
};
use support::redis::Server;
use support::servers::Servers;

/// Longer than a client takes a server to know a script that removes a lock.
const UNUSED: Duration = Duration::from_millis(1_100);

fn flush(server: &Server) {
    assert_eq!(server.command(&["SCRIPT", "FLUSH"]), Value::ok());
}

/// How many scripts came by their source, and how many by their digest.
fn scripts(server: &Server) -> (u64, u64) {
    (calls(server, "eval"), calls(server, "evalsha"))
}

/// Takes and gives up locks until the client sends the removals by their digest.
#[track_caller]
fn use_digests(client: &LockClient, servers: &[Server]) {
    let server = &servers[0];
    let is_short = || {
        let before = scripts(server);
        let guard = take(client, "digests", LONG);
        assert_eq!(guard.release(), Ok(()));
        scripts(server) == (before.0, before.1 + 1)
    };
    assert!(eventually(LIMIT, is_short));
}

#[test]
fn a_release_soon_after_another_names_the_script_by_its_digest() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    assert_eq!(take(&client, "first", LONG).release(), Ok(()));
    assert!(servers.iter().all(|server| scripts(server) == (1, 0)));
    use_digests(&client, &servers);
    // The server counts the bytes that it has read, those of this question included.
    let read = || {
        let stats = servers[0].command(&["INFO", "stats"]);
        let bytes = stats
            .field("total_net_input_bytes")
            .expect("it counts them");
        bytes.parse::<u64>().expect("a number")
    };
    let question = {
        let before = read();
        read() - before
    };
    let is_small = || {
        let before = read();
        assert_eq!(take(&client, "bytes", LONG).release(), Ok(()));
        read() - before - question < 256
    };
    assert!(eventually(LIMIT, is_small));
}

#[test]
fn servers_that_forgot_the_scripts_still_release() {
    let servers = Servers::start(5);
    for _ in 0..3 {
        let client = all_nodes_client(servers.urls());
        use_digests(&client, &servers);
        let guard = take(&client, "flush", LONG);
        servers.iter().for_each(flush);
        assert_eq!(guard.release(), Ok(()));
        assert_eq!(holders(&servers, "flush"), 0);
    }
}

#[test]
fn the_next_call_removes_what_a_dropped_guard_left_on_servers_that_forgot_the_scripts() {
    let servers = Servers::start(5);
    for round in 0..3 {
        let client = all_nodes_client(servers.urls());
        use_digests(&client, &servers);
        let guard = take(&client, "flush", LONG);
        servers.iter().for_each(flush);
        drop(guard);
        drop(take(&client, format!("next-{round}"), LONG));
        let read =
            || client.nodes().iter().all(|it| it.is_connected) && holders(&servers, "flush") == 0;
        assert!(eventually(LIMIT, read));
    }
}

#[test]
fn the_end_of_the_client_removes_what_no_call_did_on_servers_that_forgot_the_scripts() {
    let servers = Servers::start(5);
    let left = |round: &usize| {
        let client = connected(with_long_timeout(servers.urls()).build().unwrap());
        use_digests(&client, &servers);
        let released = take(&client, "released", LONG);
        let dropped = take(&client, "dropped", LONG);
        servers.iter().for_each(flush);
        // Decided by a majority: the others answer later that they do not know the script.
        assert_eq!(released.release(), Ok(()));
        if round % 2 == 0 {
            drop(dropped);
            drop(client);
        } else {
            // A guard is the last that has the connections.
            drop(client);
            drop(dropped);
        }
        holders(&servers, "released") + holders(&servers, "dropped") > 0
    };
    let left: Vec<_> = (0..50).filter(left).collect();
    assert!(left.is_empty(), "{} of 50 leave keys", left.len());
}

#[test]
fn a_client_that_was_not_in_use_leaves_no_key_on_servers_that_forgot_the_scripts() {
    let servers = Servers::start(5);
    let client = connected(with_long_timeout(servers.urls()).build().unwrap());
    use_digests(&client, &servers);
    let released = take(&client, "released", LONG);
    let dropped = take(&client, "dropped", LONG);
    thread::sleep(UNUSED);
    servers.iter().for_each(flush);
    // This client is not used any more.
    assert_eq!(released.release(), Ok(()));
    drop(dropped);
    assert!(gone(&servers, "released") && gone(&servers, "dropped"));
}
