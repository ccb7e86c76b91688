//! Inspecting the nodes' queue: who waits, since when and in which order; and reservations, which
//! are not locks.

use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use redlatch::embedded::Nodes;
use redlatch::{Error, Inspection, LockClient, LockGuard, LockState};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, holders, take, value, with_long_timeout};
use support::queue::finish;
use support::servers::Servers;

#[track_caller]
fn look(client: &LockClient, resource: &str) -> Inspection {
    client
        .inspect(resource)
        .unwrap_or_else(|error| panic!("a majority answers: {error}"))
}

/// A client of its own that waits for `job`, and has its place in the queue of each server.
#[track_caller]
fn wait(servers: &Servers, owner: &str) -> JoinHandle<LockGuard> {
    let client = all_nodes_client(servers.urls());
    let request = {
        let client = client.clone();
        let owner = owner.to_owned();
        move || {
            client
                .request("job")
                .ttl(LONG)
                .owner(owner)
                .lock()
                .expect("it waits")
        }
    };
    let thread = std::thread::spawn(request);
    let is_queued = || {
        let waiters = look(&client, "job").waiters;
        waiters
            .iter()
            .any(|it| it.nodes == servers.len() && it.owner().is_some_and(|o| o == owner))
    };
    assert!(eventually(LIMIT, is_queued), "{owner} is not in the queue");
    thread
}

fn owners(seen: &Inspection) -> Vec<String> {
    let owner = |waiter: &redlatch::QueuedWaiter| waiter.owner().map(|name| name.to_string());
    seen.waiters
        .iter()
        .map(|waiter| owner(waiter).unwrap_or_default())
        .collect()
}

#[test]
fn inspect_shows_who_waits_since_when_and_in_which_order() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "job", LONG);
    assert_eq!(look(&client, "job").waiters, []);

    let began = SystemTime::now();
    let names = ["third", "first", "second"];
    let waiting: Vec<_> = names.map(|name| wait(&servers, name)).into();
    let ended = SystemTime::now();
    let seen = look(&client, "job");
    assert!(matches!(seen.state, LockState::Held(_)), "{seen:?}");
    assert_eq!(owners(&seen), names, "in the order in which they came");
    let since: Vec<_> = seen.waiters.iter().map(|waiter| waiter.since).collect();
    assert!(since.is_sorted() && since[2] <= ended, "{since:?}");
    // One microsecond: a waiter's time has no finer parts.
    assert!(since[0] + Duration::from_micros(1) >= began, "{since:?}");
    assert_eq!(look(&client, "other").waiters, []);

    // They are served in that order.
    assert_eq!(guard.release(), Ok(()));
    for (index, thread) in waiting.into_iter().enumerate() {
        let guard = finish(thread);
        let seen = look(&client, "job");
        let LockState::Held(holder) = &seen.state else {
            panic!("{seen:?}")
        };
        assert!(
            holder.owner().is_some_and(|owner| owner == names[index]),
            "{seen:?}"
        );
        let others: Vec<_> = owners(&seen)
            .into_iter()
            .filter(|it| it != names[index])
            .collect();
        assert_eq!(others, names[index + 1..], "{seen:?}");
        assert_eq!(guard.release(), Ok(()));
    }
    assert_eq!(look(&client, "job").waiters, []);
    assert_eq!(look(&client, "job").state, LockState::Free);
}

#[test]
fn a_waiter_whose_deadline_has_passed_is_shown_no_more() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let other = all_nodes_client(servers.urls());
    let _guard = take(&client, "job", LONG);
    let wait = Duration::from_secs(2);
    let waiting = std::thread::spawn(move || {
        other
            .request("job")
            .ttl(LONG)
            .try_lock_for(wait)
            .expect("it waits")
    });
    assert!(eventually(LIMIT, || look(&client, "job").waiters.len() == 1));
    assert!(finish(waiting).is_none());
    assert!(eventually(LIMIT, || look(&client, "job")
        .waiters
        .is_empty()));
}

#[test]
fn a_call_that_does_not_queue_is_not_shown() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "job", LONG);
    let alone = with_long_timeout(servers.urls())
        .queue(false)
        .build()
        .expect("it can be set");
    let wait = Duration::from_millis(500);
    assert!(
        alone
            .request("job")
            .ttl(LONG)
            .try_lock_for(wait)
            .unwrap()
            .is_none()
    );
    let set = all_nodes_client(servers.urls());
    assert!(
        set.request_all(["job", "more"])
            .try_lock_for(wait)
            .unwrap()
            .is_none()
    );
    for server in servers.iter() {
        assert_eq!(
            server.command(&["EXISTS", "job:redlatch:queue"]).integer(),
            0
        );
    }
    drop(guard);
}

#[test]
fn a_reservation_is_no_lock_and_stays() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let reservation = format!("redlatch:reserved:{}", "w".repeat(20));
    let reserve = |index: usize| {
        servers[index].command(&["SET", "job", &reservation, "PX", "50000"]);
    };
    reserve(0);
    let seen = look(&client, "job");
    assert_eq!(seen.state, LockState::Free, "a majority grants it");
    let reserved: Vec<bool> = seen.nodes.iter().map(|view| view.is_reserved).collect();
    assert_eq!(reserved, [true, false, false]);
    assert!(
        seen.nodes
            .iter()
            .all(|view| view.holder == Ok(None) && !view.agrees)
    );

    reserve(1);
    let seen = look(&client, "job");
    assert_eq!(seen.state, LockState::Reserved);
    assert_eq!(client.force_release(&seen), Ok(false), "there is no lock");
    assert_eq!(holders(&servers, "job"), 2);
    assert!(
        client.try_lock("job", LONG).unwrap().is_none(),
        "a reservation is not overtaken"
    );

    // A lock on one node is removed, and nothing else.
    servers[2].command(&["SET", "job", "lock", "PX", "50000"]);
    let seen = look(&client, "job");
    assert_eq!(seen.state, LockState::Reserved);
    assert_eq!(client.force_release(&seen), Ok(true));
    let left: Vec<_> = servers.iter().map(|server| value(server, "job")).collect();
    let reservation = Some(reservation.into_bytes());
    assert_eq!(left, [reservation.clone(), reservation, None]);
}

#[test]
fn a_forced_release_lets_the_first_waiter_have_the_lock() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "job", LONG);
    let first = wait(&servers, "first");
    let second = wait(&servers, "second");
    assert_eq!(client.force_release(&look(&client, "job")), Ok(true));
    let next = finish(first);
    assert!(!second.is_finished());
    // The inspection is out of date: what was seen is gone.
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert_eq!(next.release(), Ok(()));
    assert_eq!(finish(second).release(), Ok(()));
}

#[test]
fn what_is_not_listed_is_counted() {
    const COUNT: usize = 150;
    const LISTED: usize = 100;
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let nodes = Nodes::start(3).expect("there are ports enough");
    let embedded = all_nodes_client(nodes.urls());
    for client in [&client, &embedded] {
        let mut held: Vec<_> = (0..LISTED)
            .map(|number| take_share(client, number))
            .collect();
        // A node lists its holders by the millisecond in which their shares end. Those of one
        // millisecond may stand in another order on another node: the listed ones end before.
        std::thread::sleep(Duration::from_millis(5));
        held.extend((LISTED..COUNT).map(|number| take_share(client, number)));
        let seen = look(client, "job");
        let LockState::Shared(holders) = &seen.state else {
            panic!("{seen:?}")
        };
        assert_eq!((holders.len(), seen.holder_count), (LISTED, COUNT));
        drop(held);
        assert!(eventually(LIMIT, || look(client, "job").state == LockState::Free));

        let guard = take(client, "job", LONG);
        let waiting: Vec<_> = (0..COUNT)
            .map(|number| wait_for_share(client, number))
            .collect();
        let counts = || {
            let seen = look(client, "job");
            (seen.waiters.len(), seen.waiter_count)
        };
        assert!(
            eventually(LIMIT, || counts() == (LISTED, COUNT)),
            "{:?}",
            counts()
        );
        assert_eq!(guard.release(), Ok(()));
        waiting.into_iter().map(finish).for_each(drop);
        assert!(eventually(LIMIT, || counts() == (0, 0)), "{:?}", counts());
    }
}

/// Owners of different names take no share together.
#[track_caller]
fn take_share(client: &LockClient, owner: usize) -> LockGuard {
    let request = client
        .request("job")
        .owner(owner.to_string())
        .ttl(LONG)
        .shared();
    request
        .try_lock()
        .expect("the nodes answer")
        .expect("readers share it")
}

fn wait_for_share(client: &LockClient, owner: usize) -> JoinHandle<LockGuard> {
    let client = client.clone();
    std::thread::spawn(move || {
        let request = client
            .request("job")
            .owner(owner.to_string())
            .ttl(LONG)
            .shared();
        request.lock().expect("it waits")
    })
}
