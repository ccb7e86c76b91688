//! Nodes without a vote get one again: those that forgot.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use redlatch::{LockClient, RegisterError};
use support::eventually;
use support::locks::{LIMIT, with_long_timeout};
use support::redis::Server;
use support::servers::Servers;

use super::{client, formed, keys, read, set};

/// What the others say while one of three nodes is not a member.
fn read_without(servers: &[Server], node: usize, names: &[&str]) -> Vec<Option<String>> {
    let mark = |words: &[&str]| servers[node].command(words).text();
    let member = mark(&["GETSET", ":redlatch:member", "another program's"]);
    let client = client(servers);
    let values = names
        .iter()
        .map(|name| read(&client.register(name).unwrap()));
    let values = values.collect();
    mark(&["SET", ":redlatch:member", &member]);
    values
}

pub(crate) fn some(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// The URL as it is told.
pub(crate) fn shown(server: &Server) -> String {
    format!("{}/0", server.url())
}

/// Sets the flag when the scope is left, also by a panic.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn flush(server: &Server) {
    server.command(&["FLUSHALL"]);
}

pub(crate) fn repaired(client: &LockClient) -> Vec<String> {
    client
        .registers()
        .repair()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The nodes that have got a vote, one of them in the place of this server.
pub(crate) fn replaced(client: &LockClient, old: &Server) -> Vec<String> {
    let replaced = client.registers().replace(&old.url()).unwrap();
    replaced.iter().map(ToString::to_string).collect()
}

/// The servers with another one in the place of the last.
pub(crate) fn with_third(servers: &[Server], third: &Server) -> LockClient {
    with_long_timeout([servers[0].url(), servers[1].url(), third.url()])
        .build()
        .unwrap()
}

#[test]
fn a_node_that_was_emptied_gets_all_registers_and_its_vote() {
    let (servers, first) = formed(3);
    let a = first.register("a").unwrap();
    let b = first.register("b").unwrap();
    let last = set(&a, "one");
    set(&b, "two");
    assert!(repaired(&first).is_empty(), "all have their votes");
    flush(&servers[1]);
    set(&a, "three");
    // A tombstone, as one node does not have it.
    set(&first.register("c").unwrap(), "four");
    first.register("c").unwrap().delete().unwrap();
    let other = client(&servers);
    assert_eq!(repaired(&other), [shown(&servers[1])]);
    assert!(repaired(&other).is_empty());
    for other in [0, 2] {
        let values = read_without(&servers, other, &["a", "b", "c", "d"]);
        assert_eq!(values, [some("three"), some("two"), None, None]);
    }
    // The client that had a ballot promised goes on, and its versions grow.
    let next = set(&a, "five");
    assert!(next > last);
    assert_eq!(read(&other.register("a").unwrap()), some("five"));
    // What was left of the deleted one can be removed now.
    assert!(eventually(LIMIT, || first
        .registers()
        .sweep()
        .unwrap()
        .left
        == 0));
    let names: Vec<String> = first
        .registers()
        .list("*")
        .map(|it| it.unwrap().name().to_string())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn what_a_node_had_before_does_not_come_back() {
    let mut servers = Servers::start_with(3, &["--appendonly", "yes"]);
    let first = client(&servers);
    first.registers().form(true).unwrap();
    let a = first.register("a").unwrap();
    let b = first.register("b").unwrap();
    set(&a, "one");
    set(&b, "two");
    servers[0].stop();
    a.delete().unwrap();
    set(&b, "three");
    servers[0].restart();
    assert_eq!(keys(&servers[0]), 4, "it has its old registers");
    assert_eq!(repaired(&client(&servers)), [shown(&servers[0])]);
    first.registers().sweep().unwrap();
    for other in [1, 2] {
        assert_eq!(
            read_without(&servers, other, &["a", "b"]),
            [None, some("three")]
        );
    }
    // Also what only it has ever heard of.
    assert!(
        servers.iter().all(|server| keys(server) == 4),
        "b, and the group's own"
    );
}

#[test]
fn two_of_five_are_repaired_one_after_another() {
    let (mut servers, first) = formed(5);
    let register = first.register("a").unwrap();
    set(&register, "one");
    flush(&servers[1]);
    // The other one is away meanwhile.
    servers[3].kill();
    assert_eq!(repaired(&first), [shown(&servers[1])]);
    set(&register, "two");
    servers[3].restart();
    assert_eq!(repaired(&client(&servers)), [shown(&servers[3])]);
    flush(&servers[0]);
    flush(&servers[2]);
    assert_eq!(read(&client(&servers).register("a").unwrap()), some("two"));
}

#[test]
fn a_server_of_another_group_and_one_that_would_forget_are_refused() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let servers = Servers::start_with(3, &durable);
    client(&servers).registers().form(false).unwrap();
    let (others, of_others) = formed(3);
    set(&of_others.register("a").unwrap(), "theirs");
    let with = |server: &Server| with_third(&servers, server);
    let error = with(&others[0]).registers().repair().unwrap_err();
    assert_eq!(
        error,
        RegisterError::NodesDiffer {
            url: shown(&others[0]).into()
        }
    );
    assert_eq!(read(&of_others.register("a").unwrap()), some("theirs"));
    let volatile = Server::start(&[]);
    let error = with(&volatile).registers().repair().unwrap_err();
    assert!(
        matches!(error, RegisterError::NotDurable { .. }),
        "{error:?}"
    );
    let fresh = Server::start(&durable);
    assert_eq!(replaced(&with(&fresh), &servers[2]), [shown(&fresh)]);
    // A majority that has forgotten cannot be repaired.
    flush(&servers[0]);
    flush(&servers[1]);
    assert!(with(&fresh).registers().repair().is_err());
}

#[test]
fn registers_change_while_a_node_is_repaired_again_and_again_by_several() {
    let (servers, first) = formed(3);
    let is_over = AtomicBool::new(false);
    let made = AtomicUsize::new(0);
    let unsure = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..2 {
            let register = client(&servers).register("a").unwrap();
            let is_over = &is_over;
            let made = &made;
            let unsure = &unsure;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let add = |value: Option<&redlatch::register::Value>| {
                        let count = value.map_or(0, |it| read_number(it.bytes()));
                        Some((count + 1).to_string().into_bytes())
                    };
                    match register.change(add) {
                        Ok(_) => made.fetch_add(1, Ordering::Relaxed),
                        // The other one has made more than eight changes meanwhile.
                        Err(RegisterError::Unknown) => unsure.fetch_add(1, Ordering::Relaxed),
                        Err(error) => panic!("{number}: {error}"),
                    };
                }
            });
        }
        let end = EndOf(&is_over);
        for round in 0..6 {
            flush(&servers[round % 3]);
            let repairs: Vec<_> = (0..2)
                .map(|_| {
                    let client = client(&servers);
                    scope.spawn(move || client.registers().repair())
                })
                .collect();
            let results = repairs.into_iter().map(|it| it.join().unwrap());
            let errors: Vec<RegisterError> = results.filter_map(Result::err).collect();
            let is_expected = |error: &RegisterError| {
                matches!(
                    error,
                    RegisterError::NotRepaired { .. } | RegisterError::NoQuorum { .. }
                )
            };
            assert!(errors.iter().all(is_expected), "{errors:?}");
            first.registers().repair().unwrap();
        }
        drop(end);
    });
    let value = first.register("a").unwrap().read().unwrap().unwrap();
    let made = made.into_inner();
    let unsure = unsure.into_inner();
    let value = read_number(value.bytes());
    assert!(
        (made..=made + unsure).contains(&value),
        "{value} of {made} changes, {unsure} unsure"
    );
    assert!(
        unsure * 10 <= made + 200,
        "{unsure} of {made} changes are unsure"
    );
}

fn read_number(bytes: &[u8]) -> usize {
    std::str::from_utf8(bytes).unwrap().parse().unwrap()
}

#[test]
fn a_repair_and_a_formation_that_ended_half_way_are_begun_anew() {
    let mut servers = Servers::start_with(3, &["--appendonly", "yes", "--appendfsync", "always"]);
    // Of a formation that did not go on, and of servers that were started again since.
    for server in servers.iter() {
        server.command(&["SET", ":redlatch:member", "redlatch 1 joining 17 run "]);
    }
    let first = client(&servers);
    first.registers().form(false).unwrap();
    let register = first.register("a").unwrap();
    set(&register, "one");
    for mark in ["redlatch 1 joining 18 run ", "redlatch 1 joining 18 "] {
        servers[2].kill();
        servers[2].restart();
        servers[2].command(&["SET", ":redlatch:member", mark]);
        let is_ours = mark.ends_with("run ");
        match client(&servers).registers().repair() {
            Ok(urls) if is_ours => assert_eq!(*urls[0], *shown(&servers[2])),
            Err(RegisterError::NotRepaired { .. }) if !is_ours => {}
            other => panic!("{mark}: {other:?}"),
        }
    }
    assert_eq!(read(&register), some("one"));
}

#[test]
fn who_knows_that_nodes_have_kept_all_has_them_trusted() {
    let mut servers = Servers::start_with(3, &["--appendonly", "yes"]);
    let first = client(&servers);
    first.registers().form(true).unwrap();
    let register = first.register("a").unwrap();
    set(&register, "one");
    for number in 0..2 {
        servers[number].stop();
        servers[number].restart();
    }
    assert!(register.read().is_err());
    assert!(
        first.registers().repair().is_err(),
        "a majority may have forgotten"
    );
    first.registers().trust(&servers[0].url()).unwrap();
    assert_eq!(read(&register), some("one"));
    assert_eq!(repaired(&client(&servers)), [shown(&servers[1])]);
    flush(&servers[2]);
    let error = first.registers().trust(&servers[2].url()).unwrap_err();
    assert!(error.to_string().contains("no mark of a member"), "{error}");
    assert!(first.registers().trust("redis://nowhere").is_err());
}
