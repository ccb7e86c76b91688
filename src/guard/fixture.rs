//! Locks for the tests of this folder.

use crate::clock;
use crate::engine::{HeldLock, NodeSet, Token, Ttl};
use std::sync::Arc;
use std::time::Duration;

/// A lock of a minute with this token, of which no node is known to hold the key.
pub(super) fn held_lock(token: u8) -> HeldLock {
    let ttl = Ttl::from_duration(Duration::from_secs(60)).expect("a minute is a ttl");
    let now = clock::now();
    HeldLock {
        key: Arc::from(*b"key"),
        token: Token::new([token; Token::LEN]),
        attributes: None,
        fence: None,
        valid_until: now.after(Duration::from_secs(50)),
        since: now,
        ttl,
        ttl_longest: ttl,
        nodes: NodeSet::EMPTY,
        waiter: None,
        is_awaited: false,
        session: None,
    }
}
