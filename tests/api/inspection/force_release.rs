//! A forced release removes exactly the inspected lock: later locks stay, and so do values that are
//! no locks.

use std::time::Duration;

use redlatch::{Error, Inspection, LockClient};
use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, holders, pttl, take, value,
    without_restart_guard,
};
use support::relay::{Relay, limited_urls, reconnect, relayed, urls};
use support::servers::Servers;

#[track_caller]
fn look(client: &LockClient) -> Inspection {
    client.inspect("job").expect("a majority answers")
}

/// Runs a command on each of the servers.
fn run_on_each(servers: &Servers, command: &str) {
    let words: Vec<_> = command.split(' ').collect();
    for server in servers.iter() {
        let reply = server.command(&words);
        assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
    }
}

/// Inspects a lock and force-releases it.
fn force(client: &LockClient, name: &str) -> Result<bool, Error> {
    client.force_release(&client.inspect(name).expect("a majority answers"))
}

#[test]
fn keys_on_single_nodes_are_removed_as_well() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    for (index, server) in servers.iter().enumerate() {
        server.command(&["SET", "job", &format!("attempt-{index}"), "PX", "50000"]);
    }
    let seen = look(&client);
    assert_eq!(client.force_release(&seen), Ok(true));
    assert_eq!(holders(&servers, "job"), 0);
}

#[test]
fn a_lock_acquired_after_the_inspection_stays() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let other = all_nodes_client(servers.urls());
    for is_free in [true, false] {
        let before = (!is_free).then(|| take(&client, "job", LONG));
        let seen = look(&other);
        before.into_iter().for_each(|guard| drop(guard.release()));
        let mut next = take(&client, "job", LONG);
        let token = value(&servers[0], "job");
        assert_eq!(
            other.force_release(&seen),
            Ok(false),
            "the inspected lock is gone"
        );
        assert!(servers.iter().all(|server| value(server, "job") == token));
        next.extend(LONG).expect("it was not removed");
        assert_eq!(next.release(), Ok(()));
    }
}

#[test]
fn a_value_that_is_no_lock_is_refused_and_stays() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let things = ["HSET job field value", "RPUSH job element", "SET job value"];
    for thing in things {
        run_on_each(&servers, thing);
        let refused = client.force_release(&look(&client));
        let is_refused = matches!(refused, Err(Error::NotALock { .. }));
        assert!(is_refused, "{thing}: {refused:?}");
        run_on_each(&servers, "PEXPIRE job 50000");
        // A string with a ttl may be a lock of another program. Any other value is not a lock.
        if !thing.starts_with("SET") {
            let refused = client.force_release(&look(&client));
            let is_refused = matches!(refused, Err(Error::NotALock { .. }));
            assert!(is_refused, "{thing}: {refused:?}");
        }
        let is_there = |server| pttl(server, "job") > 0;
        assert!(servers.iter().all(is_there), "{thing}: it stays");
        run_on_each(&servers, "DEL job");
    }
}

#[test]
fn a_value_that_changed_after_the_inspection_stays() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let other = all_nodes_client(servers.urls());
    for thing in ["HSET job field value", "RPUSH job element", "SET job value"] {
        let guard = take(&client, "job", LONG);
        let seen = look(&other);
        run_on_each(&servers, "DEL job");
        run_on_each(&servers, thing);
        // Counted as gone or as no lock, it is not changed.
        let forced = other.force_release(&seen);
        assert!(!matches!(forced, Ok(true)), "{thing}: {forced:?}");
        assert!(
            servers.iter().all(|server| pttl(server, "job") == -1),
            "{thing}: it stays"
        );
        assert!(matches!(guard.release(), Err(Error::Lost(_))));
        run_on_each(&servers, "DEL job");
    }
}

/// The command that removes the lock arrives when another client has the lock.
#[track_caller]
fn removal_comes_late(urls_of: impl Fn(&Servers, &[Relay]) -> Vec<String>) {
    let servers = Servers::start(3);
    let relays = relayed(&servers);
    let builder =
        without_restart_guard(urls_of(&servers, &relays)).node_timeout(Duration::from_millis(200));
    let client = connected(builder.build().expect("the settings are good"));
    let holder = all_nodes_client(servers.urls());
    let guard = take(&holder, "job", LONG);
    let mut seen = None;
    // A round may be too short on a busy machine.
    assert!(eventually(LIMIT, || {
        seen = client.inspect("job").ok();
        seen.is_some()
    }));
    relays[..2].iter().for_each(Relay::hold);
    let forced = client.force_release(&seen.expect("it was looked at"));
    assert!(matches!(forced, Err(Error::NoQuorum(_))), "{forced:?}");
    reconnect(&client, &relays[..2]);
    drop(guard);
    assert!(gone(&servers, "job"));
    let next = take(&holder, "job", LONG);
    relays.iter().for_each(Relay::deliver);
    assert_eq!(holders(&servers, "job"), 3);
    assert_eq!(next.release(), Ok(()));
}

#[test]
fn a_late_forced_release_does_not_remove_the_next_lock() {
    removal_comes_late(|_, relays| urls(relays));
}

#[test]
fn a_late_forced_release_does_not_remove_the_next_lock_without_the_right_to_kill_connections() {
    support::needs!(Users);
    removal_comes_late(|servers, relays| limited_urls(servers, relays));
}

#[test]
fn a_key_on_one_node_is_reported_as_a_lock() {
    let servers = Servers::start(3);
    let other = all_nodes_client(servers.urls());
    // Any string may be another program's.
    servers[1].command(&["SET", "odd", "x", "PX", "60000"]);
    assert!(force(&other, "odd").unwrap());
    assert_eq!(servers[1].command(&["EXISTS", "odd"]).integer(), 0);
    for name in ["", "job:redlatch:fence", "job:redlatch:queue"] {
        assert!(matches!(other.inspect(name), Err(Error::Resource(_))));
    }
}

#[test]
fn a_lock_is_removed_although_another_node_has_a_value_that_is_no_lock() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let long = "x".repeat(1024);
    let others: [&[&str]; 5] = [
        &["LPUSH", "data", "x"],
        &["HSET", "data", "field", "x"],
        &["SET", "data", "x"],
        &["SET", "data", "", "PX", "60000"],
        &["SET", "data", &long, "PX", "60000"],
    ];
    for words in others {
        servers[1].command(&["DEL", "data"]);
        servers[1].command(words);
        let error = force(&client, "data").unwrap_err();
        let Error::NotALock { urls, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(urls.len(), 1);
        assert!(error.to_string().contains(&*urls[0]), "{error}");
        assert_eq!(
            servers[1].command(&["EXISTS", "data"]).integer(),
            1,
            "{words:?}"
        );
        // The lock on the other nodes is removed anyway, and that value stays.
        servers[0].command(&["SET", "data", "lock", "PX", "60000"]);
        assert!(force(&client, "data").unwrap(), "{words:?}");
        assert_eq!(servers[0].command(&["EXISTS", "data"]).integer(), 0);
        assert_eq!(
            servers[1].command(&["EXISTS", "data"]).integer(),
            1,
            "{words:?}"
        );
    }
}
