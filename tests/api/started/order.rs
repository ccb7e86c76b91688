//! Calls that take no thread wait in one order with each other, and with those of threads.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use redlatch::{LockClient, LockGuard, Pending};
use support::locks::{LIMIT, LONG, connected, pause, resume, take, with_long_timeout};
use support::proxy::{Mode, proxied};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::tasks::{begin, block_on};
use support::waiters::{await_keys, holder};

fn client(servers: &Servers) -> LockClient {
    let settings = with_long_timeout(servers.urls());
    settings.build().expect("the settings are good")
}

#[test]
fn calls_with_and_without_a_thread_are_served_in_the_order_in_which_they_began() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let held = take(&client, "name", LONG);
    let (sender, served) = mpsc::channel();
    let mut threads = Vec::new();
    for number in 0..6 {
        let sender = sender.clone();
        let client = client.clone();
        if number % 2 == 0 {
            let lock = client.request("name").ttl(LONG).lock_async();
            lock.then(move |lock| {
                sender.send(number).expect("the test waits");
                drop(lock);
            });
        } else {
            threads.push(spawn_waiter(move || {
                let lock = client.request("name").ttl(LONG).lock();
                sender.send(number).expect("the test waits");
                drop(lock);
            }));
        }
    }
    drop(held);
    let order: Vec<i32> = (0..6)
        .map(|_| served.recv_timeout(LIMIT).expect("all are served"))
        .collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    threads.into_iter().for_each(finish);
    await_keys(&servers, &[]);
}

/// With a pool of 512 threads, 512 that wait in threads of it leave none for the holder's release.
#[test]
fn hundreds_wait_and_one_thread_serves_them_all() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let held = take(&holder, "name", LONG);
    let client = client(&servers);
    let (sender, served) = mpsc::channel();
    for number in 0..600 {
        let sender = sender.clone();
        let lock = client.request("name").ttl(LONG).lock_async();
        lock.then(move |lock| {
            let result = lock.map(|lock| lock.resource().to_string());
            sender.send((number, result)).expect("the test waits");
        });
    }
    let releaser = thread::spawn(move || held.release());
    for expected in 0..600 {
        let (number, result) = served.recv_timeout(LIMIT).expect("all are served");
        assert_eq!(number, expected, "in order");
        assert_eq!(result.as_deref(), Ok("name"));
    }
    finish(releaser).expect("it was held");
    await_keys(&servers, &[]);
}

#[test]
fn more_rounds_than_may_be_under_way_all_end() {
    let servers = Servers::start(3);
    let client = connected(client(&servers));
    // No node answers before all have begun: more commands than a session accepts.
    pause(&servers, 3);
    let calls = try_locks(&client, 2_000, LONG);
    resume(&servers, 3);
    expect_all_granted(calls);
    await_keys(&servers, &[]);
}

/// Begins to try this many locks, which are free.
fn try_locks(client: &LockClient, count: usize, ttl: Duration) -> Vec<Pending<Option<LockGuard>>> {
    let try_lock = |number| {
        let request = client.request(format!("name {number}")).ttl(ttl);
        begin(request.try_lock_async())
    };
    (0..count).map(try_lock).collect()
}

#[track_caller]
fn expect_all_granted(calls: Vec<Pending<Option<LockGuard>>>) {
    for call in calls {
        let granted = block_on(call).expect("the nodes answer");
        drop(granted.expect("it is free"));
    }
}

/// In line, the time of an attempt does not run: the last of these begin their rounds when the ttl
/// has passed since they were started.
#[test]
fn calls_that_stand_in_line_for_long_have_all_their_time() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let settings = with_long_timeout(urls).build();
    let client = connected(settings.expect("the settings are good"));
    for proxy in &proxies {
        proxy.set(Mode::Delay {
            to_server: Duration::ZERO,
            to_client: Duration::from_millis(300),
        });
    }
    expect_all_granted(try_locks(&client, 960, Duration::from_millis(1_500)));
    await_keys(&servers, &[]);
}

/// Not all of them come to have a round before their time is over.
#[test]
fn calls_that_stand_in_line_end_when_their_time_is_over() {
    let servers = Servers::start(3);
    let client = connected(client(&servers));
    pause(&servers, 3);
    let first: Vec<_> = (0..160)
        .map(|number| {
            begin(
                client
                    .request(format!("name {number}"))
                    .ttl(LONG)
                    .lock_async(),
            )
        })
        .collect();
    let in_line: Vec<_> = (0..10)
        .map(|number| {
            let request = client.request(format!("other {number}")).ttl(LONG);
            begin(request.try_lock_for_async(Duration::from_millis(100)))
        })
        .collect();
    // Before any node answers.
    for call in in_line {
        assert!(block_on(call).expect("it is no error").is_none());
    }
    resume(&servers, 3);
    for call in first {
        drop(block_on(call).expect("it is free"));
    }
    await_keys(&servers, &[]);
}

/// More calls than may have a round under way wait for locks that are held.
#[test]
fn calls_that_wait_for_their_turn_leave_their_room_to_others() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let names: Vec<_> = (0..200).map(|number| format!("name {number}")).collect();
    let held: Vec<_> = names.iter().map(|name| take(&holder, name, LONG)).collect();
    let client = client(&servers);
    let waiting: Vec<_> = names
        .iter()
        .map(|name| begin(client.request(name).ttl(LONG).lock_async()))
        .collect();
    drop(block_on(client.request("free").ttl(LONG).lock_async()).expect("it is free"));
    drop(held);
    for call in waiting {
        drop(block_on(call).expect("it is released"));
    }
    await_keys(&servers, &[]);
}

#[test]
fn an_io_thread_serves_them_too() {
    let servers = Servers::start(3);
    let settings = with_long_timeout(servers.urls()).io_thread(true);
    let client = settings.build().expect("the settings are good");
    let held = block_on(client.request("name").ttl(LONG).lock_async()).expect("it is free");
    let waiting = begin(client.request("name").ttl(LONG).lock_async());
    drop(held);
    drop(block_on(waiting).expect("it is free"));
    await_keys(&servers, &[]);
}
