//! What the answers to a greeting say of a server.

#[cfg(feature = "groups")]
mod kinds;
#[cfg(feature = "diagnostics")]
mod shown;

use super::*;
use std::time::Duration;

#[test]
fn identities_are_read_from_incomplete_answers() {
    let table = [
        ("", Identity::default()),
        ("run_id:\r\nuptime_in_seconds:soon\r\n", Identity::default()),
        ("uptime_in_seconds:-1\r\n", Identity::default()),
        (
            "uptime_in_seconds:18446744073709551615\r\n",
            Identity {
                uptime: Some(Duration::from_secs(u64::MAX)),
                ..Identity::default()
            },
        ),
        (
            "server_time_usec:1795283277899969\r\nuptime_in_seconds:10\r\n",
            Identity {
                uptime: Some(Duration::from_micros(10_899_969)),
                ..Identity::default()
            },
        ),
        (
            "server_time_usec:soon\r\nuptime_in_seconds:10\r\n",
            Identity {
                uptime: Some(Duration::from_secs(10)),
                ..Identity::default()
            },
        ),
        ("server_time_usec:1795283277899969\r\n", Identity::default()),
        (
            "redis_mode:cluster\r\n",
            Identity {
                kind: Some(ServerKind::Member),
                ..Identity::default()
            },
        ),
        (
            "server_mode:standalone\r\n",
            Identity {
                kind: Some(ServerKind::Single),
                ..Identity::default()
            },
        ),
        ("redis_mode:other\r\n", Identity::default()),
        (
            "run_id:x\n",
            Identity {
                run_id: Some("x".to_owned()),
                ..Identity::default()
            },
        ),
    ];
    for (text, expected) in table {
        assert_eq!(Identity::from_info(text.as_bytes()), expected, "{text:?}");
    }
    assert_eq!(
        Identity::from_info(&[b"run_id:", &[b'x'; 200][..]].concat()),
        Identity::default()
    );
}
