//! Servers may forget scripts at any time: removals still work.

use std::thread;
use std::time::Duration;

use support::cli::Value;
use support::locks::{LONG, all_nodes_client, connected, gone, holders, take, with_long_timeout};
use support::redis::Server;
use support::servers::Servers;

fn flush(server: &Server) {
    assert_eq!(server.command(&["SCRIPT", "FLUSH"]), Value::ok());
}

#[test]
fn servers_that_forgot_the_scripts_still_release() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    for _ in 0..3 {
        let guard = take(&client, "flush", LONG);
        servers.iter().for_each(flush);
        assert_eq!(guard.release(), Ok(()));
        assert_eq!(holders(&servers, "flush"), 0);
        // No later call would send a dropped guard's script again.
        let guard = take(&client, "flush", LONG);
        servers.iter().for_each(flush);
        drop(guard);
        assert!(gone(&servers, "flush"));
    }
}

#[test]
fn a_release_decided_by_a_majority_leaves_no_key_on_servers_that_forgot_the_scripts() {
    let servers = Servers::start(5);
    let client = connected(with_long_timeout(servers.urls()).build().unwrap());
    let left = |round: &usize| {
        let guard = take(&client, format!("flush-{round}"), LONG);
        servers.iter().for_each(flush);
        assert_eq!(guard.release(), Ok(()));
        // This client is not used any more.
        thread::sleep(Duration::from_millis(2));
        holders(&servers, format!("flush-{round}")) > 0
    };
    let left: Vec<_> = (0..100).filter(left).collect();
    assert!(left.is_empty(), "{} of 100 leave keys", left.len());
}
