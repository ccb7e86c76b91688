//! The end of the numbers: a directory that was used two billion times.

use crate::client::Client;
use crate::contention::plan;
use crate::drive::drive;
use redlatch_zookeeper::message::{Acl, Create, CreateKind, EnsembleRequest};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use support::needs_zookeeper;
use support::zookeeper::{Direction, Ensemble, Installed, Link, Snapshot};

/// Clients that share the lock.
const CLIENTS: usize = 6;

/// The number of the holder's znode.
fn number(path: &str) -> i32 {
    let (_, digits) = path.rsplit_once("lock-").expect("a contender's name");
    digits.parse().expect("a number")
}

/// A server on which the next contender of `/locks/a` gets this number.
fn start(zookeeper: &'static Installed, next_number: i32) -> Ensemble {
    let snapshot = Snapshot::default()
        .persistent("/locks")
        .container("/locks/a", next_number);
    zookeeper.ensemble(1).snapshot(snapshot).start()
}

/// Puts a znode that is not a contender into the directory. So it is not renewed by a release.
fn occupy(ensemble: &Ensemble) {
    let mut client = Client::new(&ensemble.ports());
    let path = "/locks/a/another-program's".into();
    let data = Arc::from([]);
    let acl = Acl::Anyone;
    let kind = CreateKind::Persistent;
    let create = Create {
        path,
        data,
        acl,
        kind,
    };
    let answer = client.ask(EnsembleRequest::Create(create));
    assert!(answer.reply().is_ok(), "{answer:?}");
    client.end();
}

/// The clients share the lock as fast as they can, each for this many grants. Returns the numbers
/// in their order.
fn share(ensemble: &Ensemble, grants: usize) -> Vec<i32> {
    let holders = AtomicUsize::new(0);
    let token = AtomicI64::new(0);
    let found = Mutex::new(Vec::new());
    let ports = ensemble.ports();
    let run = || {
        let mut client = Client::new(&ports);
        for _ in 0..grants {
            let held = client.acquire(plan("/locks", "a"));
            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two holders");
            assert!(token.swap(held.created_by, Ordering::SeqCst) < held.created_by);
            found.lock().unwrap().push(number(&held.paths[0]));
            holders.fetch_sub(1, Ordering::SeqCst);
            client.release();
        }
        client.end();
    };
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(run);
        }
    });
    found.into_inner().unwrap()
}

/// All clients ask for the lock at once, so often. Creates that are in flight together are those to
/// which a server gives negative numbers.
fn share_in_bursts(ensemble: &Ensemble, bursts: usize) -> Vec<i32> {
    let link = Link::to(ensemble[0].port());
    let mut clients = [(); CLIENTS].map(|()| Client::new(&[link.port()]));
    let mut found = Vec::new();
    let mut token = 0;
    for _ in 0..bursts {
        for client in &mut clients {
            client.ask(EnsembleRequest::Sync("/".into()));
        }
        link.hold(Direction::Forth);
        let sent = link.received(Direction::Forth);
        clients
            .iter_mut()
            .for_each(|client| client.contend(plan("/locks", "a")));
        let mut all: Vec<&mut Client> = clients.iter_mut().collect();
        drive(&mut all, "the creates", |_| {
            link.received(Direction::Forth) >= sent + CLIENTS * 100
        });
        link.release(Direction::Forth);
        drive(&mut all, "a turn of each client", |clients| {
            let holders = clients.iter_mut().filter(|client| client.held().is_some());
            let mut holders: Vec<_> = holders.collect();
            assert!(holders.len() <= 1, "two holders");
            if let Some(holder) = holders.first_mut() {
                let held = holder.held().expect("it was chosen for that");
                assert!(held.created_by > token, "{held:?} after {token}");
                token = held.created_by;
                found.push(number(&held.paths[0]));
                holder.give_up();
            }
            clients
                .iter()
                .all(|client| client.contention().left.is_some())
        });
    }
    found
}

fn is_past_end(number: &i32) -> bool {
    *number == i32::MAX || *number < 0
}

#[test]
fn across_the_end_of_the_numbers_there_is_one_holder_at_a_time() {
    let ensemble = start(needs_zookeeper!(), i32::MAX - 47);
    occupy(&ensemble);
    let numbers = share(&ensemble, 20);
    // The other program's znode has taken a number as well.
    assert_eq!(numbers[0], i32::MAX - 46);
    let past = numbers.iter().filter(|number| is_past_end(number)).count();
    assert_eq!(past, CLIENTS * 20 - 46);
}

#[test]
fn creates_in_flight_together_past_the_end_have_turns_one_after_the_other() {
    let ensemble = start(needs_zookeeper!(), i32::MAX - 20);
    occupy(&ensemble);
    let numbers = share_in_bursts(&ensemble, 15);
    let negative = numbers.iter().filter(|number| **number < 0).count();
    println!(
        "{negative} of {} numbers were negative: {numbers:?}",
        numbers.len()
    );
    assert!(negative > 0 && numbers.iter().filter(|number| is_past_end(number)).count() >= 60);
}

#[test]
fn a_directory_that_nobody_else_is_in_is_renewed_long_before_the_end() {
    let ensemble = start(needs_zookeeper!(), 1 << 30);
    let numbers = share(&ensemble, 5);
    assert!(numbers[0] == 1 << 30, "{numbers:?}");
    // Nobody was in the queue behind the last one.
    let mut client = Client::new(&ensemble.ports());
    let held = client.acquire(plan("/locks", "a"));
    assert!(number(&held.paths[0]) < 1_000);
}
