//! Ensembles of one URL and of several, what is refused, and settings that apply to one kind of
//! node only.

use super::*;
use crate::config::{NodeSettings, Settings};

fn builder(urls: &[&str]) -> Builder {
    Builder::new().nodes(urls.iter().copied())
}

fn ensemble(settings: Settings) -> EnsembleSettings {
    match settings.nodes {
        NodeSettings::ZooKeeper(ensemble) => ensemble,
        NodeSettings::Redis(nodes) => panic!("{nodes:?}"),
    }
}

fn refusal(builder: Builder) -> String {
    builder
        .check()
        .expect_err("settings that cannot be")
        .to_string()
}

#[test]
fn one_url_or_several_name_one_ensemble() {
    for urls in [
        &["zk://u:p@h1,h2:7,[::1]/a?layout=kazoo"][..],
        &["zk://u:p@h1", "h2:7", "[::1]/a?layout=kazoo"],
        &[
            "zk://u:p@h1,h2:7/a?layout=kazoo",
            "zk://u:p@[::1]/a?layout=kazoo",
        ],
    ] {
        let settings = builder(urls).check().expect("an ensemble");
        assert_eq!(settings.rules.nodes, 1, "an ensemble has one vote");
        let found = ensemble(settings);
        let names: Vec<_> = found.servers.iter().map(|server| &*server.name).collect();
        assert_eq!(
            names,
            ["zk://h1:2181/a", "zk://h2:7/a", "zk://[::1]:2181/a"]
        );
        let address = Address::Tcp {
            host: "h2".to_owned(),
            port: 7,
        };
        assert_eq!(found.servers[1].address, address);
        assert!(found.servers.iter().all(|server| server.tls.is_none()));
        assert_eq!((found.root.path(), found.layout), ("/a", Layout::Kazoo));
        assert_eq!(found.credentials.as_deref(), Some(&b"u:p"[..]));
    }
}

#[test]
fn urls_that_name_no_one_ensemble_are_refused() {
    let together = "setting nodes: zk:// and redis:// URLs together: locks are on a ZooKeeper \
                    ensemble, or on Redis nodes";
    let differ = |what: &str| {
        format!(
            "setting nodes: the zk:// URLs differ in {what}: they name one ensemble, and only the \
             hosts differ"
        )
    };
    for (urls, expected) in [
        (&["zk://h1", "redis://h2"][..], together.to_owned()),
        (&["unix:///r", "zk://h1"], together.to_owned()),
        (&["zk://u:p@h1", "zk://u:q@h2"], differ("user and password")),
        (&["zk://h1/a", "zk://h2/b"], differ("path")),
        (&["zk://h1", "zk://h2?layout=kazoo"], differ("layout")),
        (
            &["zk://h1,h2,H1.:2181"],
            "h1 and H1.:2181 are the same server: name it once".to_owned(),
        ),
        (
            &["zk://h1", "zk://h1"],
            "h1 and h1 are the same server: name it once".to_owned(),
        ),
        (
            &["zk://h1", "http://h2"],
            "bad node url 'http://h2': http:// is not a URL of a Redis server, expected redis://, \
             rediss://, valkey://, valkeys://, unix://, redis+sentinel://, redis+cluster://, \
             zk:// or zks://"
                .to_owned(),
        ),
        (
            &["zk://h1/a/"],
            "bad node url 'zk://h1/***': root: an element of the path is empty, '.' or '..'"
                .to_owned(),
        ),
        (
            &["zk://h1", ""],
            "bad node url 'zk://h1,***': no host".to_owned(),
        ),
    ] {
        assert_eq!(refusal(builder(urls)), expected, "{urls:?}");
    }
}

#[test]
fn an_ensemble_has_at_most_64_servers() {
    let url = |count| {
        let hosts: Vec<_> = (0..count).map(|number| format!("h{number}")).collect();
        format!("zk://{}", hosts.join(","))
    };
    assert_eq!(
        ensemble(builder(&[&url(64)]).check().expect("64 servers"))
            .servers
            .len(),
        64
    );
    assert_eq!(
        refusal(builder(&[&url(65)])),
        "65 nodes: at most 64 are possible"
    );
}

#[test]
fn the_session_timeout_is_checked_and_others_follow_from_it() {
    let zk = || builder(&["zk://h"]);
    let ms = Duration::from_millis;
    for (timeout, node_timeout, connect_timeout) in [
        (100, 33, 20),
        (6000, 2000, 1200),
        (30_000, 10_000, 2000),
        (3_600_000, 60_000, 2000),
    ] {
        let settings = zk()
            .session_timeout(ms(timeout))
            .check()
            .expect("a timeout");
        assert_eq!(settings.rules.node_timeout.as_millis(), node_timeout);
        assert_eq!(settings.rules.connect_timeout, ms(connect_timeout));
        assert_eq!(settings.connecting.timeout, ms(connect_timeout));
        assert_eq!(ensemble(settings).session_timeout, ms(timeout));
    }
    assert_eq!(
        ensemble(zk().check().expect("the default")).session_timeout,
        ms(10_000)
    );
    let set = zk()
        .node_timeout(ms(70))
        .connect_timeout(ms(80))
        .check()
        .expect("timeouts");
    assert_eq!(
        (set.rules.node_timeout, set.connecting.timeout),
        (ms(70), ms(80))
    );
    for timeout in [Duration::ZERO, ms(99), ms(3_600_001), Duration::MAX] {
        let reason = format!("setting session_timeout: {timeout:?} is not between 100 ms and 1 h");
        assert_eq!(refusal(zk().session_timeout(timeout)), reason);
    }
    assert!(
        zk().session_timeout(ms(7000))
            .min_validity(ms(3000))
            .check()
            .is_ok()
    );
    assert_eq!(
        refusal(zk().session_timeout(ms(7000)).min_validity(ms(3001))),
        "setting min_validity: 3.001s is more than 3/7 of the session timeout (7s)"
    );
}

#[test]
fn what_does_not_apply_is_an_error_if_it_is_set() {
    let zk = || builder(&["zk://h"]);
    let second = Duration::from_secs(1);
    for (name, settings) in [
        ("wait_for_all", zk().wait_for_all(true)),
        ("queue", zk().queue(false)),
        ("waiter_lease", zk().waiter_lease(second)),
        ("fencing_expiry", zk().fencing_expiry(second * 86400)),
    ] {
        let expected = format!("setting {name}: it does not apply to ZooKeeper");
        assert_eq!(refusal(settings), expected);
    }
    let without_effect = zk()
        .wait_for_all(false)
        .queue(true)
        .restart_guard(false)
        .io_thread(true);
    assert!(
        without_effect
            .client_name("a")
            .key_prefix(b"\xff/\0")
            .check()
            .is_ok()
    );
    for redis in ["redis://h", "unix:///r"] {
        assert_eq!(
            refusal(builder(&[redis]).session_timeout(second)),
            "setting session_timeout: it applies to ZooKeeper only"
        );
    }
}

#[test]
fn checks_of_other_settings_are_the_same() {
    let zk = || builder(&["zk://h"]);
    let second = Duration::from_secs(1);
    for (name, settings) in [
        ("drift_factor", zk().drift_factor(0.6)),
        ("node_timeout", zk().node_timeout(second * 61)),
        ("connect_timeout", zk().connect_timeout(Duration::ZERO)),
        ("retry", zk().retry(Duration::ZERO, second)),
        ("max_ttl", zk().max_ttl(Duration::ZERO)),
        ("client_name", zk().client_name("two words")),
    ] {
        let refused = refusal(settings);
        assert!(
            refused.starts_with(&format!("setting {name}: ")),
            "{refused}"
        );
    }
}

#[test]
fn no_text_shows_the_password() {
    let settings = builder(&["zk://Zq7u:Zq7x@h1,h2/a"])
        .check()
        .expect("an ensemble");
    let shown = format!("{settings:?}");
    assert!(
        shown.contains("zk://h1:2181/a") && !shown.contains("Zq7"),
        "{shown}"
    );
    for urls in [
        &["zk://u:Zq7x@h1,H1"][..],
        &["zk://u:Zq7x@h1", "zk://h2"],
        &["zk://u:Zq7x@h1", "redis://u:Zq7x@h2"],
        &["zk://u:Zq7x@h1", "h2:x"],
        &["zk://h1", "u:Zq7x@h2"],
        &["zk://u:1", "Zq7x@h2"],
    ] {
        let error = builder(urls).check().expect_err("settings that cannot be");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("Zq7"), "{shown}");
    }
}
