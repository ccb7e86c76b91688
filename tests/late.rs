//! Bytes that the client wrote on a connection which it has given up since, and which the server
//! gets to read after those on the connection that took its place. Whatever they ask for, they take
//! nothing from anybody, and nothing stays behind.
//!
//! A server ends the predecessor of a new connection before it reads anything else from it, if its
//! user may say `CLIENT KILL`. Everything is run with a user that may not as well: then it is up to
//! the commands themselves to do no harm.

use crate::support;

use std::time::Duration;

use redlatch::{ExtendError, LockClient, LockGuard, Released};
use support::cli::Value;
use support::eventually;
use support::journal::Journal;
use support::locks::{LIMIT, LONG, connected, fresh, gone, holders, pttl, take, thorough, value};
use support::relay::{Relay, limited_urls, reconnect, relayed, urls};
use support::servers::Servers;

/// Shorter than [`LONG`], and long enough for a connection to be given up and replaced.
const SHORT: Duration = Duration::from_secs(12);

/// Between the two, in the milliseconds of `PTTL`.
const BETWEEN: i64 = 20_000;

/// What the servers let the client do.
#[derive(Clone, Copy)]
enum Rights {
    All,
    /// What locking takes, and no more.
    Least,
}

/// Servers behind relays, and a client that notices soon that a connection is silent.
struct Stage {
    servers: Servers,
    relays: Vec<Relay>,
    client: LockClient,
    journal: Journal,
}

impl Stage {
    #[track_caller]
    fn set(count: usize, rights: Rights) -> Self {
        let servers = Servers::start(count);
        let relays = relayed(&servers);
        let urls = match rights {
            Rights::All => urls(&relays),
            Rights::Least => limited_urls(&servers, &relays),
        };
        let journal = Journal::default();
        // A connection is given up after ten of these.
        let builder = fresh(urls).node_timeout(Duration::from_millis(200));
        let client = builder.on_event(journal.pen()).build().expect("the settings are good");
        Self { client: connected(client), servers, relays, journal }
    }

    /// Has a lock taken on all nodes, so that all of them have run what that takes.
    #[track_caller]
    fn take(&self, name: &str, ttl: Duration) -> LockGuard {
        let guard = self.client.request(name).ttl(ttl).wait_for(LIMIT).acquire();
        let guard = guard.expect("a majority answers").expect("nobody else holds the lock");
        assert!(eventually(LIMIT, || holders(&self.servers, name) == self.servers.len()));
        guard
    }

    /// Looks whether every node keeps the key for long, and gives the lock to nobody else.
    #[track_caller]
    fn assert_extended(&self, name: &str) {
        let left: Vec<_> = self.servers.iter().map(|server| pttl(server, name)).collect();
        assert!(left.iter().all(|left| *left > BETWEEN), "PTTL says {left:?}");
        let other = thorough(self.servers.urls());
        assert!(other.try_lock(name, LONG).expect("all nodes are up").is_none());
    }
}

/// Extends the lock for long, and delivers what is held back.
#[track_caller]
fn extend_and_deliver(stage: &Stage, mut guard: LockGuard) {
    reconnect(&stage.client, &stage.relays[..2]);
    assert!(eventually(LIMIT, || guard.extend(LONG).is_ok()));
    let is_long = || stage.servers.iter().all(|server| pttl(server, "late") > BETWEEN);
    assert!(eventually(LIMIT, is_long));
    stage.relays.iter().for_each(Relay::deliver);
    stage.assert_extended("late");
    drop(guard);
    assert!(gone(&stage.servers, "late"));
}

#[track_caller]
fn an_extension_comes_late(rights: Rights) {
    let stage = Stage::set(3, rights);
    let mut guard = stage.take("late", SHORT);
    stage.relays[..2].iter().for_each(Relay::hold);
    // Not longer than what is left, for all that the client knows, but it does not know all.
    let failed = guard.extend(SHORT);
    assert!(matches!(failed, Err(ExtendError::NoQuorum(_))), "{failed:?}");
    extend_and_deliver(&stage, guard);
}

#[test]
fn an_extension_that_comes_late_takes_no_time_away() {
    an_extension_comes_late(Rights::All);
}

#[test]
fn an_extension_that_comes_late_takes_no_time_away_where_no_connection_can_be_ended() {
    an_extension_comes_late(Rights::Least);
}

#[track_caller]
fn renewals_come_late(rights: Rights) {
    let stage = Stage::set(3, rights);
    let request = stage.client.request("late").ttl(SHORT).keep_alive().wait_for(LIMIT);
    let guard = request.acquire().expect("a majority answers").expect("it is free");
    assert!(eventually(LIMIT, || holders(&stage.servers, "late") == 3));
    stage.relays[..2].iter().for_each(Relay::hold);
    assert!(eventually(LIMIT, || stage.relays[..2].iter().all(|relay| relay.held() > 0)));
    extend_and_deliver(&stage, guard);
}

#[test]
fn renewals_that_come_late_take_no_time_away() {
    renewals_come_late(Rights::All);
}

#[test]
fn renewals_that_come_late_take_no_time_away_where_no_connection_can_be_ended() {
    renewals_come_late(Rights::Least);
}

/// Two locks that are planted on five nodes and released, all in time. Two of the nodes have yet to
/// read of them.
#[track_caller]
fn released_before_it_arrives(stage: &Stage, ttl: Duration) {
    stage.relays[..2].iter().for_each(Relay::hold);
    let guards = ["late", "later"].map(|name| take(&stage.client, name, ttl));
    assert_eq!(holders(&stage.servers[2..], "late"), 3);
    reconnect(&stage.client, &stage.relays[..2]);
    assert_eq!(guards.map(LockGuard::release), [Ok(Released::InTime), Ok(Released::InTime)]);
    assert!(gone(&stage.servers, "late") && gone(&stage.servers, "later"));
}

#[test]
fn a_key_does_not_outlive_its_release() {
    let stage = Stage::set(5, Rights::All);
    released_before_it_arrives(&stage, LONG);
    stage.relays.iter().for_each(Relay::deliver);
    assert_eq!(holders(&stage.servers, "late") + holders(&stage.servers, "later"), 0);
    let is_empty = || stage.servers.iter().all(|it| it.command(&["DBSIZE"]) == Value::Integer(0));
    assert!(eventually(LIMIT, is_empty), "nor is anything else there");
}

#[test]
fn where_no_connection_can_be_ended_a_key_outlives_its_release_by_its_ttl_at_most() {
    let stage = Stage::set(5, Rights::Least);
    released_before_it_arrives(&stage, SHORT / 2);
    let other = thorough(stage.servers.urls());
    // It may arrive where the next one holds the lock already, or before the next one comes.
    let theirs = take(&other, "late", LONG);
    let token = value(&stage.servers[0], "late");
    stage.relays.iter().for_each(Relay::deliver);
    assert!(stage.servers.iter().all(|server| value(server, "late") == token));
    let left = |server| pttl(server, "later") <= i64::try_from(SHORT.as_millis()).unwrap();
    assert!(stage.servers.iter().all(left));
    let also_theirs = take(&other, "later", LONG);
    for name in ["late", "later"] {
        let taken = stage.client.try_lock(name, LONG);
        assert!(!matches!(taken, Ok(Some(_))), "there is one holder");
    }
    for lock in [theirs, also_theirs] {
        assert_eq!(lock.release(), Ok(Released::InTime));
    }
    assert!(gone(&stage.servers, "late") && gone(&stage.servers, "later"));

    // What the user may not do is no reason to complain, as locks can be had without it.
    let entries = stage.journal.entries();
    let complaint = entries.iter().find(|entry| entry.text.contains("NOPERM"));
    assert!(complaint.is_none(), "{complaint:?}");
}
