//! On how many nodes a lock is a while after it was granted, while its holder makes no call. A lock
//! on a bare majority is gone when one node forgets it.

use super::Context;
use crate::proxy;
use crate::report::Table;
use redlatch::{LockClient, LockGuard};
use std::thread;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(10);

/// How long a lock is held before its nodes are counted.
const HOLD: Duration = Duration::from_millis(100);

/// How much farther the last node is, in each direction.
const FARTHER: Duration = Duration::from_micros(500);
const MUCH_FARTHER: Duration = Duration::from_micros(2_500);

pub fn run(context: &Context) {
    let near = context.servers.urls();
    let with_last = |delay: Duration| {
        let last = proxy::start(&[context.servers.last_address()], delay);
        [&near[..near.len() - 1], &last].concat()
    };
    let count = 60;
    let inspector = client(&near);
    let is_everywhere = |name: &str| {
        let seen = inspector.inspect(name).expect("the nodes answer");
        seen.nodes.iter().filter(|node| node.agrees).count() == near.len()
    };
    let first_locks = |urls: &[String]| {
        let lock = |index: &usize| {
            let (client, name) = (client(urls), format!("places-first-{index}"));
            let lock = client.lock(&name, TTL).expect("the lock is free");
            is_kept(&lock, || is_everywhere(&name))
        };
        (0..count).filter(lock).count()
    };
    let (holder, next) = (client(&with_last(MUCH_FARTHER)), client(&near));
    let hand_over = |index: &usize| {
        let name = format!("places-next-{index}");
        let held = holder.lock(&name, TTL).expect("the lock is free");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| next.lock(&name, TTL).expect("its turn comes"));
            // It has joined the queue by then.
            thread::sleep(HOLD / 2);
            assert!(held.release().is_ok(), "a majority answers");
            let lock = waiting.join().expect("the thread does not panic");
            is_kept(&lock, || is_everywhere(&name))
        })
    };
    let mut table = Table::new(&["locks", "on all nodes", "of"]);
    let mut row = |what: &str, everywhere: usize| {
        table.row([what.to_owned(), everywhere.to_string(), count.to_string()]);
    };
    row("first lock of a client, servers at the same distance", first_locks(&near));
    row("first lock of a client, the last server 1 ms farther", first_locks(&with_last(FARTHER)));
    let in_turn = (0..count).filter(hand_over).count();
    row("in turn, the last server 5 ms farther for the holder", in_turn);
    let about = "How many locks are on all servers 100 ms after they were granted, while their \
                 holders make no call.";
    table.print(&format!("places, {} nodes", near.len()), about);
}

/// With the default timeout, not that of the measured peers, which is far longer.
fn client(urls: &[String]) -> LockClient {
    let settings = LockClient::builder().nodes(urls).restart_guard(false);
    settings.build().expect("the settings are good")
}

/// Holds the lock for a while, and then counts.
fn is_kept(lock: &LockGuard, is_everywhere: impl FnOnce() -> bool) -> bool {
    thread::sleep(HOLD);
    !lock.remaining().is_zero() && is_everywhere()
}
