//! Contenders for one lock on a server: order, wake-ups, and what is left behind.

use crate::client::Client;
use crate::contention::plan;
use crate::drive::drive;
use crate::expiry::expire;
use crate::messages::names;
use redlatch_zookeeper::contender::Cleanup;
use redlatch_zookeeper::message::EnsembleRequest;
use std::time::Duration;
use support::needs_zookeeper;
use support::zookeeper::Link;

const NAME: &str = "a";

/// Waits until this client is in the queue, behind this many others.
#[track_caller]
fn await_place(client: &mut Client, place: usize) {
    drive(&mut [client], "the place", |clients| {
        clients[0].contention().contender.place() == Some(place)
    });
}

#[test]
fn three_clients_have_the_lock_in_the_order_in_which_they_came() {
    let shared = needs_zookeeper!().shared();
    let ports = shared.ports();
    let root = shared.root();
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::new(&ports));
    let mut tokens = vec![a.acquire(plan(root, NAME)).created_by];
    b.contend(plan(root, NAME));
    await_place(&mut b, 1);
    c.contend(plan(root, NAME));
    await_place(&mut c, 2);
    a.release();
    assert_eq!(a.contention().left, Some(Cleanup::Deleted));
    drive(&mut [&mut b, &mut c], "B's turn", |clients| {
        clients[0].held().is_some()
    });
    c.ask(EnsembleRequest::Sync(root.into()));
    assert!(
        c.held().is_none() && c.changed.is_empty(),
        "only the next one is woken"
    );
    tokens.push(b.held().unwrap().created_by);
    b.release();
    drive(&mut [&mut c], "C's turn", |clients| {
        clients[0].held().is_some()
    });
    tokens.push(c.held().unwrap().created_by);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    c.release();
    assert_eq!(
        names(&mut c, &format!("{root}/{NAME}")),
        Vec::<String>::new()
    );
}

#[test]
fn a_waiter_that_gives_up_is_closed_up_to() {
    let shared = needs_zookeeper!().shared();
    let ports = shared.ports();
    let root = shared.root();
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::new(&ports));
    a.acquire(plan(root, NAME));
    b.contend(plan(root, NAME));
    await_place(&mut b, 1);
    c.contend(plan(root, NAME));
    await_place(&mut c, 2);
    b.release();
    await_place(&mut c, 1);
    assert!(c.held().is_none());
    a.release();
    drive(&mut [&mut c], "C's turn", |clients| {
        clients[0].held().is_some()
    });
}

#[test]
fn who_does_not_wait_writes_nothing_if_the_lock_is_held() {
    let shared = needs_zookeeper!().shared();
    let ports = shared.ports();
    let root = shared.root();
    let [mut a, mut b] = [(); 2].map(|()| Client::new(&ports));
    let mut impatient = plan(root, NAME);
    impatient.waits = false;
    a.acquire(impatient.clone());
    b.contend(impatient.clone());
    drive(&mut [&mut b], "the answer", |clients| {
        clients[0].contention().is_contended
    });
    assert_eq!(b.contention().attempts, 0);
    assert_eq!(names(&mut b, &format!("{root}/{NAME}")).len(), 1);
    a.release();
    b.acquire(impatient);
}

#[test]
fn a_wake_up_that_comes_while_the_waiter_is_not_connected_is_not_lost() {
    let shared = needs_zookeeper!().shared();
    let root = shared.root();
    let link = Link::to(shared[0].port());
    let mut a = Client::new(&shared.ports());
    let mut b = Client::new(&[link.port()]);
    a.acquire(plan(root, NAME));
    b.contend(plan(root, NAME));
    await_place(&mut b, 1);
    link.refuse(true);
    drive(&mut [&mut b], "the end of the connection", |clients| {
        clients[0].session.is_down()
    });
    a.release();
    link.refuse(false);
    drive(&mut [&mut b], "the lock", |clients| {
        clients[0].held().is_some()
    });
    assert_eq!(b.contention().attempts, 1, "with the same znode");
}

#[test]
fn a_lost_session_loses_the_lock_and_the_place() {
    let shared = needs_zookeeper!().shared();
    let ports = shared.ports();
    let root = shared.root();
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::new(&ports));
    a.acquire(plan(root, NAME));
    b.contend(plan(root, NAME));
    await_place(&mut b, 1);
    c.contend(plan(root, NAME));
    await_place(&mut c, 2);
    assert!(expire(shared[0].port(), &b));
    drive(&mut [&mut b, &mut c], "the place of the end", |clients| {
        let is_last = clients[0].contention().contender.place() == Some(2);
        is_last && clients[0].sessions_lost == 1
    });
    assert!(expire(shared[0].port(), &a));
    drive(&mut [&mut a, &mut b, &mut c], "the loss", |clients| {
        clients[0].contention().is_lost
    });
    assert!(a.held().is_none());
    drive(&mut [&mut b, &mut c], "C's turn", |clients| {
        clients[1].held().is_some()
    });
    assert!(b.held().is_none());
    c.release();
    drive(&mut [&mut b], "B's turn", |clients| {
        clients[0].held().is_some()
    });
    assert_eq!(b.contention().attempts, 2);
}

#[test]
fn a_holder_whose_znode_is_removed_is_told_within_a_beat() {
    let shared = needs_zookeeper!().shared();
    let ports = shared.ports();
    let root = shared.root();
    let mut a = Client::with_timeout(&ports, Duration::from_secs(2));
    let mut operator = Client::new(&ports);
    let held = a.acquire(plan(root, NAME));
    let mut b = Client::new(&ports);
    b.contend(plan(root, NAME));
    await_place(&mut b, 1);
    operator.ask(EnsembleRequest::Delete(held.paths[0].clone()));
    drive(&mut [&mut a, &mut b], "the loss", |clients| {
        clients[0].contention().is_lost
    });
    assert_eq!(a.removed, [&*held.paths[0]]);
    drive(&mut [&mut b], "the lock", |clients| {
        clients[0].held().is_some()
    });
}
