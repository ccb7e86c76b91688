//! Permits: at most this many holders at a time, each with a number of its own.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::collections::BTreeSet;
use std::time::Instant;

use redlatch::{LockClient, LockGuard, LockState};
use support::locks::{LONG, pause, resume, take};
use support::queue::{finish, spawn_waiter};
use support::relay::Relay;
use support::servers::Servers;
use support::waiters::{BY_PUSH, await_keys, await_queued, holder, pushed};

fn permit(client: &LockClient, count: u32) -> Option<LockGuard> {
    client
        .request("name")
        .ttl(LONG)
        .one_of(count)
        .try_lock()
        .unwrap()
}

#[test]
fn there_are_as_many_permits_as_requested_each_once() {
    support::needs!(Shares);
    for nodes in [1, 2, 3, 5] {
        let servers = Servers::start(nodes);
        let clients = [holder(servers.urls()), holder(servers.urls())];
        let held: Vec<_> = (0..4)
            .map(|index| permit(&clients[index % 2], 4).unwrap())
            .collect();
        let numbers: BTreeSet<_> = held.iter().map(|guard| guard.slot().unwrap()).collect();
        assert_eq!(numbers, BTreeSet::from([0, 1, 2, 3]));
        assert!(permit(&clients[0], 4).is_none());
        assert!(
            clients[0].try_lock("name", LONG).unwrap().is_none(),
            "the exclusive lock"
        );
        let mut held = held;
        let free = held.remove(2);
        let number = free.slot();
        assert_eq!(free.release(), Ok(()));
        // Threads that may wait do not wait for each other within their client.
        let again = clients[1]
            .request("name")
            .ttl(LONG)
            .one_of(4)
            .try_lock_for(LONG / 10);
        let again = again.unwrap().unwrap();
        assert_eq!(again.slot(), number);
        drop((held, again));
        await_keys(&servers, &[]);
    }
}

/// Two nodes give another permit than the other three: the lock has that of the three, also there
/// as soon as the answers have come.
#[test]
fn a_permit_that_some_nodes_gave_with_another_number_moves_there() {
    support::needs!(Shares);
    let servers = Servers::start(5);
    let client = holder(servers.urls());
    let held: Vec<_> = (0..3).map(|_| permit(&client, 3).unwrap()).collect();
    // Two nodes lose the holders of two permits.
    let mut held = held;
    held.sort_by_key(LockGuard::slot);
    for server in servers.iter().take(2) {
        server.command(&["DEL", "name", "name:redlatch:holders"]);
    }
    assert_eq!(held.remove(2).release(), Ok(()));
    let moved = permit(&client, 3).unwrap();
    assert_eq!(moved.slot(), Some(2));
    let numbers = |holders: &[redlatch::Holder]| {
        holders
            .iter()
            .filter_map(|holder| holder.slot)
            .collect::<Vec<_>>()
    };
    let is_moved = || {
        let seen = client.inspect("name").unwrap();
        seen.nodes
            .iter()
            .take(2)
            .all(|node| numbers(&node.shares) == [2])
    };
    assert!(
        support::eventually(BY_PUSH, is_moved),
        "{:?}",
        client.inspect("name")
    );
    let LockState::Shared(holders) = client.inspect("name").unwrap().state else {
        panic!()
    };
    assert_eq!(numbers(&holders), [0, 1, 2]);
    drop((held, moved));
    await_keys(&servers, &[]);
}

#[test]
fn permits_survive_a_minority_of_frozen_nodes() {
    support::needs!(Shares);
    let servers = Servers::start(5);
    let client = pushed(servers.urls());
    pause(&servers, 2);
    let held: Vec<_> = (0..2).map(|_| permit(&client, 2).unwrap()).collect();
    assert!(permit(&client, 2).is_none());
    resume(&servers, 2);
    drop(held);
    await_keys(&servers, &[]);
    drop(take(&client, "name", LONG));
}

#[test]
fn a_client_that_names_fewer_permits_is_granted_no_higher_number() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let held: Vec<_> = (0..4).map(|_| permit(&client, 4).unwrap()).collect();
    assert!(permit(&client, 2).is_none());
    drop(held);
    await_keys(&servers, &[]);
    let few: Vec<_> = (0..2).map(|_| permit(&client, 2).unwrap()).collect();
    let more = [permit(&client, 4).unwrap(), permit(&client, 4).unwrap()];
    assert!(permit(&client, 4).is_none());
    assert!(few.iter().all(|guard| guard.slot() < Some(2)));
    assert!(more.iter().all(|guard| guard.slot() >= Some(2)));
}

/// A server that gets each command twice gives no client two permits.
#[test]
fn a_command_that_arrives_twice_takes_one_permit() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let relays: Vec<_> = servers.iter().map(Relay::doubling).collect();
    let client = holder(relays.iter().map(Relay::url));
    let held: Vec<_> = (0..3).map(|_| permit(&client, 3)).collect();
    assert!(held.iter().all(Option::is_some), "{held:?}");
}

#[test]
fn a_try_that_fails_wakes_no_waiter() {
    support::needs!(Shares);
    let servers = Servers::start(1);
    let client = holder(servers.urls());
    let held = permit(&client, 1).unwrap();
    let waiter = pushed(servers.urls());
    let thread = spawn_waiter(move || {
        waiter
            .request("name")
            .ttl(LONG)
            .one_of(1)
            .lock()
            .unwrap()
            .release()
    });
    await_queued(&servers, "name", 1);
    // A waiter that is woken in vain several times does not listen any more.
    for _ in 0..6 {
        assert!(permit(&client, 1).is_none());
    }
    let start = Instant::now();
    assert_eq!(held.release(), Ok(()));
    assert_eq!(finish(thread), Ok(()));
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
}

/// A lock that is shared by nobody: its holders were evicted.
#[test]
fn an_operator_can_free_a_lock_whose_holders_are_gone() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let held = permit(&client, 2).unwrap();
    for server in servers.iter() {
        server.command(&["DEL", "name:redlatch:holders"]);
    }
    assert!(client.try_lock("name", LONG).unwrap().is_none());
    let seen = client.inspect("name").unwrap();
    assert!(client.force_release(&seen).unwrap());
    drop((take(&client, "name", LONG), held));
}
