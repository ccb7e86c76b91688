//! Deleting registers if they are as they were seen, by their age, and where memory has ended.

use std::time::{Duration, SystemTime};

use support::cli::Value;
use support::eventually;
use support::locks::LIMIT;

use redlatch::transaction::Decision;

use super::{client, formed, read, set};

#[test]
fn a_value_is_deleted_by_its_version_or_by_its_age_only_if_nobody_has_changed_it() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    let before = SystemTime::now();
    let one = set(&register, "one");
    let two = set(&register, "two");
    let refused = register
        .compare_and_delete(one)
        .unwrap()
        .unwrap_err()
        .unwrap();
    assert_eq!((refused.version(), refused.bytes()), (two, &b"two"[..]));
    assert!(
        refused.written_at() >= before - Duration::from_millis(1),
        "{refused:?}"
    );
    assert!(refused.written_at() <= SystemTime::now(), "{refused:?}");
    register.compare_and_delete(two).unwrap().unwrap();
    assert_eq!(register.compare_and_delete(two).unwrap(), Err(None));
    // An hour ago.
    let old = first.register("done:old").unwrap();
    set(&old, "x");
    set(&first.register("done:new").unwrap(), "x");
    // Before any node says something else; and each has it, not only a majority.
    let written = old.read().unwrap().unwrap().written_at();
    let key = &b":redlatch:register:done:old"[..];
    for server in &*servers {
        let value = || server.command(&[&b"GET"[..], key]);
        assert!(eventually(LIMIT, || matches!(value(), Value::Bulk(_))));
        let Value::Bulk(bytes) = value() else {
            panic!("it was there")
        };
        let micros = |time: SystemTime| {
            let since = time
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap()
                .as_micros();
            u64::try_from(since).unwrap().to_be_bytes()
        };
        let now = micros(written);
        let then = micros(written - Duration::from_secs(3600));
        let at = bytes
            .windows(8)
            .position(|part| part == now)
            .expect("the value has its time");
        let aged = [&bytes[..at], &then[..], &bytes[at + 8..]].concat();
        server.command(&[&b"SET"[..], key, &aged]);
    }
    let half_an_hour = Duration::from_secs(1800);
    assert_eq!(
        first
            .registers()
            .delete_older_than("other:*", half_an_hour)
            .unwrap(),
        0
    );
    assert_eq!(
        first
            .registers()
            .delete_older_than("done:*", half_an_hour)
            .unwrap(),
        1
    );
    assert_eq!(read(&old), None);
    assert_eq!(
        read(&first.register("done:new").unwrap()),
        Some("x".to_owned())
    );
}

#[test]
fn what_needs_no_more_memory_is_done_at_maxmemory() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    set(&register, "one");
    let id = first.transactions().begin(&["berlin", "paris"]).unwrap();
    let limit = |bytes: &str| {
        for server in servers.iter() {
            server.command(&["CONFIG", "SET", "maxmemory", bytes]);
        }
    };
    limit("1000");
    for name in ["a", "b"] {
        let long = || Some(vec![7; 1_000]);
        let error = client(&servers)
            .register(name)
            .unwrap()
            .change(|_| long())
            .unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
    }
    let other = client(&servers);
    assert_eq!(read(&other.register("a").unwrap()), Some("one".to_owned()));
    other.register("a").unwrap().delete().unwrap();
    assert_eq!(other.transactions().abort(&id).unwrap(), Decision::Aborted);
    assert_eq!(read(&register), None);
    other.registers().sweep().unwrap();
    limit("0");
    set(&register, "two");
    assert!(eventually(LIMIT, || first
        .registers()
        .sweep()
        .unwrap()
        .left
        == 0));
}
