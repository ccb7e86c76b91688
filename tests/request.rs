//! Requests: what can be said about a lock beyond its resource and a ttl.

use crate::support;

use redlatch::error::{ResourceError, TtlError};
use redlatch::{LockError, LockRequest};
use std::time::{Duration, Instant};
use support::locks::{LONG, gone, holders, pttl, take, thorough};
use support::servers::Servers;

const SHORT: Duration = Duration::from_millis(50);

#[test]
fn a_request_says_how_long_to_wait() {
    let servers = Servers::start(3);
    let (client, other) = (thorough(servers.urls()), thorough(servers.urls()));
    let held = take(&other, "held", LONG);
    let ways: [fn(LockRequest<'_>) -> LockRequest<'_>; 5] = [
        |request| request.no_wait(),
        |request| request.wait_for(Duration::ZERO),
        |request| request.wait_for(SHORT),
        |request| request.wait_until(Instant::now() + SHORT),
        // The last word counts.
        |request| request.wait_forever().no_wait(),
    ];
    for way in ways {
        let start = Instant::now();
        assert!(way(client.request("held").ttl(LONG)).acquire().unwrap().is_none());
        assert!(start.elapsed() < LONG, "it does not wait for the lock to expire");
    }

    // A request that says nothing of it waits as long as it takes.
    let waiting = std::thread::spawn(move || client.request("held").acquire().unwrap().is_some());
    drop(held);
    assert!(waiting.join().unwrap());
}

#[test]
fn a_request_that_says_nothing_of_a_ttl_gets_ten_seconds() {
    let servers = Servers::start(3);
    let client = thorough(servers.urls());
    let lock = client.request("default").acquire().unwrap().expect("it is free");
    assert!(lock.remaining() > Duration::from_secs(1));
    assert!(lock.remaining() <= Duration::from_millis(9_898));
    let left = servers.iter().map(|server| pttl(server, "default"));
    left.for_each(|left| assert!((1..=10_000).contains(&left), "{left}"));
}

#[test]
fn a_lock_that_leaves_too_little_validity_is_not_asked_for() {
    let servers = Servers::start(3);
    let client = thorough(servers.urls());
    let request = client.request("tight").ttl(Duration::from_millis(100)).no_wait();
    // A hundred milliseconds leave 97: a hundredth for drift, and two for the grain of expiry.
    assert!(request.clone().min_validity(Duration::from_millis(10)).acquire().unwrap().is_some());
    let refused = request.clone().min_validity(Duration::from_millis(98)).acquire().unwrap_err();
    assert!(matches!(refused, LockError::Ttl(TtlError::TooShort { .. })), "{refused}");
    assert_eq!(holders(&servers, "tight"), 0);
    // The longest there is, and the shortest.
    let refused = request.clone().min_validity(Duration::MAX).acquire().unwrap_err();
    assert!(matches!(refused, LockError::Ttl(TtlError::TooShort { .. })), "{refused}");
    let refused = request.ttl(Duration::MAX).acquire().unwrap_err();
    assert!(matches!(refused, LockError::Ttl(TtlError::TooLong { .. })), "{refused}");
    assert!(gone(&servers, "tight"));
}

#[test]
fn a_name_that_cannot_be_used_is_told_when_the_lock_is_asked_for() {
    let servers = Servers::start(1);
    let client = thorough(servers.urls());
    let refused = client.request("").acquire().unwrap_err();
    assert_eq!(refused, LockError::Resource(ResourceError::Empty));
    assert!(format!("{:?}", client.request([0xFF, b'\n'])).contains("\\\\xff\\\\n"));
}
