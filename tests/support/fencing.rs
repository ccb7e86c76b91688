//! Fenced locks, and the counters that their tokens come from.

use redlatch::{LockClient, LockGuard};

use super::locks::{LONG, calls, value};
use super::redis::Server;

/// A counter far ahead of the wall clock, so that only counting makes tokens grow.
pub const AHEAD: u64 = 4_000_000_000_000_000;

/// Takes a fenced lock, and waits for it if a node has yet to hear that it is free.
#[track_caller]
pub fn fenced(client: &LockClient, resource: &str) -> LockGuard {
    let guard = client.request(resource).ttl(LONG).fenced().lock();
    guard.expect("a majority answers")
}

#[track_caller]
pub fn token(guard: &LockGuard) -> u64 {
    guard.fencing_token().expect("a fenced lock has a token").as_u64()
}

/// What the counter of a resource is called.
pub fn counter_key(resource: &str) -> String {
    format!("{resource}:redlatch:fence")
}

/// What the node counts for this resource.
#[track_caller]
pub fn counter(server: &Server, resource: &str) -> Option<u64> {
    let text = value(server, counter_key(resource))?;
    Some(String::from_utf8(text).expect("digits").parse().expect("a number"))
}

/// Has it count from there, or from what is no number.
pub fn set_counter(server: &Server, resource: &str, counter: &(impl ToString + ?Sized)) {
    server.command(&["SET", &counter_key(resource), &counter.to_string()]);
}

/// How many scripts a node has run.
pub fn scripts(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
}
