//! The nodes' queue on servers that lack what it needs, or do not allow it.

use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard, QueueSupport};
use support::cli::Value;
use support::fencing::scripts;
use support::locks::{LIMIT, LONG, calls, take, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::redis::Server;
use support::servers::Servers;
use support::waiters::{Line, await_keys, await_queued, holder, queued, with_lease};

/// A lease that allows for a busy machine, and is short for these tests.
const LEASE: Duration = Duration::from_secs(2);

fn client<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> LockClient {
    with_lease(urls, LEASE)
        .build()
        .expect("the settings are good")
}

/// Requests that clients sent so far.
fn requests(server: &Server) -> u64 {
    scripts(server) + calls(server, "client|caching")
}

#[test]
fn servers_that_forget_what_they_watch_serve_in_order_and_are_not_flooded() {
    support::needs!(Tracking);
    let servers = Servers::start_with(3, &["--tracking-table-max-keys", "1"]);
    let held = take(&holder(servers.urls()), "name", LONG);
    let mut line = Line::before("name");
    (0..6).for_each(|_| line.join(&servers, client(servers.urls())));
    let before: Vec<_> = servers.iter().map(requests).collect();
    std::thread::sleep(Duration::from_secs(2));
    for (server, before) in servers.iter().zip(before) {
        let count = requests(server) - before;
        // A turn for nothing, a renewal and a new watch after each pause of a client's retries.
        assert!(
            count < 6 * 2 * 150,
            "{count} requests of six waiters in two seconds"
        );
    }
    drop(held);
    line.end();
    await_keys(&servers, &[]);
}

/// The URLs with a user that has all rights but these.
fn limited_urls(servers: &[Server], rights: &str) -> Vec<String> {
    let add = |server: &Server| {
        let user = format!("ACL SETUSER app on >pw ~* +@all {rights}");
        let user: Vec<_> = user.split_whitespace().collect();
        assert_eq!(server.command(&user), Value::ok());
        server.url_of("app:pw")
    };
    servers.iter().map(add).collect()
}

/// Waiters that nobody tells anything are served in order, in the time in which they ask.
#[track_caller]
fn serves_without_pushes(servers: &Servers, urls: &[String]) {
    let held = take(&client(urls), "name", LONG);
    let mut line = Line::before("name");
    let clients: Vec<_> = (0..4).map(|_| client(urls)).collect();
    clients
        .iter()
        .for_each(|client| line.join(servers, client.clone()));
    // Each of them knows by now what the nodes lack.
    let support = clients[3]
        .nodes()
        .iter()
        .map(|node| node.queue)
        .collect::<Vec<_>>();
    assert_eq!(support, [Some(QueueSupport::WithoutPushes); 3]);
    let start = Instant::now();
    drop(held);
    let served = line.end() - start;
    assert!(served < 4 * LEASE + LIMIT / 4, "{served:?}");
    await_keys(servers, &[]);
}

#[test]
fn without_the_right_to_tracking_the_order_is_kept() {
    support::needs!(RightsToSubcommands);
    let servers = Servers::start(3);
    let urls = limited_urls(&servers, "-client|tracking");
    serves_without_pushes(&servers, &urls);
}

#[test]
fn without_the_right_to_client_caching_the_order_is_kept() {
    support::needs!(RightsToSubcommands);
    let servers = Servers::start(3);
    let urls = limited_urls(&servers, "-client|caching");
    let held = take(&client(&urls), "name", LONG);
    let mut line = Line::before("name");
    (0..4).for_each(|_| line.join(&servers, client(&urls)));
    let start = Instant::now();
    drop(held);
    assert!(line.end() - start < 4 * LEASE + LIMIT / 4);
    await_keys(&servers, &[]);
}

#[test]
fn without_hello_the_order_is_kept() {
    let servers = Servers::without_hello(3);
    serves_without_pushes(&servers, &servers.urls());
}

const NO_QUEUE: &str = "-zadd -zrange -zrank -zrem -zscore -zcard";

#[test]
fn one_node_without_sorted_sets_changes_no_order() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let urls: Vec<_> = limited_urls(&servers[..1], NO_QUEUE)
        .into_iter()
        .chain(servers[1..].iter().map(Server::url))
        .collect();
    let held = take(&client(&urls), "name", LONG);
    let mut line = Line::before("name");
    (0..4).for_each(|_| line.join(&servers[1..], client(&urls)));
    assert_eq!(queued(&servers[0], "name"), 0);
    let start = Instant::now();
    drop(held);
    let served = line.end() - start;
    assert!(served < 4 * LEASE + LIMIT / 4, "{served:?}");
    await_keys(&servers, &[]);
}

#[test]
fn without_sorted_sets_clients_wait_as_without_a_queue() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let urls = limited_urls(&servers, NO_QUEUE);
    let clients: Vec<_> = (0..5).map(|_| client(&urls)).collect();
    let held = take(&clients[0], "name", LONG);
    let waiting: Vec<_> = clients[1..]
        .iter()
        .map(|client| {
            let client = client.clone();
            spawn_waiter(move || client.lock("name", LONG).map(LockGuard::release))
        })
        .collect();
    let knows = |client: &LockClient| {
        let nodes = client.nodes();
        // A majority's answers are enough: the third node need not be asked.
        nodes
            .iter()
            .filter(|node| node.queue == Some(QueueSupport::Unsupported))
            .count()
            > 1
    };
    let is_known = support::eventually(LIMIT, || clients[1..].iter().all(knows));
    let queue = |client: &LockClient| client.nodes().iter().map(|it| it.queue).collect::<Vec<_>>();
    assert!(
        is_known,
        "{:?}",
        clients.iter().map(queue).collect::<Vec<_>>()
    );
    await_keys(&servers, &["name"]);
    assert_eq!(held.release(), Ok(()));
    for waiter in waiting {
        assert_eq!(finish(waiter).unwrap(), Ok(()));
    }
    await_keys(&servers, &[]);
}

/// One that may not do all that the queue takes enters it, and is refused then. It waits as without
/// a queue, and leaves nothing in it for which others would wait.
#[track_caller]
fn leaves_the_queue_that_it_entered(rights: &str, names: &[&str]) {
    support::needs!(Users);
    let servers = Servers::start(3);
    let urls = limited_urls(&servers, rights);
    let held = take(&holder(servers.urls()), "b", LONG);
    // What is left of its entries would stay for longer than the test waits.
    let limited = with_lease(&urls, LONG)
        .build()
        .expect("the settings are good");
    let waiting = limited.clone();
    let owned = names.join(" ");
    let waiter = spawn_waiter(move || {
        waiting
            .request_all(owned.split(' '))
            .ttl(LONG)
            .lock()
            .map(LockGuard::release)
    });
    // A majority's answers are enough: the third node need not be asked.
    let entered = || {
        servers
            .iter()
            .filter(|server| calls(server, "zadd") > 0)
            .count()
            > 1
    };
    assert!(
        support::eventually(LIMIT, entered),
        "it is refused before it has entered"
    );
    await_keys(&servers, &["b"]);
    assert_eq!(held.release(), Ok(()));
    assert_eq!(
        finish(waiter).expect("it is served without the queue"),
        Ok(())
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_waiter_without_a_right_leaves_the_queue_that_it_entered() {
    leaves_the_queue_that_it_entered("-zrank", &["b"]);
}

#[test]
fn a_set_that_may_not_wait_for_one_of_its_resources_leaves_the_queues_of_the_others() {
    let keys = "resetkeys ~a ~a:* ~b ~b:redlatch:[qhcpf]*";
    leaves_the_queue_that_it_entered(keys, &["a", "b"]);
}

/// Releases a set with these rights while a client with all rights waits for one of its resources,
/// who is not notified.
#[track_caller]
fn frees_what_others_wait_for(rights: &str) {
    support::needs!(Users);
    let servers = Servers::start(3);
    let limited = holder(limited_urls(&servers, rights));
    let held = limited
        .request_all(["a", "b"])
        .ttl(LONG)
        .lock()
        .expect("all are free");
    let waiting = client(servers.urls());
    let waiter = spawn_waiter(move || waiting.lock("b", LONG).map(LockGuard::release));
    await_queued(&servers, "b", 1);
    assert_eq!(held.release(), Ok(()));
    assert_eq!(finish(waiter).expect("it is free"), Ok(()));
    await_keys(&servers, &[]);
}

#[test]
fn a_release_without_the_right_to_the_entries_of_others_frees_what_they_wait_for() {
    frees_what_others_wait_for("resetkeys ~a ~a:* ~b ~b:redlatch:queue");
}

#[test]
fn a_release_that_can_neither_notify_nor_remove_a_waiter_frees_the_lock() {
    frees_what_others_wait_for("-zrem -publish");
}

#[test]
fn a_queue_that_is_no_sorted_set_leaves_nothing_locked() {
    let servers = Servers::start(3);
    for server in servers.iter() {
        server.command(&["SET", "name:redlatch:queue", "of another program"]);
    }
    let client = || with_long_timeout(servers.urls()).build().unwrap();
    let held = take(&client(), "name", LONG);
    let other = client();
    let waiting = spawn_waiter(move || other.lock("name", LONG).map(LockGuard::release));
    assert!(held.release().is_ok());
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    await_keys(&servers, &["name:redlatch:queue"]);
    assert!(calls(&servers[0], "zadd") > 0 || calls(&servers[0], "zscore") > 0);
}
