//! Clients that wait for a lock in the nodes' queue.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redlatch::{Builder, LockClient, LockGuard, QueuedWaiter};

use super::cli::Value;
use super::eventually;
use super::locks::{LIMIT, LONG, calls, without_restart_guard};
use super::queue::finish;
use super::redis::Server;

/// A lease that no test outlasts, so that no entry of a waiter that is gone ends by itself. Waiters
/// in front renew their entries once a second even so.
pub const LONG_LEASE: Duration = Duration::from_secs(20);

/// Much less than the time between two renewals of a [`LONG_LEASE`].
pub const BY_PUSH: Duration = Duration::from_secs(8);

/// The settings of a client that queues with this lease.
pub fn with_lease<U: Into<String>>(urls: impl IntoIterator<Item = U>, lease: Duration) -> Builder {
    let timeout = Duration::from_secs(2).min(lease / 2);
    without_restart_guard(urls)
        .node_timeout(timeout)
        .waiter_lease(lease)
}

/// A client that is told by the nodes, or is not served before [`BY_PUSH`].
#[track_caller]
pub fn pushed<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> LockClient {
    with_lease(urls, LONG_LEASE)
        .build()
        .expect("the settings are good")
}

/// The same, and it holds its locks on all nodes.
#[track_caller]
pub fn holder<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> LockClient {
    let settings = with_lease(urls, LONG_LEASE).wait_for_all(true);
    settings.build().expect("the settings are good")
}

/// Waits until this many have their place in the order: a majority has them. One that a node has
/// may be overtaken.
#[track_caller]
pub fn await_in_order(looker: &LockClient, resource: &str, count: usize) {
    let are_in_order = || {
        let Ok(seen) = looker.inspect(resource) else {
            return false;
        };
        let has_place = |waiter: &&QueuedWaiter| waiter.nodes * 2 > seen.nodes.len();
        seen.waiters.iter().filter(has_place).count() >= count
    };
    assert!(
        eventually(LIMIT, are_in_order),
        "{count} wait for {resource}"
    );
}

/// How many waiters the node has in its queue for this lock.
#[track_caller]
pub fn queued(server: &Server, key: &str) -> usize {
    let count = server
        .command(&["ZCARD", &format!("{key}:redlatch:queue")])
        .integer();
    usize::try_from(count).expect("a count")
}

/// Waits until each of the servers has this many waiters in its queue.
#[track_caller]
pub fn await_queued(servers: &[Server], key: &str, count: usize) {
    let counts = || -> Vec<usize> { servers.iter().map(|server| queued(server, key)).collect() };
    assert!(
        eventually(LIMIT, || are_queued(servers, key, count)),
        "{count} should be queued: {:?}",
        counts()
    );
}

/// Has each of the servers this many waiters in its queue?
#[track_caller]
pub fn are_queued(servers: &[Server], key: &str, count: usize) -> bool {
    servers.iter().all(|server| queued(server, key) == count)
}

/// How many scripts each server runs in this time, on average.
#[track_caller]
pub fn asked_in(servers: &[Server], time: Duration) -> u64 {
    let of = |server| calls(server, "eval") + calls(server, "evalsha");
    let all = || servers.iter().map(of).sum::<u64>();
    let before = all();
    thread::sleep(time);
    (all() - before) / servers.len() as u64
}

/// The names of all keys on the server, but the counters of fencing tokens, and the largest number
/// of a waiter, which is kept for the lease of one.
#[track_caller]
pub fn keys(server: &Server) -> Vec<String> {
    let Value::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("KEYS fails")
    };
    let names = keys.iter().map(Value::text);
    let stays = [":redlatch:fence", ":redlatch:floor"];
    names
        .filter(|name| !stays.iter().any(|end| name.ends_with(end)))
        .collect()
}

/// Waits until the servers have these keys and no others, but not until a [`LONG_LEASE`] is over.
#[track_caller]
pub fn await_keys(servers: &[Server], expected: &[&str]) {
    let found = || -> Vec<Vec<String>> { servers.iter().map(keys).collect() };
    let is_so = || found().iter().all(|keys| keys == expected);
    assert!(
        eventually(BY_PUSH, is_so),
        "{expected:?} should be left: {:?}",
        found()
    );
}

/// Waiters that joined one after another, and the order in which they are served.
pub struct Line {
    key: &'static str,
    served: Arc<Mutex<Vec<(usize, Instant)>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Line {
    pub fn before(key: &'static str) -> Self {
        Self {
            key,
            served: Arc::default(),
            threads: Vec::new(),
        }
    }

    /// Adds a waiter, and returns when each of these servers has it in its queue.
    #[track_caller]
    pub fn join(&mut self, servers: &[Server], client: LockClient) {
        self.enter(client);
        await_queued(servers, self.key, self.threads.len());
    }

    /// Adds a waiter, without waiting until it is queued.
    pub fn enter(&mut self, client: LockClient) {
        let key = self.key;
        self.enter_with(move |work| {
            let guard = client.lock(key, LONG).expect("it is served in the end");
            work(&guard);
        });
    }

    /// The same with another way to acquire the lock.
    #[track_caller]
    pub fn join_with(
        &mut self,
        servers: &[Server],
        wait: impl FnOnce(&dyn Fn(&LockGuard)) + Send + 'static,
    ) {
        self.enter_with(wait);
        await_queued(servers, self.key, self.threads.len());
    }

    fn enter_with(&mut self, wait: impl FnOnce(&dyn Fn(&LockGuard)) + Send + 'static) {
        let number = self.threads.len();
        let served = Arc::clone(&self.served);
        let thread = thread::spawn(move || {
            wait(&|guard| {
                served
                    .lock()
                    .expect("no panic")
                    .push((number, Instant::now()));
                guard.ensure_held().expect("it was just acquired");
            });
        });
        self.threads.push(thread);
    }

    /// Has nobody been served yet?
    pub fn is_waiting(&self) -> bool {
        self.served.lock().expect("no panic").is_empty()
    }

    /// Waits until all have been served. Returns when the last was, and checks the order.
    #[track_caller]
    pub fn end(self) -> Instant {
        let count = self.threads.len();
        let (order, last) = self.served();
        assert_eq!(
            order,
            (0..count).collect::<Vec<_>>(),
            "the order of joining"
        );
        last
    }

    /// Waits until all have been served, in any order. Returns when the last was.
    #[track_caller]
    pub fn end_in_any_order(self) -> Instant {
        let count = self.threads.len();
        let (mut order, last) = self.served();
        order.sort_unstable();
        assert_eq!(order, (0..count).collect::<Vec<_>>(), "each once");
        last
    }

    #[track_caller]
    fn served(self) -> (Vec<usize>, Instant) {
        self.threads.into_iter().for_each(finish);
        let served = self.served.lock().expect("no panic");
        let (_, last) = *served.last().expect("somebody waited");
        (served.iter().map(|(number, _)| *number).collect(), last)
    }
}
