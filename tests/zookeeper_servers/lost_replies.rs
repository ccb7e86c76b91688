//! A connection that is lost between a create and its reply: the znode is found again, behind a
//! sync, and no second one is made.

use crate::client::{Client, now};
use crate::contention::plan;
use crate::drive::drive;
use crate::messages::names;
use redlatch_zookeeper::contender::Cleanup;
use redlatch_zookeeper::message::EnsembleRequest;
use std::time::Duration;
use support::needs_zookeeper;
use support::zookeeper::{Direction, Link};

/// Begins to contend, and cuts the connection when the create is on its way to the server.
fn contend_and_cut(client: &mut Client, link: &Link, root: &str) {
    let before = link.delivered(Direction::Forth);
    client.contend(plan(root, "a"));
    // The create alone has more bytes than everything that the session says by itself.
    drive(&mut [client], "the create", |_| {
        link.delivered(Direction::Forth) >= before + 100
    });
    link.cut();
    drive(&mut [client], "the end of the connection", |clients| {
        clients[0].session.is_down()
    });
}

#[test]
fn a_create_whose_reply_is_lost_is_found_again() {
    let shared = needs_zookeeper!().shared();
    let root = shared.root();
    let link = Link::to(shared[0].port());
    let [mut client, mut other] = [link.port(), shared[0].port()].map(|port| Client::new(&[port]));
    // The lock's directory is made, and the session begun.
    other.acquire(plan(root, "a"));
    other.release();
    client.ask(EnsembleRequest::Sync("/".into()));
    link.hold(Direction::Back);
    contend_and_cut(&mut client, &link, root);
    link.release(Direction::Back);
    drive(&mut [&mut client], "the lock", |clients| {
        clients[0].held().is_some()
    });
    let path = client.held().unwrap().paths[0].to_string();
    let names = names(&mut other, &format!("{root}/a"));
    assert_eq!(names.len(), 1);
    assert!(path.ends_with(&format!("/{}", names[0])), "{path}");
}

/// A client of these two servers that is connected to the first one.
fn connected_to_first(ports: [u16; 2]) -> Client {
    loop {
        let mut client = Client::new(&ports);
        client.ask(EnsembleRequest::Sync("/".into()));
        if client.session.server() == 0 {
            return client;
        }
        client.end();
    }
}

/// Of five servers three do not acknowledge, so the create is not agreed on while the client is at
/// another server already. A server itself lets no request of a session overtake its create.
#[test]
fn a_create_that_the_majority_has_not_agreed_on_is_found_behind_a_sync() {
    let zookeeper = needs_zookeeper!();
    let ensemble = zookeeper.ensemble(5).with_links().sync_limit(20).start();
    let leader = ensemble.leader();
    let followers = ensemble.followers();
    let link = Link::to(ensemble[leader].port());
    let second = ensemble[followers[0]].port();
    let mut other = Client::new(&[second]);
    other.acquire(plan("/locks", "a"));
    other.release();
    let mut found = 0;
    for round in 1..=3 {
        let mut client = connected_to_first([link.port(), second]);
        for follower in &followers[1..] {
            ensemble.links().stall(*follower, leader);
        }
        contend_and_cut(&mut client, &link, "/locks");
        // A list without a sync does not show it.
        assert_eq!(names(&mut other, "/locks/a"), Vec::<String>::new());
        let until = now().after(Duration::from_millis(300));
        drive(&mut [&mut client], "a while", |_| now() >= until);
        assert!(client.held().is_none() && client.session.server() == 1);
        ensemble.links().heal();
        drive(&mut [&mut client], "the lock", |clients| {
            clients[0].held().is_some()
        });
        // On a busy machine a server that has not read the create yet may never do so.
        found += usize::from(client.contention().attempts == 1);
        assert_eq!(client.sessions_lost, 0, "{round}");
        let path = client.held().unwrap().paths[0].to_string();
        other.ask(EnsembleRequest::Sync("/".into()));
        let names = names(&mut other, "/locks/a");
        assert_eq!(names.len(), 1);
        // One create for each round, and one before them.
        assert!(
            path.ends_with(&names[0]) && path.ends_with(&format!("-{round:010}")),
            "{path}"
        );
        client.release();
    }
    assert!(found > 0, "a create that was read is not made again");
}

#[test]
fn a_create_that_was_given_up_without_a_reply_leaves_nothing() {
    let shared = needs_zookeeper!().shared();
    let root = shared.root();
    let link = Link::to(shared[0].port());
    let [mut client, mut other] = [link.port(), shared[0].port()].map(|port| Client::new(&[port]));
    other.acquire(plan(root, "a"));
    client.ask(EnsembleRequest::Sync("/".into()));
    link.hold(Direction::Back);
    contend_and_cut(&mut client, &link, root);
    client.give_up();
    link.release(Direction::Back);
    drive(&mut [&mut client], "the outcome", |clients| {
        clients[0].contention().left.is_some()
    });
    other.ask(EnsembleRequest::Sync("/".into()));
    assert_eq!(names(&mut other, &format!("{root}/a")).len(), 1, "its own");
}

#[test]
fn a_delete_whose_reply_is_lost_counts_as_carried_out() {
    let shared = needs_zookeeper!().shared();
    let root = shared.root();
    let link = Link::to(shared[0].port());
    let [mut client, mut other] = [link.port(), shared[0].port()].map(|port| Client::new(&[port]));
    client.acquire(plan(root, "a"));
    link.hold(Direction::Back);
    client.give_up();
    // The directory is watched: the delete is carried out before the connection is cut.
    let list = EnsembleRequest::GetChildren {
        path: format!("{root}/a").into(),
        watch: true,
    };
    other.ask(list);
    drive(&mut [&mut client, &mut other], "the delete", |clients| {
        !clients[1].changed.is_empty()
    });
    link.cut();
    drive(&mut [&mut client], "the end of the connection", |clients| {
        clients[0].session.is_down()
    });
    link.release(Direction::Back);
    drive(&mut [&mut client], "the outcome", |clients| {
        clients[0].contention().left.is_some()
    });
    assert_eq!(client.contention().left, Some(Cleanup::Deleted));
}
