//! Invalid input gives a typed error that says what was wrong and where, and never shows the
//! password.

use std::time::Duration;

use redlatch::error::{NodeListError, NodeUrlErrorKind, ResourceError, TtlError};
use redlatch::{Builder, ConfigError, Error, LockClient};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, gone, holders, with_long_timeout};
use support::proxy::Proxy;
use support::secret::{SECRET, shown};
use support::servers::Servers;

#[track_caller]
fn refused(builder: Builder) -> ConfigError {
    let shown_builder = format!("{builder:?}");
    assert!(!shown_builder.contains("s3cr3t"), "{shown_builder}");
    let error = builder.build().expect_err("this is no good");
    assert!(!shown(&error).is_empty());
    let Error::Config(error) = error else {
        panic!("{error}")
    };
    error
}

#[test]
fn a_client_without_nodes_or_with_too_many_is_refused() {
    assert!(matches!(
        refused(LockClient::builder()),
        ConfigError::NoNodes
    ));
    let many = (1..=65).map(|number| format!("redis://10.0.0.{number}"));
    assert!(matches!(
        refused(LockClient::builder().nodes(many)),
        ConfigError::TooManyNodes(65)
    ));
    let most = (1..=64).map(|number| format!("redis://10.0.0.{number}"));
    assert!(LockClient::new(most).is_ok());
}

#[test]
fn a_duplicate_url_is_refused_and_named() {
    let secret = format!("redis://:{SECRET}@10.0.0.1:6379/0");
    let twice = [
        ["redis://10.0.0.1", "redis://10.0.0.1"],
        ["redis://10.0.0.1", "redis://10.0.0.1:6379/3"],
        ["redis://10.0.0.1", &secret],
        [
            "redis://Node-1.example.com",
            "redis://node-1.EXAMPLE.com.:6379",
        ],
        ["redis://[::ffff:10.0.0.1]", "redis://10.0.0.1"],
        ["redis://[2001:db8::1]", "redis://[2001:DB8:0::1]:6379"],
        ["unix:///run/redis.sock", "unix:///run/redis.sock?db=2"],
    ];
    for urls in twice {
        let error = refused(
            LockClient::builder()
                .nodes(["redis://10.9.9.9"])
                .nodes(urls),
        );
        assert!(matches!(&error, ConfigError::Duplicate { .. }), "{error:?}");
        let first = urls[0].replace(&format!(":{SECRET}"), "***");
        let second = urls[1];
        let second = second.replace(&format!(":{SECRET}"), "***");
        let text = format!("{first} and {second} are the same server: name it once");
        assert_eq!(error.to_string(), text, "each as it was written");
    }
}

#[test]
fn invalid_urls_are_refused_with_the_reason() {
    use NodeUrlErrorKind as Kind;

    let unknown = |scheme: &str| Kind::UnknownScheme(scheme.to_owned());
    let option = |name: &str| Kind::UnknownOption(name.to_owned());
    let table = [
        ("", Kind::MissingScheme),
        ("10.0.0.1:6379", Kind::MissingScheme),
        ("http://10.0.0.1", unknown("http")),
        ("redis+proxy://10.0.0.1", unknown("redis+proxy")),
        ("redis+sentinel://:s3cr3t-w0rd@10.0.0.1", Kind::NoGroup),
        (
            "redis+cluster://:s3cr3t-w0rd@10.0.0.1/1",
            Kind::ClusterDatabase,
        ),
        (
            "rediss://user:s3cr3t-w0rd@10.0.0.1?server_name=a,b",
            Kind::BadServerName,
        ),
        (
            "valkeys://:s3cr3t-w0rd@10.0.0.1?insecure=1",
            option("insecure"),
        ),
        ("redis://", Kind::EmptyHost),
        ("redis://:s3cr3t-w0rd@", Kind::EmptyHost),
        ("redis://:s3cr3t-w0rd", Kind::BadPort),
        ("redis://user:s3cr3t-w0rd", Kind::BadPort),
        ("redis://10.0.0.1:0", Kind::BadPort),
        ("redis://10.0.0.1:65536", Kind::BadPort),
        ("redis://::1", Kind::BadHost),
        ("redis://s3cr3t-w0rd@10.0.0.1", Kind::AmbiguousCredentials),
        ("redis://:s3cr3t-w0rd@10.0.0.1/x", Kind::BadDatabase),
        ("redis://:s3cr3t-w0rd@10.0.0.1?timeout=5", option("timeout")),
        ("redis://10.0.0.1/1?db=1", Kind::RepeatedOption("db")),
        (
            "redis://:s3cr3t-w0rd/x@10.0.0.1",
            Kind::UnescapedCredentials,
        ),
        (
            "redis://:s3cr3t-w0rd?x@10.0.0.1",
            Kind::UnescapedCredentials,
        ),
        ("redis://:s3cr3t-w0rd%@10.0.0.1", Kind::BadPercentEscape),
        ("redis://:s3cr3t-w0rd#@10.0.0.1", Kind::Fragment),
        ("redis://:s3cr3t-w0rd\r\n@10.0.0.1", Kind::ControlCharacter),
        ("unix://", Kind::BadPath),
        ("unix://host/run/redis.sock", Kind::UnexpectedHost),
        (
            "unix:///run/redis.sock?password=s3cr3t-w0rd&tls=1",
            option("tls"),
        ),
    ];
    for (url, kind) in table {
        match refused(
            LockClient::builder()
                .nodes(["redis://10.9.9.9"])
                .nodes([url]),
        ) {
            ConfigError::Url(error) => {
                assert_eq!(*error.kind(), kind, "{url}");
                shown(&error);
            }
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[test]
fn a_list_of_nodes_that_cannot_be_used_is_refused_by_the_name_of_its_variable() {
    // Variables that cargo sets for every test, and that are not lists of nodes.
    let name = refused(LockClient::builder().nodes_from_env("CARGO_PKG_NAME"));
    assert!(
        name.to_string()
            .starts_with("environment variable CARGO_PKG_NAME: entry 1: ")
    );
    assert!(matches!(
        refused(LockClient::builder().nodes_from_env("REDLATCH_NO_SUCH_VARIABLE")),
        ConfigError::NodeList { variable, error: NodeListError::NotSet }
            if variable == "REDLATCH_NO_SUCH_VARIABLE"
    ));
}

#[test]
fn invalid_settings_are_refused_and_named() {
    let new = || LockClient::builder().nodes([format!("redis://:{SECRET}@10.0.0.1")]);
    let zero = Duration::ZERO;
    let day = Duration::from_secs(24 * 60 * 60);
    let second = Duration::from_secs(1);
    let tick = Duration::from_nanos(1);
    let table = [
        ("node_timeout", new().node_timeout(zero)),
        ("node_timeout", new().node_timeout(Duration::MAX)),
        ("drift_factor", new().drift_factor(-0.1)),
        ("drift_factor", new().drift_factor(f64::NAN)),
        ("drift_factor", new().drift_factor(1.0)),
        ("retry", new().retry(zero, zero)),
        (
            "retry",
            new().retry(Duration::from_millis(2), Duration::from_millis(1)),
        ),
        ("max_ttl", new().max_ttl(zero)),
        ("max_ttl", new().max_ttl(Duration::from_millis(2))),
        ("max_ttl", new().max_ttl(366 * day)),
        ("max_ttl", new().max_ttl(Duration::MAX)),
        (
            "fencing_expiry",
            new().fencing_expiry(7 * day).max_ttl(8 * day),
        ),
        ("fencing_expiry", new().fencing_expiry(366 * day)),
        ("min_validity", new().min_validity(Duration::from_secs(60))),
        ("min_validity", new().min_validity(Duration::MAX)),
        ("client_name", new().client_name("")),
        ("client_name", new().client_name("two words")),
        ("client_name", new().client_name("line\r\nQUIT")),
        ("owner", new().owner([b'x'; 257])),
        ("key_prefix", new().key_prefix(vec![b'p'; 64 * 1024])),
        ("key_prefix", new().key_prefix("account:redlatch:")),
        (
            "waiter_lease",
            new().waiter_lease(Duration::from_millis(99)),
        ),
        (
            "waiter_lease",
            new().waiter_lease(Duration::from_millis(60_001)),
        ),
        // Less than two rounds.
        (
            "waiter_lease",
            new().node_timeout(second).waiter_lease(second * 2 - tick),
        ),
        (
            "waiter_lease",
            new().node_timeout(second).waiter_lease(second).queue(false),
        ),
        ("connect_timeout", new().connect_timeout(zero)),
        ("connect_timeout", new().connect_timeout(day)),
        ("tcp_keepalive", new().tcp_keepalive(second - tick)),
        ("tcp_keepalive", new().tcp_keepalive(Some(day))),
        ("tcp_keepalive", new().tcp_keepalive(zero)),
        ("tcp_keepalive", new().tcp_keepalive(Duration::MAX)),
    ];
    for (expected, builder) in table {
        match refused(builder) {
            ConfigError::Setting { name, reason } => {
                assert_eq!(name, expected, "{reason}");
                assert!(!reason.is_empty());
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn defaults_never_contradict_settings() {
    // By default, counters live for a week or for as long as a lock may, whichever is longer.
    let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
    for longest in [7, 8, 365] {
        let builder = LockClient::builder()
            .nodes(["redis://10.0.0.1"])
            .max_ttl(days(longest));
        assert!(builder.build().is_ok(), "{longest} days");
    }
    // By default, a waiter may be silent for four rounds.
    for seconds in [1, 10, 60] {
        let round = Duration::from_secs(seconds);
        let new = || {
            LockClient::builder()
                .nodes(["redis://10.0.0.1"])
                .node_timeout(round)
        };
        assert!(new().build().is_ok(), "{round:?}");
        assert!(new().waiter_lease(2 * round).build().is_ok(), "{round:?}");
    }
}

#[test]
fn a_ttl_without_validity_or_above_the_maximum_is_refused_before_anything_is_sent() {
    // No server listens there: an attempt would give another error.
    let client = LockClient::new(["redis://127.0.0.1:1"]).unwrap();
    let millis = Duration::from_millis;
    for ttl in [
        Duration::ZERO,
        Duration::from_nanos(1),
        millis(1),
        millis(2),
    ] {
        let expected = Error::Ttl(TtlError::TooShort {
            ttl,
            shortest: millis(3),
        });
        assert_eq!(client.try_lock("ttl", ttl).unwrap_err(), expected);
        assert_eq!(client.lock("ttl", ttl).unwrap_err(), expected);
    }
    let max_ttl = Duration::from_secs(60);
    for ttl in [
        max_ttl + Duration::from_nanos(1),
        Duration::from_secs(1 << 40),
        Duration::MAX,
    ] {
        let expected = Error::Ttl(TtlError::TooLong { ttl, max_ttl });
        assert_eq!(
            client
                .request("ttl")
                .ttl(ttl)
                .try_lock_for(Duration::MAX)
                .unwrap_err(),
            expected
        );
        shown(&expected);
    }
    // Both limits follow the settings.
    let least = Duration::from_secs(1);
    let strict = LockClient::builder()
        .nodes(["redis://127.0.0.1:1"])
        .min_validity(least);
    let strict = strict.max_ttl(Duration::from_secs(2)).build().unwrap();
    for (ttl, is_refused) in [(1_000, true), (1_010, true), (1_100, false), (2_001, true)] {
        let error = strict.try_lock("ttl", millis(ttl)).unwrap_err();
        assert_eq!(matches!(error, Error::Ttl(_)), is_refused, "{ttl}: {error}");
    }
}

#[test]
fn empty_and_huge_names_are_refused() {
    let client = LockClient::builder()
        .nodes(["redis://127.0.0.1:1"])
        .key_prefix("12345");
    let client = client.build().unwrap();
    let name = |length: usize| vec![b'n'; length];
    let error = client.lock("", LONG).unwrap_err();
    assert_eq!(error, Error::Resource(ResourceError::Empty));
    for length in [63 * 1024 - 4, 64 * 1024, 64 * 1024 * 1024] {
        let too_long = ResourceError::TooLong {
            length: length + 5,
            most: 63 * 1024,
        };
        let error = client.lock(name(length), LONG).unwrap_err();
        assert_eq!(error, Error::Resource(too_long));
        assert!(shown(&error).len() < 200);
    }
    let error = client.try_lock(name(63 * 1024 - 5), LONG).unwrap_err();
    assert!(matches!(error, Error::NoQuorum(_)), "{error}");
}

#[test]
fn two_urls_of_one_server_are_detected() {
    let servers = Servers::start(2);
    let port = servers[0].port();
    let proxy = Proxy::start(port);
    let others = [format!("redis://localhost:{port}"), proxy.url()];
    let socket = format!("unix://{}", servers[0].unix_socket().display());
    for other in others.into_iter().chain([socket]) {
        let urls = [servers[0].url(), servers[1].url(), other.clone()];
        let client = all_nodes_client(urls.clone());
        for _ in 0..3 {
            match client.try_lock("twins", LONG).unwrap_err() {
                Error::SameServer { first, second } => {
                    assert_eq!(format!("{first}"), format!("redis://127.0.0.1:{port}/0"));
                    assert!(second.starts_with(&other[..12]), "{second}");
                }
                error => panic!("{other}: {error}"),
            }
        }
        // Waiting cannot fix it, so a request without a time limit gets the error too.
        assert!(matches!(
            client.lock("twins", LONG),
            Err(Error::SameServer { .. })
        ));
        assert!(gone(&servers, "twins"));
        // Without `wait_for_all`, the error comes as soon as both nodes have replied.
        let hasty = with_long_timeout(urls).build().unwrap();
        let found = || matches!(hasty.try_lock("twins", LONG), Err(Error::SameServer { .. }));
        assert!(eventually(LIMIT, found));
        assert!(found() && gone(&servers, "twins"));
    }
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
    assert!(
        matches!(refused, Error::Ttl(TtlError::TooShort { .. })),
        "{refused}"
    );
    assert_eq!(holders(&servers, "tight"), 0);
    // The longest and the shortest.
    let refused = request
        .clone()
        .min_validity(Duration::MAX)
        .try_lock()
        .unwrap_err();
    assert!(
        matches!(refused, Error::Ttl(TtlError::TooShort { .. })),
        "{refused}"
    );
    let refused = request.ttl(Duration::MAX).try_lock().unwrap_err();
    assert!(
        matches!(refused, Error::Ttl(TtlError::TooLong { .. })),
        "{refused}"
    );
    assert!(gone(&servers, "tight"));
}
