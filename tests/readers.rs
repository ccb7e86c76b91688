//! Readers of a resource beside each other, and writers alone.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use redlatch::error::ResourceError;
use redlatch::{Error, LockClient, LockGuard, LockState};
use support::cli::Value;
use support::eventually;
use support::fencing::{fenced, token};
use support::locks::{LIMIT, LONG, take, value, without_restart_guard};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{BY_PUSH, await_keys, await_queued, holder, pushed};

fn read(client: &LockClient) -> Option<LockGuard> {
    client.request("name").ttl(LONG).shared().try_lock().unwrap()
}

#[test]
fn readers_hold_the_lock_together_and_exclude_writers() {
    support::needs!(Shares);
    for nodes in [1, 2, 3, 5] {
        let servers = Servers::start(nodes);
        let (one, other) = (holder(servers.urls()), holder(servers.urls()));
        let wait = || one.request("name").ttl(LONG).shared().try_lock_for(LONG / 10).unwrap();
        let readers = [wait().unwrap(), wait().unwrap(), read(&other).unwrap()];
        assert!(other.try_lock("name", LONG).unwrap().is_none());
        for server in servers.iter() {
            let set = server.command(&["SET", "name", "of another program", "NX", "PX", "1000"]);
            assert_eq!(set, Value::Null);
        }
        for reader in readers {
            reader.ensure_held().unwrap();
            assert_eq!((reader.slot(), reader.release()), (None, Ok(())));
        }
        let writer = take(&other, "name", LONG);
        assert!(read(&one).is_none());
        assert_eq!(writer.release(), Ok(()));
        await_keys(&servers, &[]);
    }
}

#[test]
fn a_key_of_another_program_keeps_readers_out() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    for server in servers.iter() {
        server.command(&["SET", "name", "of another program", "NX", "PX", "60000"]);
    }
    assert!(read(&client).is_none());
    for server in servers.iter() {
        assert_eq!(value(server, "name").unwrap(), b"of another program");
    }
}

#[test]
fn a_writer_is_served_when_the_last_reader_leaves() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let (readers, writer) = (holder(servers.urls()), pushed(servers.urls()));
    let (first, last) = (read(&readers).unwrap(), read(&readers).unwrap());
    let start = Instant::now();
    let waiting = spawn_waiter(move || writer.lock("name", LONG).map(LockGuard::release));
    await_queued(&servers, "name", 1);
    assert_eq!(first.release(), Ok(()));
    assert!(!waiting.is_finished());
    assert_eq!(last.release(), Ok(()));
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    assert!(start.elapsed() < BY_PUSH);
    await_keys(&servers, &[]);
}

/// A reader waits behind a writer that came before it; readers that stand next to each other are
/// served together.
#[test]
fn readers_behind_a_writer_are_served_after_it_and_together() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let (client, writer) = (holder(servers.urls()), pushed(servers.urls()));
    let first = read(&client).unwrap();
    let (send, order) = mpsc::channel();
    let sender = send.clone();
    let writing = spawn_waiter(move || {
        let guard = writer.lock("name", LONG).unwrap();
        sender.send("writer").unwrap();
        guard.release()
    });
    await_queued(&servers, "name", 1);
    let other = holder(servers.urls());
    assert!(read(&other).is_none(), "a reader that does not wait overtakes nobody");
    let all = std::sync::Arc::new(std::sync::Barrier::new(20));
    let reading: Vec<_> = (0..20)
        .map(|_| {
            let (client, sender) = (pushed(servers.urls()), send.clone());
            let all = std::sync::Arc::clone(&all);
            std::thread::spawn(move || {
                let guard = client.request("name").ttl(LONG).shared().lock().unwrap();
                sender.send("reader").unwrap();
                all.wait(); // ends only if all of them hold it at the same time
                guard.release()
            })
        })
        .collect();
    await_queued(&servers, "name", 21);
    let start = Instant::now();
    assert_eq!(first.release(), Ok(()));
    assert_eq!(finish(writing), Ok(()));
    for thread in reading {
        assert_eq!(finish(thread), Ok(()));
    }
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    drop(send);
    assert_eq!(order.iter().collect::<Vec<_>>()[..2], ["writer", "reader"]);
    await_keys(&servers, &[]);
}

#[test]
fn a_reader_that_dies_delays_a_writer_until_its_own_ttl_has_passed() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let short = Duration::from_millis(500);
    let dead = client.request("name").ttl(short).shared().lock().unwrap();
    let alive = read(&client).unwrap();
    std::mem::forget(dead);
    assert_eq!(alive.release(), Ok(()));
    // The ttl of the reader that is left counts, not that of the one that has gone.
    let start = Instant::now();
    let writer = pushed(servers.urls()).lock("name", LONG).unwrap();
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    drop(writer);
}

#[test]
fn a_share_is_extended_and_kept_alive_by_itself() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = without_restart_guard(servers.urls()).build().unwrap();
    let ttl = Duration::from_secs(2);
    let kept = client.request("name").ttl(ttl).shared().keep_alive().lock().unwrap();
    let mut extended = client.request("name").ttl(ttl).shared().lock().unwrap();
    extended.extend(LONG).unwrap();
    // A name of its own, so it is not extended together with the other one.
    let lost = client.request("name").owner("other").ttl(ttl).shared().lock().unwrap();
    assert!(lost.wait_lost(LIMIT).is_some());
    assert!(kept.wait_lost(Duration::from_secs(1)).is_none());
    extended.ensure_held().unwrap();
    let held = |state| matches!(state, LockState::Shared(holders) if holders.len() == 2);
    assert!(held(client.inspect("name").unwrap().state));
}

#[test]
fn an_inspection_shows_all_readers_and_who_waits() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let request = |owner| client.request("name").ttl(LONG).owner(owner).shared();
    let readers = [request("one").lock().unwrap(), request("two").lock().unwrap()];
    let writer = pushed(servers.urls());
    let waiting = spawn_waiter(move || {
        writer.request("name").owner("writer").ttl(LONG).lock().map(LockGuard::release)
    });
    await_queued(&servers, "name", 1);
    let seen = client.inspect("name").unwrap();
    let LockState::Shared(holders) = &seen.state else { panic!("{seen:?}") };
    let mut owners: Vec<_> = holders.iter().map(|it| it.owner().unwrap().to_string()).collect();
    owners.sort();
    assert_eq!(owners, ["one", "two"]);
    assert!(holders.iter().all(|it| it.slot.is_none() && it.remaining.is_some()));
    assert!(seen.nodes.iter().all(|node| node.shares.len() == 2 && node.agrees));
    let waiters: Vec<_> = seen.waiters.iter().map(|it| it.owner().unwrap().to_string()).collect();
    assert_eq!(waiters, ["writer"]);
    assert!(!seen.waiters[0].is_for_share());

    // An operator ends the readers that were seen.
    assert!(client.force_release(&seen).unwrap());
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    for reader in readers {
        assert!(matches!(reader.release(), Err(Error::Lost(_))));
    }
}

#[test]
fn a_readers_number_is_that_of_the_last_writer_and_below_the_next() {
    support::needs!(Shares);
    let servers = Servers::start(5);
    let client = holder(servers.urls());
    let reader = || client.request("name").ttl(LONG).shared().fenced().lock().unwrap();
    let first = token(&reader());
    let before = token(&fenced(&client, "name"));
    assert!(before > first, "a writer after the reader");
    let reading = reader();
    assert!(token(&reading) >= before);
    // Numbers of which only a minority knows.
    servers[0].command(&["SET", "name:redlatch:fence", &(before + 9).to_string()]);
    let confused = token(&reader());
    assert!(confused >= before);
    drop(reading);
    assert!(token(&fenced(&client, "name")) > confused);
}

#[test]
fn a_thread_that_waits_for_itself_is_told_so() {
    support::needs!(Shares);
    let servers = Servers::start(1);
    let client = holder(servers.urls());
    client
        .with_lock("name", LONG, |_| {
            let again = client.request("name").shared().lock();
            assert!(matches!(again, Err(Error::HeldByThisThread)), "{again:?}");
            // It does not wait, whichever way it says so.
            let request = client.request("name").shared();
            assert!(matches!(request.clone().try_lock(), Ok(None)));
            assert!(matches!(request.try_lock_for(Duration::ZERO), Ok(None)));
            Ok::<_, Error>(())
        })
        .unwrap();
}

#[test]
fn a_set_of_resources_has_no_readers() {
    support::needs!(Shares);
    let client = without_restart_guard(["redis://127.0.0.1:1"]).build().unwrap();
    let refused = client.request_all(["one", "other"]).shared().try_lock();
    assert!(matches!(refused, Err(Error::Resource(ResourceError::SharedSet))));
    // A set of one resource is that resource.
    let servers = Servers::start(1);
    assert!(holder(servers.urls()).request_all(["one"]).shared().lock().is_ok());
}

#[test]
fn without_a_queue_readers_and_writers_try_again_after_pauses() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let unqueued = || without_restart_guard(servers.urls()).queue(false).build().unwrap();
    let writer = take(&client, "name", LONG);
    let other = unqueued();
    let waiting = spawn_waiter(move || {
        other.request("name").ttl(LONG).shared().lock().map(LockGuard::release)
    });
    drop(writer);
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    assert!(eventually(LIMIT, || take_if_free(&client)));
}

fn take_if_free(client: &LockClient) -> bool {
    client.try_lock("name", LONG).unwrap().is_some()
}
