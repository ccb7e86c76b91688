//! Locks for the tests of this folder.

use super::GuardedLock;
use crate::clock::Time;
use crate::engine::{HeldLock, NodeSet, Token, Ttl};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A lock that was requested at 0 and is valid until `end`.
pub(super) fn held_lock(end: u64) -> Arc<GuardedLock> {
    lock_until(at(end))
}

/// The same, by the clock.
pub(super) fn lock_until(valid_until: Time) -> Arc<GuardedLock> {
    let ttl = Ttl::from_duration(Duration::from_secs(50)).unwrap();
    let held = HeldLock {
        key: Arc::from(*b"key"),
        token: Token::new([1; Token::LEN]),
        attributes: None,
        fence: None,
        valid_until,
        since: Time::ZERO,
        ttl,
        ttl_longest: ttl,
        nodes: NodeSet::all(3),
        waiter: None,
        is_awaited: false,
        session: None,
    };
    Arc::new(GuardedLock::new(held))
}
