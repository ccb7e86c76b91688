//! Which nodes vote on registers: formation, restarts, and nodes that forget.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

use std::time::{Duration, Instant};

use redlatch::{LockClient, RegisterError};
use support::cli;
use support::eventually;
use support::locks::{LIMIT, calls, with_long_timeout};
use support::redis::Server;
use support::servers::Servers;

use super::{client, client_with_short_rounds, formed, keys, read, set};

/// Settings with which a server forgets nothing that it has answered.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[test]
fn nodes_that_are_no_group_keep_no_registers() {
    let servers = Servers::start(3);
    let first = client(&servers);
    let register = first.register("a").unwrap();
    assert_eq!(register.read().unwrap_err(), RegisterError::NotFormed);
    assert_eq!(
        register.change(|_| Some(vec![1])).unwrap_err(),
        RegisterError::NotFormed
    );
    let listed: Vec<_> = first.registers().list("*").collect();
    assert!(
        matches!(listed[..], [Err(RegisterError::NotFormed)]),
        "{listed:?}"
    );
    assert_eq!(
        first.registers().sweep().unwrap_err(),
        RegisterError::NotFormed
    );
    // They forget what they answered when they are started again.
    let Err(RegisterError::NotDurable { nodes }) = first.registers().form(false) else {
        panic!("they are in memory")
    };
    assert_eq!(nodes.len(), 3);
    first.registers().form(true).unwrap();
    set(&register, "one");
    for in_memory in [false, true] {
        assert_eq!(
            first.registers().form(in_memory),
            Err(RegisterError::AlreadyFormed)
        );
    }
    assert_eq!(read(&register), Some("one".to_owned()));
    // A client that names other nodes.
    let two = client(&servers[..2]);
    let more = Servers::start(2);
    let refused = two.register("a").unwrap().read().unwrap_err();
    assert!(
        matches!(refused, RegisterError::NodesDiffer { .. }),
        "{refused:?}"
    );
    let urls = [servers.urls(), more.urls()].concat();
    let five = with_long_timeout(urls).build().unwrap();
    for other in [&two, &five] {
        let refused = other.registers().form(true).unwrap_err();
        assert!(
            matches!(refused, RegisterError::NodesDiffer { .. }),
            "{refused:?}"
        );
    }
    let refused = five.register("a").unwrap().read().unwrap_err();
    assert!(
        matches!(refused, RegisterError::NodesDiffer { .. }),
        "{refused:?}"
    );
}

#[test]
fn durable_nodes_vote_again_after_a_restart() {
    let mut servers = Servers::start_with(3, &DURABLE);
    let first = client(&servers);
    first.registers().form(false).unwrap();
    let register = first.register("a").unwrap();
    set(&register, "one");
    for number in 0..3 {
        servers[number].kill();
        set(&register, &format!("{number} is down"));
        servers[number].restart();
        // Another client sees it first.
        let other = client(&servers).register("a").unwrap();
        assert_eq!(read(&other), Some(format!("{number} is down")));
        let has_all = || read(&register).is_some() && mark_is_current(&servers[number]);
        assert!(eventually(LIMIT, has_all));
    }
    // All at once.
    servers.iter_mut().for_each(Server::kill);
    servers.iter_mut().for_each(Server::restart);
    let is_back = || register.read().is_ok();
    assert!(eventually(LIMIT, is_back));
    assert_eq!(read(&register), Some("2 is down".to_owned()));
}

fn mark_is_current(server: &Server) -> bool {
    let mark = server.command(&["GET", ":redlatch:member"]).text();
    let run_id = server.command(&["INFO", "server"]).field("run_id").unwrap();
    mark.contains(&run_id)
}

#[test]
fn a_node_that_forgot_has_no_vote() {
    let (mut servers, _former) = formed(3);
    let first = client_with_short_rounds(&servers);
    let register = first.register("a").unwrap();
    set(&register, "one");
    servers[0].kill();
    servers[0].restart();
    assert_eq!(read(&register), Some("one".to_owned()));
    set(&register, "two");
    assert_eq!(keys(&servers[0]), 0, "it is asked nothing");
    // The connection to the server that was started again may be lost still, and the read below
    // waits for longer than any limit here.
    assert!(eventually(LIMIT, || first.nodes()[0].is_connected));
    // With a second one that is away there is no majority, though two nodes answer.
    servers[1].pause();
    let error = register.read().unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error:?}");
    let why = "it is not a member, or has forgotten that it is";
    assert!(error.to_string().contains(why), "{error}");
    servers[1].resume();
    assert_eq!(read(&register), Some("two".to_owned()));
}

#[test]
fn a_node_that_came_back_with_its_data_but_may_have_lost_some_has_no_vote() {
    // Written once a second.
    let mut servers = Servers::start_with(3, &["--appendonly", "yes"]);
    let first = client(&servers);
    assert!(matches!(
        first.registers().form(false),
        Err(RegisterError::NotDurable { .. })
    ));
    first.registers().form(true).unwrap();
    let register = first.register("a").unwrap();
    set(&register, "one");
    for number in 0..2 {
        servers[number].stop();
        servers[number].restart();
        assert_eq!(keys(&servers[number]), 2, "it has its keys and its mark");
    }
    let error = register.read().unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error:?}");
    assert!(error.to_string().contains("was started again"), "{error}");
    // Also if it is set up better by then.
    for server in servers.iter().take(2) {
        assert_eq!(
            server.command(&["CONFIG", "SET", "appendfsync", "always"]),
            cli::Value::ok()
        );
    }
    assert!(client(&servers).register("a").unwrap().read().is_err());
}

#[test]
fn a_node_that_was_once_set_up_to_forget_is_not_believed_when_it_is_started_again() {
    let mut servers = Servers::start_with(3, &DURABLE);
    let first = client(&servers);
    first.registers().form(false).unwrap();
    let register = first.register("a").unwrap();
    set(&register, "one");
    for server in servers.iter().take(2) {
        server.command(&["CONFIG", "SET", "appendfsync", "everysec"]);
    }
    // Whoever sees it notes it in the mark.
    assert_eq!(
        read(&client(&servers).register("a").unwrap()),
        Some("one".to_owned())
    );
    servers[0].restart();
    servers[1].restart();
    let error = client(&servers).register("a").unwrap().read().unwrap_err();
    assert!(error.to_string().contains("was started again"), "{error}");
}

#[test]
fn a_node_without_a_vote_costs_the_others_no_look_at_each_change() {
    let (mut servers, first) = formed(3);
    let register = first.register("a").unwrap();
    set(&register, "one");
    servers[0].restart();
    set(&register, "two");
    let asked = || calls(&servers[1], "info");
    let before = asked();
    let began = Instant::now();
    for _ in 0..50 {
        set(&register, "again");
    }
    // A look asks for four sections; the first and the last of these calls are this test's own.
    let looks = (asked() - before - 1) / 4;
    assert!(
        looks <= began.elapsed().as_secs() + 1,
        "{looks} looks in {:?}",
        began.elapsed()
    );
}

#[test]
fn a_new_client_waits_once_for_a_frozen_node() {
    let (servers, first) = formed(3);
    set(&first.register("a").unwrap(), "one");
    servers[2].pause();
    let timeout = Duration::from_secs(3);
    let builder = LockClient::builder().nodes(servers.iter().map(Server::url));
    let client = builder.node_timeout(timeout).build().unwrap();
    let register = client.register("a").unwrap();
    let began = Instant::now();
    assert_eq!(read(&register), Some("one".to_owned()));
    set(&register, "two");
    assert_eq!(read(&register), Some("two".to_owned()));
    let took = began.elapsed();
    servers[2].resume();
    assert!(took < timeout * 2, "{took:?}");
}

#[test]
fn a_refused_change_and_a_read_that_disagrees_do_not_wait_for_a_frozen_node() {
    let (servers, first) = formed(3);
    let timeout = Duration::from_secs(10);
    let builder = LockClient::builder().nodes(servers.iter().map(Server::url));
    let client = builder
        .node_timeout(timeout)
        .restart_guard(false)
        .build()
        .unwrap();
    let mine = client.register("a").unwrap();
    let other = first.register("a").unwrap();
    set(&mine, "mine");
    set(&other, "the other's");
    servers[2].pause();
    let began = Instant::now();
    // Its promise is of no use any more, and both nodes that answer say so.
    set(&mine, "mine again");
    // The two nodes that answer disagree.
    let redis = |server: &Server| server.client();
    let key = ":redlatch:register:a";
    redis(&servers[1]).command(&["RENAME", key, "elsewhere"]);
    assert_eq!(read(&mine), Some("mine again".to_owned()));
    let took = began.elapsed();
    servers[2].resume();
    assert!(took < timeout, "{took:?}");
}
