//! The events of a lock that is kept alive while extensions fail: when that begins, now and then,
//! and when it ends.

use std::time::Duration;

use redlatch::LockGuard;
use support::eventually;
use support::journal::{Journal, names};
use support::locks::{LIMIT, pause, resume, without_restart_guard};
use support::redis::Server;
use support::servers::Servers;

/// Servers, and a lock that is kept alive and has been extended at least once.
fn kept(ttl: Duration) -> (Servers, Journal, LockGuard) {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let settings = without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(200));
    let client = settings
        .on_event(journal.recorder())
        .build()
        .expect("the settings are good");
    let guard = client
        .request("kept")
        .ttl(ttl)
        .keep_alive()
        .lock()
        .expect("a majority answers");
    assert!(await_event(&journal, "extended"));
    (servers, journal, guard)
}

fn await_event(journal: &Journal, name: &str) -> bool {
    eventually(LIMIT, || {
        journal.entries().iter().any(|entry| entry.name == name)
    })
}

fn count(events: &[&str], name: &str) -> usize {
    events.iter().filter(|event| **event == name).count()
}

#[test]
fn extensions_that_fail_until_the_lock_is_lost_are_reported_now_and_then() {
    let (mut servers, journal, _guard) = kept(Duration::from_secs(2));
    // Their ports refuse connections: every extension fails at once.
    servers.iter_mut().for_each(Server::kill);
    assert!(await_event(&journal, "lost"));
    let events = names(&journal.take_lock_events());
    let failed = count(&events, "not_extended");
    assert!(
        (1..=10).contains(&failed),
        "a tenth of the ttl between them: {events:?}"
    );
    assert_eq!(count(&events, "lost"), 1);
    assert_eq!(events.last(), Some(&"lost"), "that ends it: {events:?}");
}

#[test]
fn an_extension_ends_the_failures_and_the_next_failure_is_reported_again() {
    let (servers, journal, guard) = kept(Duration::from_secs(4));
    for _ in 0..2 {
        journal.take_lock_events();
        pause(&servers, 2);
        assert!(await_event(&journal, "not_extended"), "it begins");
        resume(&servers, 2);
        let ended = || {
            let entries = journal.entries();
            let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
            let begun = names.iter().position(|name| *name == "not_extended");
            begun.is_some_and(|begun| names[begun..].contains(&"extended"))
        };
        assert!(eventually(LIMIT, ended), "{:?}", journal.entries());
        assert!(guard.remaining() > Duration::ZERO);
    }
}

/// Waits until an event of this name was reported.
fn expect(journal: &Journal, name: &str) {
    let is_there = || journal.entries().iter().any(|entry| entry.name == name);
    assert!(eventually(LIMIT, is_there), "no {name}");
}

#[test]
fn automatic_extensions_and_node_failures_are_reported_when_they_happen() {
    const TTL: Duration = Duration::from_secs(2);
    let mut servers = Servers::start(3);
    let journal = Journal::default();
    // Nine times as long is a part of the ttl, after which the extension is tried again.
    let settings = without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(80));
    let client = settings.on_event(journal.recorder()).build().unwrap();
    let nodes: Vec<_> = client
        .nodes()
        .iter()
        .map(|node| node.url.to_string())
        .collect();
    let guard = client.request("kept").ttl(TTL).keep_alive().lock().unwrap();
    journal.take_lock_events();
    // From here on the test makes no call.
    expect(&journal, "extended");
    let events = journal.take_lock_events();
    assert!(
        events.iter().all(|entry| entry.about == "kept"),
        "{events:?}"
    );
    assert!(
        events[0].text.contains("automatic") && events[0].validity > TTL / 2,
        "{events:?}"
    );
    assert!(
        events[0].span > Duration::ZERO && events[0].span < TTL,
        "{events:?}"
    );

    servers[0].kill();
    // A server that gets no processor for a while is slow, but its connection stays.
    let changes = || {
        let events = journal.node_events(&nodes[0]);
        events
            .into_iter()
            .filter(|name| *name != "node_slow")
            .collect::<Vec<_>>()
    };
    assert!(
        eventually(LIMIT, || changes() == ["node_up", "node_down"]),
        "{:?}",
        changes()
    );
    assert_eq!(guard.ensure_held(), Ok(()));
    servers[0].restart();
    let back = ["node_up", "node_down", "node_up"];
    assert!(eventually(LIMIT, || changes() == back), "{:?}", changes());
    journal.take_lock_events();

    pause(&servers, 3);
    expect(&journal, "lost");
    resume(&servers, 3);
    let events = names(&journal.take_lock_events());
    assert!(events.contains(&"not_extended"), "{events:?}");
    assert_eq!(
        events.iter().position(|name| *name == "lost"),
        Some(events.len() - 1),
        "{events:?}"
    );
    drop(guard);
    assert_eq!(
        names(&journal.take_lock_events()),
        ["released"],
        "and the loss only once"
    );
}
