//! Events about the nodes' queue: a place and a turn are reported once in a call, and a node where
//! the queue does not work is reported once.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use redlatch::event::AttemptOutcome;
use redlatch::{Error, Event, NodeStatus, QueueSupport};
use support::cli::Value;
use support::eventually;
use support::journal::{Journal, names, recorded_client};
use support::locks::{LIMIT, LONG, all_nodes_client, holders, take, with_long_timeout};
use support::queue::finish;
use support::redis::Server;
use support::secret::SECRET;
use support::servers::Servers;

/// Has this client reported its place in the nodes' queue?
#[track_caller]
fn is_queued(journal: &Journal) {
    let is_reported = || journal.entries().iter().any(|entry| entry.name == "queued");
    assert!(eventually(LIMIT, is_reported), "{:?}", journal.entries());
}

#[test]
fn a_place_and_a_turn_are_reported_once_and_in_order() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "job", LONG);
    let waiting: Vec<_> = (0..2)
        .map(|place| {
            let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
            let thread = std::thread::spawn(move || client.lock("job", LONG).unwrap());
            // It is reported before the wait.
            is_queued(&journal);
            let text = format!("queued: ahead {place}");
            let events = journal.take_lock_events();
            assert_eq!(names(&events), ["attempt", "queued"]);
            assert_eq!(events[0].outcome, Some(AttemptOutcome::Contended));
            assert!(
                events[1].text.ends_with(&text) && events[1].about == "job",
                "{events:?}"
            );
            (thread, journal)
        })
        .collect();
    // For longer than entries are kept: they are renewed, and that is not an event.
    std::thread::sleep(Duration::from_secs(6));
    assert!(
        waiting
            .iter()
            .all(|(_, journal)| journal.take_lock_events().is_empty())
    );

    assert_eq!(held.release(), Ok(()));
    for (thread, journal) in waiting {
        let guard = finish(thread);
        let events = journal.take_lock_events();
        assert_eq!(names(&events), ["woken", "attempt", "acquired"]);
        assert_eq!(
            (events[1].outcome, events[1].attempts),
            (Some(AttemptOutcome::Granted), 2)
        );
        assert_eq!(events[2].attempts, 2);
        let woken = events[0].span;
        let acquired = events[2].span;
        assert!(
            woken >= Duration::from_secs(6) && woken <= acquired,
            "{events:?}"
        );
        assert_eq!(guard.release(), Ok(()));
    }
}

#[test]
fn a_wait_that_ends_without_the_lock_reports_no_turn() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "job", LONG);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let wait = Duration::from_secs(1);
    assert!(
        client
            .request("job")
            .ttl(LONG)
            .try_lock_for(wait)
            .unwrap()
            .is_none()
    );
    assert_eq!(
        names(&journal.take_lock_events()),
        ["attempt", "queued", "contended"]
    );

    let handle = client.cancel_token();
    let thread = std::thread::spawn(move || client.lock("job", LONG).unwrap_err());
    is_queued(&journal);
    handle.cancel();
    assert_eq!(finish(thread), Error::Cancelled);
    assert_eq!(
        names(&journal.take_lock_events()),
        ["attempt", "queued", "failed"]
    );
    drop(held);
}

#[test]
fn a_callback_that_panics_leaves_no_waiter_in_the_queue() {
    let servers = Servers::start(3);
    let other = all_nodes_client(servers.urls());
    let held = take(&other, "job", LONG);
    let panics = |event: &Event<'_>| assert_ne!(event.name(), "queued", "as the test wants");
    // It is not its lease that ends.
    let builder = with_long_timeout(servers.urls()).waiter_lease(3 * LIMIT);
    let builder = builder.wait_for_all(true).on_event(panics);
    let client = builder.build().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| client.lock("job", LONG)));
    assert!(result.is_err(), "the panic reaches the caller");
    assert!(eventually(LIMIT, || other
        .inspect("job")
        .unwrap()
        .waiters
        .is_empty()));
    assert_eq!(held.release(), Ok(()));
    assert_eq!(holders(&servers, "job"), 0, "it is reserved for nobody");
}

/// The URL of a server for a user with these rights besides all others.
#[track_caller]
fn url_of_user(server: &Server, rights: &str) -> String {
    let rule = format!("ACL SETUSER app on >{SECRET} ~* +@all {rights}");
    let words: Vec<_> = rule.split(' ').filter(|word| !word.is_empty()).collect();
    assert_eq!(server.command(&words), Value::ok());
    server.url_of(&format!("app:{SECRET}"))
}

/// Waits for a lock with these nodes until it is released, and returns the events about nodes of
/// the client that waited, and what it says about its nodes afterwards.
#[track_caller]
fn wait_once(servers: &Servers, urls: Vec<String>) -> (Vec<(String, String)>, Vec<NodeStatus>) {
    let (client, journal) = recorded_client(with_long_timeout(urls));
    assert!(
        client.nodes().iter().all(|node| node.queue.is_none()),
        "nothing is known yet"
    );
    for _ in 0..2 {
        let held = take(&all_nodes_client(servers.urls()), "job", LONG);
        let waiting = client.clone();
        let thread = std::thread::spawn(move || waiting.lock("job", LONG).unwrap());
        let is_refused = || {
            journal
                .entries()
                .iter()
                .any(|entry| entry.name == "attempt")
        };
        assert!(eventually(LIMIT, is_refused));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!thread.is_finished());
        assert_eq!(held.release(), Ok(()));
        assert_eq!(finish(thread).release(), Ok(()));
        journal.take_lock_events();
    }
    assert_eq!(holders(servers, "job"), 0);
    let entries = journal.entries();
    let events = entries.iter().filter(|entry| entry.name == "node_queue");
    let events = events
        .map(|entry| (entry.about.clone(), entry.text.clone()))
        .collect();
    (events, client.nodes())
}

fn support_of(nodes: &[NodeStatus]) -> Vec<Option<QueueSupport>> {
    nodes.iter().map(|node| node.queue).collect()
}

#[test]
fn a_node_where_the_queue_needs_more_rights_is_reported_once() {
    support::needs!(RightsToSubcommands);
    let servers = Servers::start(3);
    let rights = ["", "-client|tracking", "-@sortedset"].map(|it| format!("&redlatch:* {it}"));
    let urls = servers
        .iter()
        .zip(&rights)
        .map(|(server, rights)| url_of_user(server, rights));
    let (events, nodes) = wait_once(&servers, urls.collect());
    let expected = [
        QueueSupport::Full,
        QueueSupport::WithoutPushes,
        QueueSupport::Unsupported,
    ]
    .map(Some);
    assert_eq!(support_of(&nodes), expected);
    let words = expected.map(|support| support.map(|it| it.to_string()).unwrap_or_default());
    assert_eq!(words, ["full", "without_pushes", "unsupported"]);
    assert_eq!(events.len(), 2, "{events:?}");
    let is_reported = |index: usize, text: &str| {
        let url = &*nodes[index].url;
        events
            .iter()
            .any(|(about, line)| about == url && line.ends_with(text))
    };
    assert!(
        is_reported(1, "does not tell waiters when it is their turn"),
        "{events:?}"
    );
    assert!(is_reported(2, "has no queue for waiters"), "{events:?}");
}

#[test]
fn nodes_without_rights_for_the_queue_are_asked_again_after_pauses() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let urls = servers
        .iter()
        .map(|server| url_of_user(server, "-@sortedset"));
    let (events, nodes) = wait_once(&servers, urls.collect());
    assert_eq!(support_of(&nodes), [Some(QueueSupport::Unsupported); 3]);
    assert_eq!(events.len(), 3, "{events:?}");
}

#[test]
fn nodes_that_speak_resp2_only_have_a_queue_without_pushes() {
    let servers = Servers::without_hello(3);
    let (events, nodes) = wait_once(&servers, servers.urls());
    assert_eq!(support_of(&nodes), [Some(QueueSupport::WithoutPushes); 3]);
    assert_eq!(events.len(), 3, "{events:?}");
}
