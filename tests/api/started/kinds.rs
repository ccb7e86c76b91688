//! The kinds of locks that a guard holds, and whether one is free.

use redlatch::{LockClient, LockGuard, LockRequest};
use support::locks::LONG;

pub(super) fn request<'a>(client: &'a LockClient, name: &str) -> LockRequest<'a> {
    client.request(name).ttl(LONG)
}

pub(super) fn is_free(client: &LockClient, name: &str) -> bool {
    let taken = request(client, name).try_lock().expect("no error");
    taken.map(LockGuard::release).is_some()
}

pub(super) type Kind = for<'a> fn(LockRequest<'a>) -> LockRequest<'a>;

pub(super) const KINDS: [(&str, Kind); 5] = [
    ("plain", |request| request),
    ("fenced", |request| request.fenced()),
    ("kept", |request| request.keep_alive()),
    ("reader", |request| request.shared()),
    ("permit", |request| request.one_of(2)),
];
