//! Fenced locks, and the counters of their tokens.

use redlatch::{LockClient, LockGuard};

use super::locks::{LONG, calls, value};
use super::redis::Server;

/// A counter far ahead of the wall clock, so that tokens grow only by counting.
pub const AHEAD: u64 = 4_000_000_000_000_000;

/// Acquires a fenced lock, and waits if a node has not processed its release yet.
#[track_caller]
pub fn fenced(client: &LockClient, resource: &str) -> LockGuard {
    let guard = client.request(resource).ttl(LONG).fenced().lock();
    guard.expect("a majority answers")
}

#[track_caller]
pub fn token(guard: &LockGuard) -> u64 {
    guard
        .fencing_token()
        .expect("a fenced lock has a token")
        .as_u64()
}

/// The key of a resource's counter.
pub fn counter_key(resource: &str) -> String {
    format!("{resource}:redlatch:fence")
}

/// The node's counter of this resource.
#[track_caller]
pub fn counter(server: &Server, resource: &str) -> Option<u64> {
    let text = value(server, counter_key(resource))?;
    Some(
        String::from_utf8(text)
            .expect("digits")
            .parse()
            .expect("a number"),
    )
}

/// Sets the counter, also to a value that is not a number.
pub fn set_counter(server: &Server, resource: &str, counter: &(impl ToString + ?Sized)) {
    server.command(&["SET", &counter_key(resource), &counter.to_string()]);
}

/// How many scripts a node has run.
pub fn scripts(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
}
