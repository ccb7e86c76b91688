//! This library.

use crate::work::{Blocking, Note, TTL};
use ::redlatch::{LockClient, LockGuard};
use std::time::Duration;

/// How many permits there are.
pub const PERMITS: u32 = 8;

/// One client for all threads.
pub struct Redlatch {
    client: LockClient,
    way: Way,
}

/// Which kind of lock is acquired, and how it is released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With `release()`, which waits for a majority's answer. So do the next four.
    Release,
    /// With a fencing token.
    Fenced,
    /// Two resources at once.
    Two,
    /// As a reader.
    Reader,
    /// One of [`PERMITS`].
    Permit,
    /// By dropping the guard, which waits for nothing.
    Drop,
}

/// A client of servers that were just started.
pub fn client(urls: &[String]) -> LockClient {
    // They have forgotten no lock that is still held. The restart guard changes no command; it would
    // only delay the first lock by a minute.
    // A long timeout: a machine that stalls for a moment must not end the whole run.
    let client = LockClient::builder().nodes(urls).restart_guard(false);
    let client = client.node_timeout(Duration::from_secs(1)).build();
    client.expect("the servers' URLs can be used")
}

impl Redlatch {
    pub fn new(urls: &[String], way: Way) -> Self {
        let client = client(urls);
        // Connects and waits as long as a busy machine needs: the measured calls do not wait.
        let resource = format!("versus:connect:{}", std::process::id());
        drop(client.lock(resource, TTL).expect("a majority of the servers can be reached"));
        Self { client, way }
    }
}

impl Blocking for Redlatch {
    type Held<'a> = LockGuard;

    fn acquire(&self, resource: &str, waits: bool) -> LockGuard {
        let request = match self.way {
            Way::Release | Way::Drop => self.client.request(resource),
            Way::Fenced => self.client.request(resource).fenced(),
            Way::Two => self.client.request_all([resource, &format!("{resource}:second")]),
            Way::Reader => self.client.request(resource).shared(),
            Way::Permit => self.client.request(resource).one_of(PERMITS),
        };
        let request = request.ttl(TTL);
        if waits {
            request.lock().expect("a majority of the servers answers")
        } else {
            let guard = request.try_lock();
            guard.expect("a majority of the servers answers").expect("the lock is free")
        }
    }

    fn release(&self, held: LockGuard) {
        if self.way != Way::Drop {
            assert_eq!(held.fencing_token().is_some(), self.way == Way::Fenced);
            assert_eq!(held.release(), Ok(()));
        } else {
            assert!(held.ensure_held().is_ok());
            drop(held);
        }
    }

    fn note(&self, held: &LockGuard) -> Note {
        let permit = held.slot();
        assert_eq!(permit.is_some_and(|permit| permit < PERMITS), self.way == Way::Permit);
        Note { permit, unknown: 0 }
    }
}
