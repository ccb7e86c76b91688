//! Events about nodes: one for each change of state, however often it is noticed.

use std::time::Duration;

use redlatch::LockClient;
use support::eventually;
use support::journal::Journal;
use support::locks::{LIMIT, LONG, take, with_long_timeout};
use support::redis::Server;
use support::servers::Servers;

/// Acquires and releases a lock, and returns all events about the node until then.
#[track_caller]
fn after_a_lock(client: &LockClient, journal: &Journal, url: &str) -> Vec<&'static str> {
    take(client, "any", LONG)
        .release()
        .expect("a majority answers");
    journal.node_events(url)
}

#[test]
fn a_restart_of_a_node_is_one_event_down_and_one_event_up() {
    let mut servers = Servers::start(3);
    let journal = Journal::default();
    let builder = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .restart_guard(false);
    let client = builder.on_event(journal.recorder()).build().unwrap();
    let urls: Vec<_> = client
        .nodes()
        .iter()
        .map(|node| node.url.to_string())
        .collect();
    for url in &urls {
        assert_eq!(journal.node_events(url), ["node_up"]);
    }
    servers[0].kill();
    for _ in 0..50 {
        after_a_lock(&client, &journal, &urls[0]);
    }
    // Longer than the pauses between two attempts to connect.
    let tried = || {
        after_a_lock(&client, &journal, &urls[0]);
        client.nodes()[0]
            .last_error
            .as_ref()
            .is_some_and(|it| it.to_string().contains("refused"))
    };
    assert!(eventually(LIMIT, tried));
    assert_eq!(journal.node_events(&urls[0]), ["node_up", "node_down"]);
    let down = journal
        .entries()
        .iter()
        .find(|entry| entry.name == "node_down")
        .cloned();
    let down = down.expect("it is there").text;
    assert!(
        down.contains(&urls[0]) && down.contains("connection"),
        "{down}"
    );

    servers[0].restart();
    let is_up = || after_a_lock(&client, &journal, &urls[0]).len() > 2;
    assert!(eventually(LIMIT, is_up));
    for _ in 0..50 {
        after_a_lock(&client, &journal, &urls[0]);
    }
    assert_eq!(
        journal.node_events(&urls[0]),
        ["node_up", "node_down", "node_up"]
    );
    for url in &urls[1..] {
        assert_eq!(
            journal.node_events(url),
            ["node_up"],
            "its state has not changed"
        );
    }
}

#[test]
fn a_node_that_was_never_reachable_is_reported_down_once() {
    let servers = Servers::start(2);
    let mut gone = Server::start(&[]);
    gone.kill();
    let urls = servers.urls().into_iter().chain([gone.url()]);
    let journal = Journal::default();
    let builder = with_long_timeout(urls)
        .restart_guard(false)
        .on_event(journal.recorder());
    let client = builder.build().unwrap();
    let url = client.nodes()[2].url.to_string();
    for _ in 0..50 {
        assert_eq!(after_a_lock(&client, &journal, &url), ["node_down"]);
    }
}

#[test]
fn a_paused_node_is_reported_slow_once_until_it_replies_again() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let builder = LockClient::builder()
        .nodes(servers.urls())
        .restart_guard(false);
    let builder = builder
        .node_timeout(Duration::from_secs(1))
        .on_event(journal.recorder());
    let client = builder.build().unwrap();
    let url = client.nodes()[0].url.to_string();
    for times in 1..=2 {
        let before = journal.node_events(&url).len();
        servers[0].pause();
        let is_slow = || after_a_lock(&client, &journal, &url).len() > before;
        assert!(eventually(LIMIT, is_slow));
        for _ in 0..20 {
            after_a_lock(&client, &journal, &url);
        }
        let events = journal.node_events(&url);
        assert_eq!(events[0], "node_up");
        assert_eq!(
            events[1..],
            vec!["node_slow"; times],
            "the majority replies meanwhile"
        );
        let slow = journal
            .entries()
            .iter()
            .rfind(|entry| entry.name == "node_slow")
            .cloned();
        let slow = slow.expect("it is there").span;
        assert!(slow >= Duration::from_secs(1), "{slow:?}");

        servers[0].resume();
        // Its late replies do not count as in time; its next replies do.
        let answers = || {
            let nodes = client.nodes();
            nodes[0]
                .round_trip
                .is_some_and(|trip| trip < Duration::from_millis(500))
        };
        assert!(eventually(LIMIT, answers));
    }
}

#[test]
fn changes_between_calls_are_reported_with_the_next_call() {
    let mut servers = Servers::start(1);
    let journal = Journal::default();
    let builder = with_long_timeout(servers.urls())
        .restart_guard(false)
        .on_event(journal.recorder());
    let client = builder.build().unwrap();
    let url = client.nodes()[0].url.to_string();
    servers[0].restart();
    assert_eq!(journal.node_events(&url), ["node_up"]);
    // Also with a drop, which waits for nothing.
    let guard = take(&client, "any", LONG);
    assert_eq!(
        journal.node_events(&url),
        ["node_up", "node_down", "node_up"]
    );
    servers[0].kill();
    drop(guard);
    let is_reported = || {
        drop(client.try_lock("other", LONG));
        journal.node_events(&url).len() == 4
    };
    assert!(eventually(LIMIT, is_reported));
    assert_eq!(journal.node_events(&url)[3], "node_down");
}
