//! Calls that wait until a register changes: the nodes tell them, so they look seldom.

use std::thread;
use std::time::{Duration, Instant};

use support::eventually;
use support::locks::{LIMIT, calls};
use support::redis::Server;

use crate::registers::{client, formed, read, set};

/// How many scripts a node has run.
fn scripts(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
}

/// How many keys a node remembers for those that are to be told of changes.
#[track_caller]
fn tracked(server: &Server) -> u64 {
    let info = server.client().command(&["INFO", "stats"]);
    let keys = info.field("tracking_total_keys").and_then(|keys| keys.parse().ok());
    keys.expect("a server that can tell says how many keys it remembers")
}

#[test]
fn a_call_that_waits_for_a_change_looks_seldom() {
    support::needs!(Tracking);
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    let seen = set(&register, "one");
    assert!(register.read().unwrap().is_some());
    let before = scripts(&servers[0]);
    let wait = Duration::from_secs(2);
    let value = register.wait_for_change(Some(seen), wait).unwrap();
    assert_eq!(value.unwrap().version(), seen);
    let looks = scripts(&servers[0]) - before;
    assert!((2..=4).contains(&looks), "at once, once a second and at the end, and not {looks}");
}

#[test]
fn a_change_is_told_to_those_that_wait() {
    support::needs!(Tracking);
    let (servers, first) = formed(3);
    let other = client(&servers).register("a").unwrap();
    let register = first.register("a").unwrap();
    let begun = Instant::now();
    let changes = 20;
    let waits = thread::spawn(move || {
        let mut seen = None;
        for _ in 0..changes {
            let value = other.wait_for_change(seen, LIMIT).unwrap().expect("nobody deletes it");
            seen = Some(value.version());
        }
        assert_eq!(other.wait_for_change(seen, LIMIT).unwrap(), None, "it was deleted");
        assert_eq!(read(&other), None);
    });
    for number in 0..changes {
        // Until it waits again.
        let are_tracked = || servers.iter().all(|server| tracked(server) > 0);
        assert!(eventually(LIMIT, are_tracked));
        set(&register, &number.to_string());
        assert!(
            eventually(LIMIT, || waits.is_finished() || servers.iter().all(|it| tracked(it) > 0))
        );
    }
    register.delete().unwrap();
    waits.join().unwrap();
    // Not told, it would take most of the second between two looks each time.
    assert!(begun.elapsed() < Duration::from_secs(changes) / 2, "{:?}", begun.elapsed());
}

#[test]
fn a_call_that_waits_goes_on_while_a_node_is_down_and_after_a_cancellation() {
    let (mut servers, first) = formed(3);
    let register = first.register("a").unwrap();
    let seen = set(&register, "one");
    let other = client(&servers);
    other.cancel_token().cancel();
    let waiting = other.register("a").unwrap();
    servers[1].kill();
    thread::scope(|scope| {
        let waits = scope.spawn(|| waiting.wait_for_change(Some(seen), LIMIT).unwrap());
        let before = scripts(&servers[0]);
        assert!(eventually(LIMIT, || scripts(&servers[0]) > before + 1), "it looks");
        set(&register, "two");
        let value = waits.join().unwrap().unwrap();
        assert_eq!(value.bytes(), b"two");
    });
}
