//! What the status of a node says about its vote on registers.

use std::time::{Duration, Instant};

use redlatch::LockClient;
use redlatch::status::{NoVote, RegisterMembership};
use support::locks::with_long_timeout;
use support::redis::Server;
use support::servers::Servers;

use super::{client, formed, read, set};

const NO_MARK: Option<RegisterMembership> = Some(RegisterMembership::NoVote(NoVote::NoMark));

fn votes(client: &LockClient) -> Vec<Option<RegisterMembership>> {
    client.nodes().iter().map(|node| node.registers).collect()
}

fn no_vote(why: NoVote) -> Option<RegisterMembership> {
    Some(RegisterMembership::NoVote(why))
}

/// The epoch of a member, and whether it is durable.
#[track_caller]
fn member(membership: Option<RegisterMembership>) -> (u64, bool) {
    match membership {
        Some(RegisterMembership::Member {
            epoch, is_durable, ..
        }) => (epoch, is_durable),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn members(memberships: &[Option<RegisterMembership>]) -> Vec<(u64, bool)> {
    memberships.iter().copied().map(member).collect()
}

#[test]
fn nodes_are_members_once_they_are_formed() {
    let servers = Servers::start_with(3, &["--appendonly", "yes", "--appendfsync", "always"]);
    let first = client(&servers);
    assert_eq!(votes(&first), [NO_MARK; 3]);
    assert_eq!(votes(&first), [NO_MARK; 3], "a look writes no mark");
    first.registers().form(false).unwrap();
    assert_eq!(members(&votes(&first)), [(1, true); 3]);
    let (volatile, other) = formed(3);
    assert_eq!(members(&votes(&other)), [(1, false); 3]);
    // Of another group, and of one of another size.
    let urls = [servers[0].url(), servers[1].url(), volatile[0].url()];
    let mixed = votes(&with_long_timeout(urls).build().unwrap());
    assert_eq!(
        (member(mixed[0]), mixed[2]),
        ((1, true), no_vote(NoVote::OtherGroup))
    );
    assert_eq!(
        votes(&client(&servers[..2])),
        [no_vote(NoVote::OtherGroup); 2]
    );
}
#[test]
fn nodes_that_may_have_forgotten_say_why_they_have_no_vote() {
    let mut servers = Servers::start_with(5, &["--appendonly", "yes"]);
    let first = client(&servers);
    first.registers().form(true).unwrap();
    set(&first.register("a").unwrap(), "one");
    servers[0].command(&["FLUSHALL"]);
    servers[1].stop();
    servers[1].restart();
    let seen = votes(&first);
    assert_eq!(seen[..2], [NO_MARK, no_vote(NoVote::Restarted)]);
    assert_eq!(members(&seen[2..]), [(1, false); 3]);
    servers[2].command(&["SET", ":redlatch:member", "words of another program"]);
    servers[3].command(&["SET", ":redlatch:member", "redlatch 1 joining 17 run "]);
    servers[4].kill();
    let seen = votes(&first);
    assert_eq!(
        seen[2..],
        [no_vote(NoVote::OtherFormat), no_vote(NoVote::Joining), None]
    );
}

#[test]
fn a_server_that_was_replaced_says_so() {
    let (servers, old) = formed(3);
    let fresh = Server::start(&[]);
    let urls = [servers[0].url(), servers[1].url(), fresh.url()];
    let new = with_long_timeout(urls).build().unwrap();
    assert_eq!(votes(&new)[2], NO_MARK);
    new.registers().replace(&servers[2].url()).unwrap();
    assert_eq!(members(&votes(&new)), [(2, false); 3]);
    let seen = votes(&old);
    assert_eq!((member(seen[0]).0, seen[2]), (2, no_vote(NoVote::Replaced)));
}

#[test]
fn a_user_that_may_run_no_script_knows_the_rest_of_the_status() {
    support::needs!(Users);
    let (servers, first) = formed(3);
    for rights in [
        &["+info", "+ping", "+hello"][..],
        &["+@all", "-eval", "-evalsha", "~*"],
    ] {
        for server in servers.iter() {
            let user = [&["ACL", "SETUSER", "some", "reset", "on", ">pw"], rights].concat();
            server.command(&user);
        }
        let urls = servers.iter().map(|server| server.url_of("some:pw"));
        let poor = with_long_timeout(urls).build().unwrap();
        for _ in 0..2 {
            for node in poor.nodes() {
                assert!(node.is_connected && node.role.is_some(), "{node:?}");
                assert_eq!((node.registers, node.last_error), (None, None));
            }
        }
    }
    assert_eq!(members(&votes(&first)), [(1, false); 3]);
    assert_eq!(read(&first.register("a").unwrap()), None);
}

#[test]
fn a_node_that_does_not_answer_is_waited_for_once() {
    let servers = Servers::start(3);
    let timeout = Duration::from_secs(2);
    let urls = servers.iter().map(Server::url);
    let quick = with_long_timeout(urls)
        .node_timeout(timeout)
        .build()
        .unwrap();
    quick.registers().form(true).unwrap();
    servers[1].pause();
    let began = Instant::now();
    let seen = votes(&quick);
    let took = began.elapsed();
    assert_eq!(
        (member(seen[0]), seen[1], member(seen[2])),
        ((1, false), None, (1, false))
    );
    assert!(took < timeout * 2, "{took:?}");
    servers[1].resume();
}
