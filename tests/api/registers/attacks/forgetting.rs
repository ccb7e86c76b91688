//! Nodes that forget, and other servers in their place.

use super::setting::{DURABLE, append, client, durable, formed, read, set, text};
use redlatch::{LockClient, RegisterError};
use std::time::Duration;
use support::eventually;
use support::locks::LIMIT;
use support::proxy::{Mode, Proxy, proxied};
use support::redis::Server;
use support::servers::Servers;

fn flush(servers: &[Server]) {
    servers
        .iter()
        .for_each(|server| drop(server.command(&["FLUSHALL"])));
}

#[test]
fn a_majority_that_has_forgotten_is_an_error_and_no_empty_register() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    set(&register, "one");
    flush(&servers[..1]);
    assert_eq!(read(&register), Some("one".to_owned()));
    flush(&servers[..2]);
    // The former client may have sent its change to the node that is left.
    assert!(register.change(|_| Some(vec![1])).is_err());
    let register = client(&servers.urls()).register("a").unwrap();
    let error = register.read().unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
    let error = register.change(|_| Some(vec![1])).unwrap_err();
    assert!(!error.may_have_happened(), "{error}");
}

#[test]
fn a_client_of_a_former_group_loses_no_change_of_the_new_one() {
    let (servers, old) = formed(3);
    let mine = old.register("a").unwrap();
    let other = old.register("b").unwrap();
    for number in 0..5 {
        set(&mine, &format!("old {number}"));
    }
    // All is lost, and an operator begins again.
    flush(&servers);
    let fresh = client(&servers.urls());
    fresh.registers().form(true).unwrap();
    let register = fresh.register("a").unwrap();
    set(&register, "new");
    // The old client learns of the new group by any register.
    assert_eq!(read(&other), None);
    let changed = mine.change(|value| append(value, " and more")).unwrap();
    assert_eq!(text(changed.before()), Some("new".to_owned()));
    assert_eq!(read(&register), Some("new and more".to_owned()));
}

/// One node misses a change that the other two have, and is down.
fn with_two_of_three(servers: &[Server], change: &str) {
    let proxies = proxied(servers);
    proxies.0[2].set(Mode::Refuse);
    set(&client(&proxies.1).register("a").unwrap(), change);
}

#[test]
fn a_node_that_was_started_from_its_snapshot_stays_without_a_vote() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let others = Servers::start_with(2, &DURABLE);
    let first = Server::start(&[&DURABLE[..], &["--dir", folder]].concat());
    let all = [&first, &others[0], &others[1]];
    urls(&all).registers().form(false).unwrap();
    set(&urls(&all).register("a").unwrap(), "one");
    first.command(&["SAVE"]);
    let lost = Proxy::start(others[1].port());
    lost.set(Mode::Refuse);
    let two_of_three = client(&[first.url(), others[0].url(), lost.url()]);
    set(&two_of_three.register("a").unwrap(), "two");
    drop(first);
    // It is started from its snapshot by mistake, which a client sees, and is then corrected.
    let first = Server::start(&["--dir", folder]);
    let all = [&first, &others[0], &others[1]];
    let seeing = client(&[first.url(), others[0].url(), lost.url()]);
    assert!(seeing.register("a").unwrap().read().is_err());
    for setting in [["appendonly", "yes"], ["appendfsync", "always"]] {
        first.command(&["CONFIG", "SET", setting[0], setting[1]]);
    }
    others[0].pause();
    let value = urls(&all).register("a").unwrap().read();
    assert_ne!(
        value.map(|value| text(value.as_ref())),
        Ok(Some("one".to_owned()))
    );
}

fn follows(replica: &Server, master: &Server) {
    let port = master.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    let is_up = || {
        let info = replica.command(&["INFO", "replication"]);
        info.field("master_link_status").as_deref() == Some("up")
    };
    assert!(eventually(LIMIT, is_up), "it does not follow");
}

fn urls(servers: &[&Server]) -> LockClient {
    let urls: Vec<String> = servers.iter().map(|server| server.url()).collect();
    client(&urls)
}

#[test]
fn a_replica_that_was_promoted_has_no_vote() {
    let mut servers = durable();
    let register = |client: &LockClient| client.register("a").unwrap();
    set(&register(&client(&servers.urls())), "one");
    let replica = Server::start(&DURABLE);
    follows(&replica, &servers[0]);
    // Clients come and see that the node has a replica.
    set(&register(&client(&servers.urls())), "two");
    let is_copied = || {
        let copied = |server: &Server| server.command(&["GET", ":redlatch:register:a"]);
        copied(&replica) == copied(&servers[0])
    };
    assert!(eventually(LIMIT, is_copied));
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    // One of the two majorities without a common node must not exist.
    let one = register(&urls(&[&servers[0], &servers[1], &servers[2]]));
    servers[2].pause();
    let first = one.change(|value| append(value, " and left"));
    servers[2].kill();
    servers[2].restart();
    servers[1].pause();
    let other = register(&urls(&[&replica, &servers[1], &servers[2]]));
    let second = other.change(|value| append(value, " and right"));
    servers[1].resume();
    let first = first.is_ok();
    let second = second.map(|it| text(it.before()));
    let values = (
        read(&one),
        read(&register(&urls(&[&replica, &servers[1], &servers[2]]))),
    );
    assert!(
        !first || second.is_err(),
        "two histories: {second:?} {values:?}"
    );
}

#[test]
fn a_node_that_has_followed_another_one_has_no_vote() {
    let servers = durable();
    set(&client(&servers.urls()).register("a").unwrap(), "one");
    with_two_of_three(&servers, "two");
    // By mistake, the first becomes a copy of the third, which has missed the change.
    follows(&servers[0], &servers[2]);
    servers[0].command(&["REPLICAOF", "NO", "ONE"]);
    let gone = || {
        let info = servers[2].command(&["INFO", "replication"]);
        info.field("connected_slaves").as_deref() == Some("0")
    };
    assert!(eventually(LIMIT, gone));
    servers[1].pause();
    let client = client(&servers.urls());
    let value = client.register("a").unwrap().read();
    assert_ne!(
        value.map(|value| text(value.as_ref())),
        Ok(Some("one".to_owned()))
    );
}

#[test]
fn one_server_behind_two_urls_is_one_node() {
    let (servers, _) = formed(3);
    let twice = client(&[
        servers[0].url(),
        servers[0].url().replace("127.0.0.1", "localhost"),
        servers[1].url(),
    ]);
    let register = twice.register("a").unwrap();
    // Two different servers of the three.
    set(&register, "one");
    servers[1].pause();
    let alone = super::setting::with_timeout(
        &[
            servers[0].url(),
            servers[0].url().replace("127.0.0.1", "localhost"),
            servers[1].url(),
        ],
        Duration::from_millis(300),
    );
    let error = alone
        .register("a")
        .unwrap()
        .change(|_| Some(vec![1]))
        .unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
}

#[test]
fn of_one_and_two_nodes_all_must_answer() {
    for count in [1, 2] {
        let (servers, client) = formed(count);
        let register = client.register("a").unwrap();
        for number in 0..10 {
            set(&register, &number.to_string());
            assert_eq!(read(&register), Some(number.to_string()));
        }
        register.delete().unwrap();
        assert_eq!(read(&register), None);
        set(&register, "again");
        flush(&servers[..1]);
        assert!(register.read().is_err());
    }
}

#[test]
fn a_node_without_a_vote_and_one_that_refuses_are_not_all_nodes() {
    let (servers, first) = formed(3);
    let mine = first.register("a").unwrap();
    let other = client(&servers.urls());
    let other = other.register("a").unwrap();
    flush(&servers[..1]);
    for number in 0..200 {
        // Each finds that the other one came first.
        set([&mine, &other][number % 2], &number.to_string());
    }
}

#[test]
fn a_group_in_its_last_epoch_goes_on_and_repairs_no_node() {
    let (servers, first) = formed(3);
    for server in servers.iter() {
        let mark = server.command(&["GET", ":redlatch:member"]).text();
        let mut words: Vec<&str> = mark.split(' ').collect();
        words[3] = "8191";
        server.command(&["SET", ":redlatch:member", &words.join(" ")]);
    }
    let register = first.register("a").unwrap();
    set(&register, "one");
    flush(&servers[1..2]);
    for _ in 0..2 {
        let Err(RegisterError::NotRepaired { why, .. }) = first.registers().repair() else {
            panic!("there is no ballot in the epoch that follows")
        };
        assert!(why.contains("last epoch"), "{why}");
    }
    set(&register, "two");
    assert_eq!(
        read(&client(&servers.urls()).register("a").unwrap()),
        Some("two".to_owned())
    );
}

#[test]
fn a_register_is_read_while_the_members_enter_an_epoch_one_after_another() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    set(&register, "one");
    flush(&servers[2..]);
    // A repair that ends when one of the two members has entered the epoch that was decided.
    let mark = servers[0].command(&["GET", ":redlatch:member"]).text();
    let mut words: Vec<&str> = mark.split(' ').collect();
    words[3..5].copy_from_slice(&["2", "0123456789abcdef"]);
    servers[0].command(&["SET", ":redlatch:member", &words.join(" ")]);
    assert_eq!(read(&register), Some("one".to_owned()));
}

#[test]
fn a_copy_of_a_member_does_not_vote_in_its_name_while_that_one_is_away() {
    let servers = durable();
    let first = client(&servers.urls());
    set(&first.register("a").unwrap(), "one");
    set(&first.register("b").unwrap(), "one");
    with_two_of_three(&servers, "two");
    follows(&servers[0], &servers[2]);
    servers[0].command(&["REPLICAOF", "NO", "ONE"]);
    // The next client that comes does not see the member of which there is a copy.
    servers[2].pause();
    let _ = client(&servers.urls()).register("b").unwrap().read();
    servers[2].resume();
    servers[1].pause();
    let value = client(&servers.urls()).register("a").unwrap().read();
    assert_ne!(
        value.map(|value| text(value.as_ref())),
        Ok(Some("one".to_owned()))
    );
}
