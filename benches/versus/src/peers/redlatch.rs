//! This library.

use crate::work::{Blocking, TTL};
use ::redlatch::{LockClient, LockGuard, Released};
use std::time::Duration;

/// One client for all threads.
pub struct Redlatch {
    client: LockClient,
    way: Way,
}

/// What is asked for, and how it is given back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With `release()`, which waits for a majority's answer. So do the next two.
    Release,
    /// With a fencing token.
    Fenced,
    /// Two resources at once.
    Two,
    /// By dropping the guard, which waits for nothing.
    Drop,
}

impl Redlatch {
    pub fn new(urls: &[String], way: Way) -> Self {
        // The servers have just been started, and nothing that they forgot is still held. With the
        // guard, everything is asked of them in the same way, but only in a minute.
        // A machine that stands still for a moment must not end the whole run.
        let client = LockClient::builder().nodes(urls).restart_guard(false);
        let client = client.node_timeout(Duration::from_secs(1)).build();
        let client = client.expect("the servers' URLs can be used");
        // Connects, with the patience that a busy machine may call for: what is measured has none.
        let resource = format!("versus:connect:{}", std::process::id());
        drop(client.lock(resource, TTL).expect("a majority of the servers can be reached"));
        Self { client, way }
    }
}

impl Blocking for Redlatch {
    type Held<'a> = LockGuard;

    fn acquire(&self, resource: &str, is_contended: bool) -> LockGuard {
        if is_contended {
            self.client.lock(resource, TTL).expect("a majority of the servers answers")
        } else {
            let request = match self.way {
                Way::Release | Way::Drop => self.client.request(resource),
                Way::Fenced => self.client.request(resource).fenced(),
                Way::Two => self.client.request_all([resource, &format!("{resource}:second")]),
            };
            let guard = request.ttl(TTL).try_lock();
            guard.expect("a majority of the servers answers").expect("the lock is free")
        }
    }

    fn release(&self, held: LockGuard) {
        if self.way != Way::Drop {
            assert_eq!(held.fencing_token().is_some(), self.way == Way::Fenced);
            assert_eq!(held.release().expect("a majority answers"), Released::InTime);
        } else {
            assert!(held.ensure_held().is_ok());
            drop(held);
        }
    }
}
