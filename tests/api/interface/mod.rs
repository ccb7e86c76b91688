//! The public interface, on Redis nodes and on ZooKeeper: what a program sees must not depend on
//! who keeps its locks, apart from what these tests name.

#![expect(clippy::unwrap_used, reason = "what a test cannot do fails it")]

mod bodies;
mod cancelling;
mod ending;
mod errors;
mod handing_on;
mod holding;
mod leading;
mod losing;
mod own;
mod shares;
mod taking;
mod waiting;

use std::time::Duration;

use redlatch::{LockClient, LockGuard};

/// A ttl that outlasts every test, and a time that every wait in a test stays below.
const LONG: Duration = Duration::from_secs(50);
const LIMIT: Duration = Duration::from_secs(40);

/// The ttl of a lock that is to expire, or to be kept alive beyond it.
const SHORT: Duration = Duration::from_millis(1500);

/// A wait that ends without the lock. On a busy machine too, a server has said by then that
/// somebody has it; nothing is known before.
const WAIT: Duration = Duration::from_secs(1);

/// Takes a lock that must be free.
#[track_caller]
fn take(client: &LockClient, name: &str) -> LockGuard {
    client.try_lock(name, LONG).unwrap().expect("nobody has it")
}

/// Waits for a lock that somebody is about to give up.
#[track_caller]
fn take_next(client: &LockClient, name: &str) -> LockGuard {
    let next = client.request(name).ttl(LONG).try_lock_for(LIMIT);
    next.unwrap().expect("it becomes free")
}

/// Does somebody have the lock?
#[track_caller]
fn is_taken(client: &LockClient, name: &str) -> bool {
    client.try_lock(name, LONG).unwrap().is_none()
}

/// Ends a lock as an operator does: whoever has it loses it.
#[track_caller]
fn end_by_force(client: &LockClient, name: &str) {
    let seen = client.inspect(name).unwrap();
    assert_eq!(client.force_release(&seen), Ok(true));
}
