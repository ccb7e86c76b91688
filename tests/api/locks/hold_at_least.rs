//! `hold_at_least`: a lock that is released early stays taken for that time, and no longer.

use std::time::Duration;

use redlatch::error::TtlError;
use redlatch::{Error, LockClient, LockRequest};
use support::eventually;
use support::journal::{Journal, names};
use support::locks::{
    LIMIT, LONG, all_nodes_client, can_be_acquired, gone, holders, pttl, take, with_long_timeout,
    without_restart_guard,
};
use support::servers::Servers;

const LEAST: Duration = Duration::from_secs(3);

/// Shorter than `LEAST`, and longer than what any test does before it releases the lock.
const TTL: Duration = Duration::from_secs(2);

fn request<'a>(client: &'a LockClient, resource: &str) -> LockRequest<'a> {
    client.request(resource).ttl(TTL).hold_at_least(LEAST)
}

#[test]
fn another_lock_under_the_key_keeps_its_ttl() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let guard = request(&client, "lost").lock().unwrap();
    servers[0].command(&["DEL", "lost"]);
    let other = take(&all_nodes_client(servers.urls()), "lost", LONG);
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert!(
        pttl(&servers[0], "lost") > 10_000,
        "its time to live was changed"
    );
    drop(other);
}

#[test]
fn an_event_says_for_how_long_the_lock_stays_taken() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let client = with_long_timeout(servers.urls())
        .on_event(journal.recorder())
        .build()
        .unwrap();
    drop(request(&client, "cron").lock().unwrap());
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "acquired", "released"]);
    assert!(events[2].validity > Duration::ZERO && events[2].validity <= LEAST);
    assert!(events[2].text.contains("remaining "), "{}", events[2].text);
    drop(take(&client, "other", TTL));
    let events = journal.take_lock_events();
    assert_eq!(events[2].validity, Duration::ZERO);
    assert!(!events[2].text.contains("remaining"), "{}", events[2].text);
}

#[test]
fn it_may_be_much_longer_than_max_ttl() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let least = Duration::from_secs(14 * 60);
    let ask = |name| client.request(name).ttl(TTL).hold_at_least(least);
    assert_eq!(ask("cron").lock().unwrap().release(), Ok(()));
    drop(ask("dropped").fenced().lock().unwrap());
    drop(ask("permit").one_of(1).lock().unwrap());
    drop(ask("reader").shared().lock().unwrap());
    let ran = ask("job").ttl(LONG).try_with_lock(|_| Ok::<_, Error>(()));
    assert_eq!(ran, Ok(Some(())));
    for name in ["cron", "dropped", "permit", "reader", "job"] {
        let stays = |server| (13 * 60_000..=14 * 60_000).contains(&pttl(server, name));
        assert!(eventually(LIMIT, || servers.iter().all(stays)), "{name}");
    }
    // Not even if another client's setting is shorter.
    let other = with_long_timeout(servers.urls())
        .max_ttl(LEAST)
        .build()
        .unwrap();
    assert!(other.try_lock("cron", TTL).unwrap().is_none());
    assert!(
        other
            .request("permit")
            .ttl(TTL)
            .one_of(1)
            .try_lock()
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_minority_that_forgets_a_lock_that_stays_taken_does_not_free_it() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let request = client
        .request("cron")
        .ttl(TTL)
        .hold_at_least(Duration::from_secs(60 * 60));
    assert_eq!(request.lock().unwrap().release(), Ok(()));
    servers[0].restart();
    let other = without_restart_guard(servers.urls())
        .node_timeout(LIMIT)
        .build()
        .unwrap();
    assert!(other.try_lock("cron", TTL).unwrap().is_none());
    assert!(
        gone(&servers[..1], "cron"),
        "what the attempt left there is removed"
    );
    // A majority that forgets it ends it, without the restart guard at once.
    servers[1].restart();
    assert!(eventually(LIMIT, || can_be_acquired(&other, "cron")));
}

#[test]
fn it_is_at_most_max_hold_or_a_day() {
    let servers = Servers::start(1);
    let client = with_long_timeout(servers.urls())
        .max_ttl(LEAST)
        .build()
        .unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let hold_at_least = day + Duration::from_millis(1);
    let refused = request(&client, "long")
        .hold_at_least(hold_at_least)
        .try_lock();
    let error = TtlError::HoldTooLong {
        hold_at_least,
        longest: day,
    };
    assert_eq!(refused.map(drop), Err(Error::Ttl(error)));
    let refused = request(&client, "long").max_hold(TTL).try_lock();
    let error = TtlError::HoldTooLong {
        hold_at_least: LEAST,
        longest: TTL,
    };
    assert_eq!(refused.map(drop), Err(Error::Ttl(error)));
    let year = Duration::from_secs(366 * day.as_secs() / 60 * 60);
    let refused = request(&client, "long")
        .max_hold(Duration::MAX)
        .hold_at_least(year)
        .try_lock();
    let error = TtlError::HoldTooLong {
        hold_at_least: year,
        longest: day * 365,
    };
    assert_eq!(refused.map(drop), Err(Error::Ttl(error)));
    assert_eq!(holders(&servers, "long"), 0);
    let guard = request(&client, "long").max_hold(LEAST).try_lock().unwrap();
    drop(guard.expect("no other client holds the lock"));
}
