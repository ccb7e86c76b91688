//! This library.

use crate::work::{Blocking, TTL};
use ::redlatch::{LockClient, LockGuard, Released};

/// One client for all threads.
pub struct Redlatch {
    client: LockClient,
    /// Is a lock given back with `release()`, or dropped?
    waits: bool,
}

impl Redlatch {
    pub fn new(urls: &[String], waits: bool) -> Self {
        // The servers have just been started, and nothing that they forgot is still held. With the
        // guard, everything is asked of them in the same way, but only in a minute.
        let client = LockClient::builder().nodes(urls).restart_guard(false).build();
        let client = client.expect("the servers' URLs can be used");
        // Connects, with the patience that a busy machine may call for: what is measured has none.
        let resource = format!("versus:connect:{}", std::process::id());
        drop(client.lock(resource, TTL).expect("a majority of the servers can be reached"));
        Self { client, waits }
    }
}

impl Blocking for Redlatch {
    type Held<'a> = LockGuard;

    fn acquire(&self, resource: &str, is_contended: bool) -> LockGuard {
        if is_contended {
            self.client.lock(resource, TTL).expect("a majority of the servers answers")
        } else {
            let guard = self.client.try_lock(resource, TTL);
            guard.expect("a majority of the servers answers").expect("the lock is free")
        }
    }

    fn release(&self, held: LockGuard) {
        if self.waits {
            assert_eq!(held.release().expect("a majority answers"), Released::InTime);
        } else {
            assert!(held.ensure_held().is_ok());
            drop(held);
        }
    }
}
