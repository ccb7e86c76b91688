//! Calls that wait until a register changes: the nodes tell them, so they look seldom.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::register::Value;
use support::eventually;
use support::locks::{LIMIT, calls};
use support::redis::Server;

use super::{client, formed, read, set};

/// How many scripts a node has run.
fn scripts(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
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
    assert!(
        (2..=4).contains(&looks),
        "at once, once a second and at the end, and not {looks}"
    );
}

#[test]
fn a_change_is_told_to_those_that_wait() {
    support::needs!(Tracking);
    let (servers, first) = formed(3);
    let other = client(&servers).register("a").unwrap();
    let register = first.register("a").unwrap();
    let begun = Instant::now();
    let changes = 20;
    let (go_on, goes_on) = mpsc::channel();
    let (has_seen, was_seen) = mpsc::channel();
    let waits = thread::spawn(move || {
        let mut seen = None;
        for () in goes_on {
            let value = other.wait_for_change(seen, LIMIT).unwrap();
            seen = value.as_ref().map(Value::version);
            has_seen
                .send(value.map(|value| value.bytes().to_vec()))
                .unwrap();
        }
    });
    // Lets it wait, and returns once it has looked on every node and found nothing new.
    let let_wait = || {
        let before: Vec<u64> = servers.iter().map(scripts).collect();
        go_on.send(()).unwrap();
        let has_looked = || {
            servers
                .iter()
                .zip(&before)
                .all(|(it, before)| scripts(it) > *before)
        };
        assert!(eventually(LIMIT, has_looked));
    };
    for number in 0..changes {
        let_wait();
        set(&register, &number.to_string());
        let seen = was_seen.recv_timeout(LIMIT).unwrap();
        assert_eq!(seen, Some(number.to_string().into_bytes()));
    }
    let_wait();
    register.delete().unwrap();
    assert_eq!(
        was_seen.recv_timeout(LIMIT).unwrap(),
        None,
        "it was deleted"
    );
    drop(go_on);
    waits.join().unwrap();
    assert_eq!(read(&register), None);
    // Not told, it would take most of the second between two looks each time.
    assert!(
        begun.elapsed() < Duration::from_secs(changes) / 2,
        "{:?}",
        begun.elapsed()
    );
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
        assert!(
            eventually(LIMIT, || scripts(&servers[0]) > before + 1),
            "it looks"
        );
        set(&register, "two");
        let value = waits.join().unwrap().unwrap();
        assert_eq!(value.bytes(), b"two");
    });
}
