//! Programs that are moved from one server to three, while others still use the old list: what
//! `src/guide/one_server.md` says is safe, and what it says is not. And how a list is ended for
//! programs that nobody can find, as `src/guide/scale.md` says.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use redlatch::{LockClient, LockGuard};
use support::capability::Capability;
use support::cli::Value;
use support::fencing::{AHEAD, fenced, set_counter, token};
use support::locks::{LIMIT, LONG, with_long_timeout};
use support::redis::Server;
use support::servers::Servers;

/// A client whose list has the first `count` servers, of which it reaches those whose bit is set.
fn client(servers: &Servers, count: usize, reached: u32) -> LockClient {
    let url = |(index, server): (usize, &Server)| match reached >> index & 1 {
        // Nothing listens there.
        0 => format!("redis://127.0.0.1:{}", index + 1),
        _ => server.url(),
    };
    let urls: Vec<_> = servers.iter().take(count).enumerate().map(url).collect();
    with_long_timeout(urls)
        .wait_for_all(true)
        .build()
        .expect("the settings are good")
}

/// A kind of lock that excludes all others.
type Take = fn(&LockClient) -> Option<LockGuard>;

fn whole(client: &LockClient) -> Option<LockGuard> {
    client.try_lock("moved", LONG).unwrap_or(None)
}

fn reader(client: &LockClient) -> Option<LockGuard> {
    client
        .request("moved")
        .ttl(LONG)
        .shared()
        .try_lock()
        .unwrap_or(None)
}

fn permit(client: &LockClient) -> Option<LockGuard> {
    client
        .request("moved")
        .ttl(LONG)
        .one_of(1)
        .try_lock()
        .unwrap_or(None)
}

/// With a list of `before` servers, and with one of `after`: in how many cases can a client of the
/// first list acquire a lock, and in how many of them a client of the second list as well? The
/// cases are all combinations of servers that the clients reach.
fn cases(servers: &Servers, (before, after): (usize, usize), take: (Take, Take)) -> (u32, u32) {
    let mut taken = 0;
    let mut taken_twice = 0;
    for reached in 0..1 << before {
        let holder = client(servers, before, reached);
        for also_reached in 0..1 << after {
            let Some(guard) = take.0(&holder) else {
                continue;
            };
            taken += 1;
            let second = take.1(&client(servers, after, also_reached));
            taken_twice += u32::from(second.is_some());
            drop(second);
            assert_eq!(guard.release(), Ok(()));
        }
    }
    (taken, taken_twice)
}

#[test]
fn lists_that_differ_by_one_server_exclude_each_other_whatever_each_client_reaches() {
    let servers = Servers::start(3);
    let mut all: Vec<(Take, Take)> = vec![(whole, whole)];
    if Capability::Shares.is_there() {
        all.extend([
            (whole as Take, reader as Take),
            (reader, whole),
            (permit, permit),
        ]);
    }
    for kinds in all {
        // Holders: with one server, if it is reached; with two, if both are; with three, if two
        // are, which are four cases of eight. Each against all cases of the others.
        assert_eq!(cases(&servers, (1, 2), kinds), (4, 0));
        assert_eq!(cases(&servers, (2, 1), kinds), (2, 0));
        assert_eq!(cases(&servers, (2, 3), kinds), (8, 0));
        assert_eq!(cases(&servers, (3, 2), kinds), (16, 0));
    }
}

#[test]
fn lists_that_differ_by_two_servers_do_not_exclude_each_other() {
    let servers = Servers::start(3);
    // The three cases in which the second client reaches both new servers and the old one, or not.
    assert_eq!(cases(&servers, (1, 3), (whole, whole)), (8, 2));
}

#[test]
fn nothing_happens_twice_while_programs_move_from_one_server_to_three() {
    let servers = Servers::start(3);
    set_counter(&servers[0], "moved", &AHEAD);
    let all = |count| client(&servers, count, 0b111);
    let clients = [all(1), all(2), all(3)];
    let last = Mutex::new(0);
    // At each step, all programs of the step before the last have ended.
    for step in [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]] {
        thread::scope(|scope| {
            for list in step.into_iter().chain(step) {
                let client = &clients[list];
                let last = &last;
                scope.spawn(move || {
                    for _ in 0..15 {
                        let guard = fenced(client, "moved");
                        let mut last = last.try_lock().expect("nobody else holds the lock");
                        assert!(token(&guard) > *last, "tokens grow across the lists");
                        *last = token(&guard);
                        thread::sleep(Duration::from_micros(300));
                        assert!(guard.ensure_held().is_ok());
                        drop(last);
                        drop(guard);
                    }
                });
            }
        });
    }
    assert!(*last.lock().expect("no thread has panicked") >= AHEAD + 5 * 4 * 15);
}

#[test]
fn a_list_whose_user_is_deleted_on_a_majority_grants_and_extends_nothing() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let client_as = |user: &str| {
        for server in servers.iter() {
            let made = server.command(&["ACL", "SETUSER", user, "on", ">pw", "~*", "+@all"]);
            assert_eq!(made, Value::ok());
        }
        let urls = servers
            .iter()
            .map(|server| server.url_of(&format!("{user}:pw")));
        // A lock is kept alive if its ttl is more than three of these.
        let short = with_long_timeout(urls).node_timeout(Duration::from_millis(700));
        short.build().expect("the settings are good")
    };
    let old = client_as("list-1");
    let new = client_as("list-2");
    let ttl = Duration::from_secs(3);
    let held = old
        .request("moved")
        .ttl(ttl)
        .keep_alive()
        .lock()
        .expect("it is free");
    thread::scope(|scope| {
        let waits = scope.spawn(|| old.request("moved").ttl(ttl).try_lock_for(LIMIT));
        for server in &servers[..2] {
            assert_eq!(server.command(&["ACL", "DELUSER", "list-1"]).integer(), 1);
        }
        // The kept lock is not extended, so it ends, and the new list has it at most a ttl later.
        let next = new.request("moved").ttl(ttl).try_lock_for(LIMIT);
        let next = next
            .expect("the new list has its user")
            .expect("the lock ends");
        assert!(held.ensure_held().is_err());
        assert!(
            old.try_lock("other", ttl).is_err(),
            "no majority admits the old list"
        );
        next.release().expect("it is held");
        assert!(
            !matches!(waits.join(), Ok(Ok(Some(_)))),
            "a call that waited is not served"
        );
    });
}
