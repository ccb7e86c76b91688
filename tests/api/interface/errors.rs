//! What cannot be had, and why.

use std::time::{Duration, Instant};

use redlatch::error::{ResourceError, TtlError};
use redlatch::{Error, LockClient};
use support::backend::Backend;
use support::on_each_backend;

use super::LONG;

on_each_backend!(names_ttls_and_counts_are_checked_before_anything_is_sent);

fn names_ttls_and_counts_are_checked_before_anything_is_sent(backend: &Backend) {
    let client = backend.client();
    let refused = |name: &[u8]| client.try_lock(name, LONG).err();
    assert_eq!(refused(b""), Some(Error::Resource(ResourceError::Empty)));
    let too_long = refused(&[b'a'; 70_000]);
    assert!(matches!(
        too_long,
        Some(Error::Resource(ResourceError::TooLong { .. }))
    ));
    let ttl = |ttl| client.try_lock("ttl", ttl).err();
    assert!(matches!(
        ttl(Duration::ZERO),
        Some(Error::Ttl(TtlError::TooShort { .. }))
    ));
    let year = Duration::from_secs(365 * 24 * 3600);
    assert!(matches!(
        ttl(year),
        Some(Error::Ttl(TtlError::TooLong { .. }))
    ));
    for count in [0, 1025, u32::MAX] {
        let refused = client.request("permits").one_of(count).try_lock().map(drop);
        let error = ResourceError::Permits { count, most: 1024 };
        assert_eq!(refused, Err(Error::Resource(error)));
    }
    let none = client.request_all([""; 0]).try_lock().map(drop);
    assert_eq!(none, Err(Error::Resource(ResourceError::None)));
    // A set of one lock is that lock, and only that has readers.
    let readers = |names: &[&str]| client.request_all(names).shared().try_lock().map(drop);
    assert_eq!(
        readers(&["one", "other"]),
        Err(Error::Resource(ResourceError::SharedSet))
    );
    assert_eq!(readers(&["one"]), Ok(()));
}

#[test]
fn a_backend_that_is_not_there_is_an_error_with_a_report_for_each_node() {
    let nobody = support::port::Port::choose().number().to_string();
    for scheme in ["redis", "zk"] {
        let client = LockClient::builder().nodes([format!("{scheme}://127.0.0.1:{nobody}")]);
        let client = client.build().unwrap();
        let began = Instant::now();
        let Err(Error::NoQuorum(error)) = client.try_lock("nobody", LONG) else {
            panic!("{scheme}: nobody is there")
        };
        assert!(began.elapsed() < Duration::from_secs(20), "{scheme}");
        assert_eq!(error.reports().len(), 1);
        let text = error.to_string();
        assert!(
            text.contains(&nobody) && text.contains("no connection"),
            "{text}"
        );
    }
}
