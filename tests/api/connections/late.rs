//! Late commands: bytes that the client wrote on a connection which it then abandoned, and which
//! the server reads after those of the next connection. They must not affect any lock, and no key
//! stays behind.
//!
//! A server ends the abandoned connection before it reads more from it, if the client's user has
//! the right to `CLIENT KILL`. Each test also runs with a user without this right: then the
//! commands themselves must be harmless.

use std::time::Duration;

use redlatch::{Error, LockClient, LockGuard};
use support::cli::Value;
use support::eventually;
use support::journal::Journal;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, holders, pttl, take, value,
    without_restart_guard,
};
use support::relay::{Relay, limited_urls, reconnect, relayed, urls};
use support::servers::Servers;

/// Shorter than [`LONG`], and long enough for a connection to be abandoned and replaced.
const SHORT: Duration = Duration::from_secs(12);

/// A time between the two, in milliseconds as in `PTTL`.
const BETWEEN: i64 = 20_000;

/// The rights of the client's user.
#[derive(Clone, Copy)]
enum Rights {
    All,
    /// Only what locking needs.
    Least,
}

/// Servers behind relays, and a client that abandons silent connections soon.
struct Setup {
    servers: Servers,
    relays: Vec<Relay>,
    client: LockClient,
    journal: Journal,
}

impl Setup {
    #[track_caller]
    fn start(count: usize, rights: Rights) -> Self {
        let servers = Servers::start(count);
        let relays = relayed(&servers);
        let urls = match rights {
            Rights::All => urls(&relays),
            Rights::Least => limited_urls(&servers, &relays),
        };
        let journal = Journal::default();
        // A connection is abandoned after ten of these.
        let builder = without_restart_guard(urls).node_timeout(Duration::from_millis(200));
        let client = builder
            .on_event(journal.recorder())
            .build()
            .expect("the settings are good");
        Self {
            client: connected(client),
            servers,
            relays,
            journal,
        }
    }

    /// Acquires a lock on all nodes, so that each has run the commands for it.
    #[track_caller]
    fn take(&self, name: &str, ttl: Duration) -> LockGuard {
        let guard = self.client.request(name).ttl(ttl).try_lock_for(LIMIT);
        let guard = guard
            .expect("a majority answers")
            .expect("no other client holds the lock");
        assert!(eventually(LIMIT, || holders(&self.servers, name) == self.servers.len()));
        guard
    }

    /// Each node keeps the key for long, and no other client gets the lock.
    #[track_caller]
    fn assert_extended(&self, name: &str) {
        let left: Vec<_> = self
            .servers
            .iter()
            .map(|server| pttl(server, name))
            .collect();
        assert!(
            left.iter().all(|left| *left > BETWEEN),
            "PTTL says {left:?}"
        );
        let other = all_nodes_client(self.servers.urls());
        assert!(
            other
                .try_lock(name, LONG)
                .expect("all nodes are up")
                .is_none()
        );
    }
}

/// Extends the lock by [`LONG`], and delivers the bytes that were held back.
#[track_caller]
fn extend_and_deliver(setup: &Setup, mut guard: LockGuard) {
    reconnect(&setup.client, &setup.relays[..2]);
    assert!(eventually(LIMIT, || guard.extend(LONG).is_ok()));
    let is_long = || {
        setup
            .servers
            .iter()
            .all(|server| pttl(server, "late") > BETWEEN)
    };
    assert!(eventually(LIMIT, is_long));
    setup.relays.iter().for_each(Relay::deliver);
    setup.assert_extended("late");
    drop(guard);
    assert!(gone(&setup.servers, "late"));
}

#[track_caller]
fn check_late_extension(rights: Rights) {
    let setup = Setup::start(3, rights);
    let mut guard = setup.take("late", SHORT);
    setup.relays[..2].iter().for_each(Relay::hold);
    // As far as the client knows, this is no longer than the remaining ttl.
    let failed = guard.extend(SHORT);
    assert!(matches!(failed, Err(Error::NoQuorum(_))), "{failed:?}");
    extend_and_deliver(&setup, guard);
}

#[test]
fn a_late_extension_does_not_shorten_the_ttl() {
    check_late_extension(Rights::All);
}

#[test]
fn a_late_extension_does_not_shorten_the_ttl_without_the_right_to_kill_connections() {
    support::needs!(Users);
    check_late_extension(Rights::Least);
}

#[track_caller]
fn check_late_automatic_extensions(rights: Rights) {
    let setup = Setup::start(3, rights);
    let request = setup.client.request("late").ttl(SHORT).keep_alive();
    let guard = request
        .try_lock_for(LIMIT)
        .expect("a majority answers")
        .expect("it is free");
    assert!(eventually(LIMIT, || holders(&setup.servers, "late") == 3));
    setup.relays[..2].iter().for_each(Relay::hold);
    assert!(eventually(LIMIT, || setup.relays[..2]
        .iter()
        .all(|relay| relay.held() > 0)));
    extend_and_deliver(&setup, guard);
}

#[test]
fn late_automatic_extensions_do_not_shorten_the_ttl() {
    check_late_automatic_extensions(Rights::All);
}

#[test]
fn late_automatic_extensions_do_not_shorten_the_ttl_without_the_right_to_kill_connections() {
    support::needs!(Users);
    check_late_automatic_extensions(Rights::Least);
}

/// Two locks are acquired on five nodes and released in time. Two of the nodes have not read the
/// commands yet.
#[track_caller]
fn released_before_it_arrives(setup: &Setup, ttl: Duration) {
    setup.relays[..2].iter().for_each(Relay::hold);
    let guards = ["late", "later"].map(|name| take(&setup.client, name, ttl));
    assert_eq!(holders(&setup.servers[2..], "late"), 3);
    reconnect(&setup.client, &setup.relays[..2]);
    assert_eq!(guards.map(LockGuard::release), [Ok(()), Ok(())]);
    assert!(gone(&setup.servers, "late") && gone(&setup.servers, "later"));
}

#[test]
fn late_commands_leave_no_key_after_a_release() {
    support::needs!(Resp3);
    let setup = Setup::start(5, Rights::All);
    released_before_it_arrives(&setup, LONG);
    setup.relays.iter().for_each(Relay::deliver);
    assert_eq!(
        holders(&setup.servers, "late") + holders(&setup.servers, "later"),
        0
    );
    let is_empty = || {
        setup
            .servers
            .iter()
            .all(|it| it.command(&["DBSIZE"]) == Value::Integer(0))
    };
    assert!(
        eventually(LIMIT, is_empty),
        "there are no other keys either"
    );
}

#[test]
fn without_the_right_to_kill_connections_a_late_key_stays_for_its_ttl_at_most() {
    support::needs!(Users);
    let setup = Setup::start(5, Rights::Least);
    released_before_it_arrives(&setup, SHORT / 2);
    let other = all_nodes_client(setup.servers.urls());
    // It may arrive before or after the next client acquires the lock.
    let theirs = take(&other, "late", LONG);
    let token = value(&setup.servers[0], "late");
    setup.relays.iter().for_each(Relay::deliver);
    assert!(
        setup
            .servers
            .iter()
            .all(|server| value(server, "late") == token)
    );
    let left = |server| pttl(server, "later") <= i64::try_from(SHORT.as_millis()).unwrap();
    assert!(setup.servers.iter().all(left));
    let also_theirs = take(&other, "later", LONG);
    for name in ["late", "later"] {
        let taken = setup.client.try_lock(name, LONG);
        assert!(!matches!(taken, Ok(Some(_))), "there is one holder");
    }
    for lock in [theirs, also_theirs] {
        assert_eq!(lock.release(), Ok(()));
    }
    assert!(gone(&setup.servers, "late") && gone(&setup.servers, "later"));

    // A missing right is not reported as an error, because locks work without it.
    let entries = setup.journal.entries();
    let complaint = entries.iter().find(|entry| entry.text.contains("NOPERM"));
    assert!(complaint.is_none(), "{complaint:?}");
}
