//! Which callbacks are called for watched locks, and by which thread: by one thread for all. It
//! survives what the callbacks do, and a callback delays only the next callback.

use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use redlatch::{Builder, LockClient, LockGuard, LossReason};
use support::eventually;
use support::journal::{Journal, names};
use support::locks::{LIMIT, LONG, gone, pause, resume, take, without_restart_guard};
use support::loss::reason;
use support::servers::Servers;

const TTL: Duration = Duration::from_secs(2);

fn settings(servers: &Servers) -> Builder {
    without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(200))
}

#[track_caller]
fn keep(client: &LockClient, resource: &str) -> LockGuard {
    let request = client.request(resource).ttl(TTL).keep_alive();
    request.try_lock().expect("a majority answers").expect("no other client holds the lock")
}

#[test]
fn one_thread_calls_all_loss_callbacks_and_event_callbacks() {
    const LOCKS: usize = 400;
    let servers = Servers::start(1);
    let (sender, losses) = channel();
    let events = sender.clone();
    let builder = settings(&servers).on_event(move |event| {
        if event.name() == "lost" {
            events.send(thread::current().id()).unwrap();
        }
    });
    let client = builder.build().unwrap();
    let guards: Vec<LockGuard> = (0..LOCKS)
        .map(|index| {
            let guard = keep(&client, &format!("lost:{index}"));
            let sender = sender.clone();
            let send = move |_| sender.send(thread::current().id()).unwrap();
            guard.on_lost(send).unwrap();
            guard
        })
        .collect();
    drop(servers);
    let mut threads = HashSet::new();
    for _ in 0..2 * LOCKS {
        threads.insert(losses.recv_timeout(LIMIT).unwrap());
    }
    assert_eq!(threads.len(), 1, "threads that reported {LOCKS} losses");
    drop(guards);
}

#[test]
fn a_callback_that_blocks_delays_the_next_callback_but_no_extension() {
    let servers = Servers::start(3);
    let client = settings(&servers).build().unwrap();
    let kept = keep(&client, "kept");
    let (entered, inside) = channel();
    let (block, blocked) = channel::<()>();
    let first = take(&client, "first", TTL / 4);
    first.on_lost(move |_| _ = (entered.send(()), blocked.recv())).unwrap();
    inside.recv_timeout(LIMIT).unwrap();

    let second = take(&client, "second", TTL / 4);
    let (sender, losses) = channel();
    second.on_lost(move |lost| sender.send(lost.reason()).unwrap()).unwrap();
    assert_eq!(
        second.wait_lost(LIMIT).map(reason),
        Some(LossReason::Expired),
        "this needs no callback"
    );
    assert!(losses.recv_timeout(2 * TTL).is_err(), "one after another");
    assert_eq!(kept.ensure_held(), Ok(()), "it was extended meanwhile");
    drop(block);
    assert_eq!(losses.recv_timeout(LIMIT), Ok(LossReason::Expired));
}

#[test]
fn callbacks_may_panic_and_drop_the_guard_and_the_client() {
    let servers = Servers::start(3);
    let client = settings(&servers).build().unwrap();
    let (sender, losses) = channel();
    let panics = take(&client, "panics", TTL / 4);
    panics.on_lost(|_| panic!("a callback that panics, as this test wants it to")).unwrap();
    assert_eq!(panics.wait_lost(LIMIT).map(reason), Some(LossReason::Expired));

    // The guard of another lock, and the last clone of a client.
    let own = settings(&servers).build().unwrap();
    let (held, watched) = (take(&client, "held", LONG), take(&client, "watched", TTL / 4));
    let (last, own_watched) = (sender.clone(), take(&own, "own", TTL / 4));
    watched
        .on_lost(move |lost| {
            drop(held);
            sender.send(lost.reason()).unwrap();
        })
        .unwrap();
    assert_eq!(losses.recv_timeout(LIMIT), Ok(LossReason::Expired));
    assert!(gone(&servers, "held"), "its guard was dropped");
    drop(watched);

    let (hand, handed) = channel::<(LockGuard, LockClient)>();
    own_watched
        .on_lost(move |lost| {
            drop(handed.recv().unwrap());
            last.send(lost.reason()).unwrap();
        })
        .unwrap();
    hand.send((own_watched, own)).unwrap();
    assert_eq!(losses.recv_timeout(LIMIT), Ok(LossReason::Expired));
}

#[test]
fn automatic_extensions_and_node_failures_are_reported_when_they_happen() {
    let mut servers = Servers::start(3);
    let journal = Journal::default();
    let client = settings(&servers).on_event(journal.recorder()).build().unwrap();
    let nodes: Vec<_> = client.nodes().iter().map(|node| node.url.to_string()).collect();
    let guard = keep(&client, "kept");
    journal.take_lock_events();
    // From here on the test makes no call.
    assert!(eventually(LIMIT, || journal.entries().iter().any(|entry| entry.name == "extended")));
    let events = journal.take_lock_events();
    assert!(events.iter().all(|entry| entry.about == "kept"), "{events:?}");
    assert!(events[0].text.contains("automatic") && events[0].validity > TTL / 2, "{events:?}");
    assert!(events[0].span > Duration::ZERO && events[0].span < TTL, "{events:?}");

    servers[0].kill();
    // A server that gets no processor for a while is slow, but its connection stays.
    let changes = || {
        let events = journal.node_events(&nodes[0]);
        events.into_iter().filter(|name| *name != "node_slow").collect::<Vec<_>>()
    };
    assert!(eventually(LIMIT, || changes() == ["node_up", "node_down"]), "{:?}", changes());
    assert_eq!(guard.ensure_held(), Ok(()));
    servers[0].restart();
    let back = ["node_up", "node_down", "node_up"];
    assert!(eventually(LIMIT, || changes() == back), "{:?}", changes());
    journal.take_lock_events();

    pause(&servers, 3);
    assert!(eventually(LIMIT, || journal.entries().iter().any(|entry| entry.name == "lost")));
    resume(&servers, 3);
    let events = names(&journal.take_lock_events());
    assert!(events.contains(&"not_extended"), "{events:?}");
    assert_eq!(
        events.iter().position(|name| *name == "lost"),
        Some(events.len() - 1),
        "{events:?}"
    );
    drop(guard);
    assert_eq!(names(&journal.take_lock_events()), ["released"], "and the loss only once");
}
