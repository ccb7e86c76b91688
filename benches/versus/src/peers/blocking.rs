//! The blocking library, which opens a new connection for every command to every server.

use crate::work::{Blocking, TTL};
use std::time::Duration;

/// Number of retries and the pause between them. It retries only if another client holds the lock.
const ATTEMPTS: u32 = 1_000_000;
const RETRY_DELAY: Duration = Duration::from_millis(5);

/// <https://crates.io/crates/redlock>
pub struct Redlock(redlock::RedLock);

impl Redlock {
    pub fn new(urls: &[String]) -> Self {
        let mut manager = redlock::RedLock::new(urls.iter().map(String::as_str).collect());
        manager.set_retry(ATTEMPTS, u32::try_from(RETRY_DELAY.as_millis()).unwrap_or(1));
        Self(manager)
    }
}

impl Blocking for Redlock {
    type Held<'a> = redlock::Lock<'a>;

    fn acquire(&self, resource: &str, _: bool) -> redlock::Lock<'_> {
        let ttl = usize::try_from(TTL.as_millis()).expect("ten seconds are not too many");
        let lock = self.0.lock(resource.as_bytes(), ttl);
        lock.expect("every server answers").expect("the lock is granted")
    }

    fn release<'a>(&'a self, held: redlock::Lock<'a>) {
        self.0.unlock(&held);
    }
}
