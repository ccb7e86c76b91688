//! Requests: the settings of a lock besides its resource and its ttl.

use redlatch::error::{ResourceError, TtlError};
use redlatch::{Error, LockGuard, LockRequest};
use std::time::{Duration, Instant};
use support::locks::{LONG, all_nodes_client, gone, holders, pttl, take};
use support::servers::Servers;

const SHORT: Duration = Duration::from_millis(50);

#[test]
fn a_request_waits_as_long_as_it_says() {
    let servers = Servers::start(3);
    let (client, other) = (all_nodes_client(servers.urls()), all_nodes_client(servers.urls()));
    let held = take(&other, "held", LONG);
    type Taken = Result<Option<LockGuard>, Error>;
    let ways: [fn(LockRequest<'_>) -> Taken; 5] = [
        |request| request.try_lock(),
        |request| request.try_lock_for(Duration::ZERO),
        |request| request.try_lock_for(SHORT),
        |request| request.try_lock_until(Instant::now()),
        |request| request.try_lock_until(Instant::now() + SHORT),
    ];
    for way in ways {
        let start = Instant::now();
        assert!(way(client.request("held").ttl(LONG)).unwrap().is_none());
        assert!(start.elapsed() < LONG, "it does not wait for the lock to expire");
    }

    // `lock` waits without a limit.
    let waiting = std::thread::spawn(move || client.request("held").lock().is_ok());
    drop(held);
    assert!(waiting.join().unwrap());
}

#[test]
fn the_default_ttl_is_ten_seconds() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let lock = client.request("default").lock().unwrap();
    assert!(lock.remaining() > Duration::from_secs(1));
    assert!(lock.remaining() <= Duration::from_millis(9_898));
    let left = servers.iter().map(|server| pttl(server, "default"));
    left.for_each(|left| assert!((1..=10_000).contains(&left), "{left}"));
}

#[test]
fn a_ttl_without_the_minimum_validity_is_refused_before_anything_is_sent() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let request = client.request("tight").ttl(Duration::from_secs(1));
    // A second leaves 988 ms: ten for drift, and two for the resolution of expiry.
    let least = |millis| request.clone().min_validity(Duration::from_millis(millis));
    assert_eq!(least(10).try_lock().unwrap().unwrap().release(), Ok(()));
    let refused = least(989).try_lock().unwrap_err();
    assert!(matches!(refused, Error::Ttl(TtlError::TooShort { .. })), "{refused}");
    assert_eq!(holders(&servers, "tight"), 0);
    // The longest and the shortest.
    let refused = request.clone().min_validity(Duration::MAX).try_lock().unwrap_err();
    assert!(matches!(refused, Error::Ttl(TtlError::TooShort { .. })), "{refused}");
    let refused = request.ttl(Duration::MAX).try_lock().unwrap_err();
    assert!(matches!(refused, Error::Ttl(TtlError::TooLong { .. })), "{refused}");
    assert!(gone(&servers, "tight"));
}

#[test]
fn an_invalid_name_is_an_error_of_the_request() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let refused = client.request("").try_lock().unwrap_err();
    assert_eq!(refused, Error::Resource(ResourceError::Empty));
    assert!(format!("{:?}", client.request([0xFF, b'\n'])).contains("\\\\xff\\\\n"));
}
