//! Leases for the tests of this folder.

use super::SharedLease;
use crate::clock::Time;
use crate::engine::{Lease, NodeSet, Token, Ttl};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A lease that was requested at 0 and is valid until `end`.
pub(super) fn lease(end: u64) -> Arc<SharedLease> {
    lease_until(at(end))
}

/// The same, by the clock.
pub(super) fn lease_until(valid_until: Time) -> Arc<SharedLease> {
    let ttl = Ttl::from_duration(Duration::from_secs(50)).unwrap();
    let lease = Lease {
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
    };
    Arc::new(SharedLease::new(lease))
}
