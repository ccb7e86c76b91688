//! Readers of one client that take one share of a lock together.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard, LockRequest, LockState, LossReason};
use support::eventually;
use support::journal::{names, recorded_client};
use support::locks::{LIMIT, LONG, calls, without_restart_guard};
use support::loss::loss;
use support::servers::Servers;
use support::waiters::{await_keys, holder};

fn reader(client: &LockClient) -> LockRequest<'_> {
    client.request("name").ttl(LONG).shared()
}

/// How many shares the nodes know.
fn shares(client: &LockClient) -> usize {
    match client.inspect("name").unwrap().state {
        LockState::Shared(holders) => holders.len(),
        _ => 0,
    }
}

/// Guards of readers who have one share together. Which they have if they come soon enough after
/// each other: on a busy machine, not at the first attempt.
fn together<const N: usize>(client: &LockClient, request: &LockRequest<'_>) -> [LockGuard; N] {
    let start = Instant::now();
    loop {
        let guards = [(); N].map(|()| request.clone().lock().unwrap());
        if shares(client) == 1 {
            return guards;
        }
        assert!(start.elapsed() < LIMIT, "they never take it together");
        drop(guards);
    }
}

fn is_free(client: &LockClient) -> bool {
    client.try_lock("name", LONG).unwrap().is_some()
}

#[test]
fn a_hundred_threads_that_read_at_once_take_a_few_shares() {
    support::needs!(Shares);
    const COUNT: usize = 100;
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(without_restart_guard(servers.urls()));
    reader(&client).lock().unwrap().release().unwrap();
    let scripts = || calls(&servers[0], "evalsha") + calls(&servers[0], "eval");
    let before = scripts();
    let barrier = Barrier::new(COUNT);
    journal.take_lock_events();
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..COUNT {
            scope.spawn(|| {
                barrier.wait();
                let guard = reader(&client).lock().unwrap();
                barrier.wait(); // ends only if all of them hold it at the same time
                assert!(guard.remaining() > LONG / 2);
                guard.release().unwrap();
            });
        }
    });
    // One for the share and one for its release. Each a share of its own would take two hundred.
    // Threads that a busy machine runs later have another share, of which one is taken in 10 ms.
    let later = start.elapsed().as_millis() as u64 / 10;
    let scripts = scripts() - before;
    assert!(scripts < 60.max(2 * later), "{scripts} scripts");
    let events = journal.take_lock_events();
    let count = |name| names(&events).iter().filter(|it| **it == name).count();
    assert_eq!(
        (count("acquired"), count("released"), count("lost")),
        (COUNT, COUNT, 0)
    );
    await_keys(&servers, &[]);
}

#[test]
fn the_last_of_them_gives_the_lock_back_and_callbacks_go_with_their_guard() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let writer = holder(servers.urls());
    let [first, second, third] = together(&client, &reader(&client));
    let called = Arc::new(AtomicUsize::new(0));
    for guard in [&first, &second, &third] {
        let called = Arc::clone(&called);
        guard
            .on_lost(move |_| _ = called.fetch_add(1, Ordering::SeqCst))
            .unwrap();
    }
    assert_eq!(first.release(), Ok(()));
    assert_eq!(
        Arc::strong_count(&called),
        3,
        "what its callback owns is dropped with it"
    );
    drop(second);
    assert_eq!((Arc::strong_count(&called), shares(&client)), (2, 1));
    assert!(!is_free(&writer));
    assert_eq!(third.ensure_held(), Ok(()));
    assert_eq!(third.release(), Ok(()));
    assert!(is_free(&writer));
    assert_eq!(
        (called.load(Ordering::SeqCst), Arc::strong_count(&called)),
        (0, 1)
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_loss_is_seen_by_all_of_them() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(without_restart_guard(servers.urls()));
    let [mut asks, waits, drops, left_before] = together(&client, &reader(&client));
    let called = Arc::new(AtomicUsize::new(0));
    for guard in [&asks, &waits, &drops, &left_before] {
        let called = Arc::clone(&called);
        guard
            .on_lost(move |_| _ = called.fetch_add(1, Ordering::SeqCst))
            .unwrap();
    }
    journal.take_lock_events();
    assert_eq!(left_before.release(), Ok(()));
    let seen = client.inspect("name").unwrap();
    assert!(client.force_release(&seen).unwrap());
    assert!(matches!(asks.extend(LONG), Err(Error::Lost(_))));
    assert_eq!(waits.wait_lost(LIMIT).unwrap().reason(), LossReason::Gone);
    assert_eq!(
        (waits.remaining(), drops.remaining()),
        (Duration::ZERO, Duration::ZERO)
    );
    assert!(eventually(LIMIT, || called.load(Ordering::SeqCst) == 3));
    assert!(matches!(waits.release(), Err(Error::Lost(_))));
    drop(drops);
    assert!(matches!(asks.release(), Err(Error::Lost(_))));
    let events = journal.take_lock_events();
    let count = |name| names(&events).iter().filter(|it| **it == name).count();
    assert_eq!((count("lost"), count("released")), (3, 4), "{events:?}");
    assert_eq!(called.load(Ordering::SeqCst), 3);
    // A reader that comes now has a share of its own.
    assert_eq!(reader(&client).lock().unwrap().release(), Ok(()));
}

#[test]
fn they_have_one_validity_and_an_extension_is_for_all() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let request = client.request("name").ttl(Duration::from_secs(1)).shared();
    let [mut first, second] = together(&client, &request);
    let before = first.remaining();
    let after = second.remaining();
    assert!(before >= after && before - after < LIMIT);
    first.extend(LONG).unwrap();
    assert!(second.remaining() > LONG / 2);
    drop(first);
    assert!(second.wait_lost(Duration::from_millis(1_500)).is_none());
    assert_eq!(second.release(), Ok(()));
    let [third, fourth] = together(&client, &request);
    assert_eq!(
        third.wait_lost(LIMIT).unwrap().reason(),
        LossReason::Expired
    );
    assert_eq!(loss(&fourth), Some(LossReason::Expired));
    assert!(matches!(fourth.release(), Err(Error::Lost(_))));
    assert!(matches!(third.release(), Err(Error::Lost(_))));
}

#[test]
fn a_share_is_kept_alive_until_the_last_of_them_has_gone() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(without_restart_guard(servers.urls()));
    let ttl = Duration::from_secs(2);
    let request = client.request("name").ttl(ttl).shared().keep_alive();
    let [taker, second, third] = together(&client, &request);
    drop(taker);
    assert!(second.wait_lost(ttl * 3 / 2).is_none());
    assert_eq!(second.release(), Ok(()));
    assert!(third.wait_lost(ttl * 3 / 2).is_none());
    assert_eq!(third.release(), Ok(()));
    await_keys(&servers, &[]);
    let extended = journal
        .take_lock_events()
        .iter()
        .filter(|it| it.name == "extended")
        .count();
    thread::sleep(ttl);
    assert!(
        extended > 0 && journal.take_lock_events().is_empty(),
        "nothing is extended any more"
    );
}

#[test]
fn one_that_lets_it_expire_keeps_it_taken_when_the_others_have_gone() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let writer = holder(servers.urls());
    for is_dropped in [false, true] {
        let request = client.request("name").ttl(Duration::from_secs(2)).shared();
        let [first, second] = together(&client, &request);
        let end = Instant::now() + first.remaining();
        first.let_expire();
        if is_dropped {
            drop(second);
        } else {
            assert_eq!(second.release(), Ok(()));
        }
        assert!(!is_free(&writer));
        drop(writer.lock("name", LONG).unwrap());
        assert!(
            Instant::now() >= end - Duration::from_millis(1),
            "{:?}",
            end.elapsed()
        );
    }
}

#[test]
fn requests_with_other_settings_take_shares_of_their_own() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let requests = [
        reader(&client),
        reader(&client).owner("a name"),
        reader(&client).ttl(LONG / 2),
        reader(&client).fenced(),
        reader(&client).keep_alive(),
        reader(&client).max_hold(LONG),
        reader(&client).hold_at_least(Duration::from_millis(1)),
        reader(&client).hold_at_least(Duration::from_millis(1)),
    ];
    let guards = requests
        .each_ref()
        .map(|request| request.clone().lock().unwrap());
    assert_eq!(shares(&client), requests.len());
    // More of the validity than is left of any share.
    let much = reader(&client).min_validity(guards[0].remaining() + Duration::from_millis(1));
    let more = much.lock().unwrap();
    assert_eq!(shares(&client), requests.len() + 1);
    drop((guards, more));
    await_keys(&servers, &[]);
}

#[test]
fn a_panic_of_one_of_them_leaves_the_share_to_the_others() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let writer = holder(servers.urls());
    let [first, second] = together(&client, &reader(&client));
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _held = first;
        panic!("a panic under a lock, as this test wants it to");
    }));
    assert!(panicked.is_err());
    assert_eq!((shares(&client), is_free(&writer)), (1, false));
    assert_eq!(second.release(), Ok(()));
    assert!(is_free(&writer));
}
