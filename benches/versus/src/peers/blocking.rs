//! The blocking libraries. Both open a new connection for every command to every server.

use crate::work::{Blocking, TTL};
use redsync::{RedisInstance, RedsyncBuilder};
use std::time::Duration;

/// Number of retries and the pause between them. They retry only if another client holds the lock.
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

/// <https://crates.io/crates/redsync>
pub struct Redsync(redsync::Redsync<RedisInstance>);

impl Redsync {
    pub fn new(urls: &[String]) -> Self {
        let open = |url: &String| RedisInstance::new(url.as_str()).expect("the URL can be used");
        let instances = urls.iter().map(open).collect();
        let builder = RedsyncBuilder::new(instances).retry_count(ATTEMPTS);
        Self(builder.retry_delay(RETRY_DELAY).build())
    }
}

impl Blocking for Redsync {
    type Held<'a> = redsync::Lock;

    fn acquire(&self, resource: &str, _: bool) -> redsync::Lock {
        let lock = self.0.lock(resource, TTL);
        lock.unwrap_or_else(|error| panic!("redsync takes the lock: {error:?}"))
    }

    fn release(&self, held: redsync::Lock) {
        self.0.unlock(&held).unwrap_or_else(|error| panic!("redsync gives it back: {error:?}"));
    }
}
