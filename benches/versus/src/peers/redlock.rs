//! <https://crates.io/crates/redlock>, which opens a new connection for every command to every
//! server.

use crate::work::{Blocking, TTL};

pub struct Redlock(::redlock::RedLock);

impl Redlock {
    pub fn new(urls: &[String]) -> Self {
        Self(::redlock::RedLock::new(urls.iter().map(String::as_str).collect()))
    }
}

impl Blocking for Redlock {
    type Held<'a> = ::redlock::Lock<'a>;

    fn acquire(&self, resource: &str, _: bool) -> ::redlock::Lock<'_> {
        let ttl = usize::try_from(TTL.as_millis()).expect("a minute is not too much");
        let lock = self.0.lock(resource.as_bytes(), ttl);
        lock.expect("every server answers").expect("the lock is granted")
    }

    fn release<'a>(&'a self, held: ::redlock::Lock<'a>) {
        self.0.unlock(&held);
    }
}
