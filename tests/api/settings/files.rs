//! Settings in files, in TOML and JSON: what is in the file is what the client does, and no error
//! shows a password.

use std::time::Duration;

use redlatch::error::TtlError;
use redlatch::{Builder, ClientSettings, Error, LockClient, LockState};
use support::locks::LONG;
use support::servers::Servers;

#[derive(Debug, serde::Deserialize)]
struct Configuration {
    locks: ClientSettings,
}

fn build(settings: ClientSettings) -> Result<LockClient, Error> {
    Builder::from(settings).build()
}

fn json(text: &str) -> Result<ClientSettings, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn a_file_makes_a_client_with_its_settings() {
    let servers = Servers::start(3);
    let nodes = servers
        .urls()
        .iter()
        .map(|url| format!("{url:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    let text = format!(
        "[locks]\nnodes = [{nodes}]\nkey_prefix = 'billing:'\nclient_name = 'from-a-file'\n\
         restart_guard = false\nmax_ttl = '1m 1s'\nmax_hold = '55s'\nnode_timeout = '5s'\n\
         wait_for_all = true\nowner = 'me'\n"
    );
    let Configuration { locks } = toml::from_str(&text).unwrap();
    // If the tests run over TLS, it trusts their certificates.
    let client = support::transport::trusting(Builder::from(locks))
        .build()
        .unwrap();
    let lock = client.lock("orders", LONG).unwrap();
    for server in servers.iter() {
        assert!(server.command(&["EXISTS", "billing:orders"]).integer() == 1);
        assert_eq!(support::locks::connections(server, "from-a-file"), 1);
    }
    let LockState::Held(holder) = client.inspect("orders").unwrap().state else {
        panic!()
    };
    assert!(holder.owner().is_some_and(|owner| owner == "me"));
    drop(lock);
    let longest = client.try_lock("orders", Duration::from_secs(55));
    assert!(longest.unwrap().is_some());
    let beyond = client.try_lock("orders", Duration::from_secs(61));
    assert!(
        matches!(beyond, Err(Error::Ttl(TtlError::BeyondHold { .. }))),
        "{beyond:?}"
    );
    let longer = client.try_lock("orders", Duration::from_secs(62));
    assert!(
        matches!(longer, Err(Error::Ttl(TtlError::TooLong { .. }))),
        "{longer:?}"
    );
}

#[test]
fn every_setting_reaches_the_builder() {
    // Each is refused by the builder in its own name, so it has reached it.
    for (name, value) in [
        ("node_timeout", "\"61s\""),
        ("connect_timeout", "\"0s\""),
        ("max_ttl", "\"400 days\""),
        ("min_validity", "\"2h\""),
        ("waiter_lease", "\"1ms\""),
        ("fencing_expiry", "\"1s\""),
        ("key_prefix", "\"a:redlatch:b\""),
        ("client_name", "\"with a space\""),
        ("drift_factor", "0.7"),
        ("session_timeout", "\"10s\""),
    ] {
        let text = format!(r#"{{"nodes": "redis://10.0.0.1", "{name}": {value}}}"#);
        let error = build(json(&text).unwrap())
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(&format!("setting {name}")), "{error}");
    }
    let text = r#"{"nodes": [], "nodes_from_env": "REDLATCH_TEST_NOT_SET"}"#;
    let error = build(json(text).unwrap())
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("environment variable REDLATCH_TEST_NOT_SET"),
        "{error}"
    );
    let switches =
        r#""restart_guard": true, "wait_for_all": true, "io_thread": true, "queue": false"#;
    let text = format!(r#"{{"nodes": "redis://10.0.0.1", "max_hold": "1h 30m", {switches}}}"#);
    assert!(build(json(&text).unwrap()).is_ok());
    assert_eq!(
        build(json("{}").unwrap())
            .unwrap_err()
            .to_string()
            .split(':')
            .next(),
        Some("no nodes")
    );
}

#[cfg(target_os = "linux")] // the tests have the feature there only
#[test]
fn certificates_are_named_in_a_table_of_their_own() {
    let text = "nodes = 'rediss://10.0.0.1'\n[tls]\nca_files = ['/nowhere/ca.pem']\n";
    let error = build(toml::from_str(text).unwrap())
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("setting tls: /nowhere/ca.pem cannot be read"),
        "{error}"
    );
    let text = "nodes = 'rediss://10.0.0.1'\n[tls.client_certificate]\nfile = 'a'\n";
    let error = toml::from_str::<ClientSettings>(text).unwrap_err();
    assert_eq!(error.message(), "missing field `key`");
}

#[test]
fn what_is_wrong_is_named_and_no_password_is_shown() {
    for (text, expected) in [
        (r#"{"node": "redis://:secret@a"}"#, "unknown field `node`"),
        (
            r#"{"nodes": ["redis://:secret@a", 7]}"#,
            "invalid type: integer `7`",
        ),
        (
            r#"{"nodes": {"redis://:secret@a": 1}}"#,
            "invalid type: map, expected a list of URLs",
        ),
        (
            r#"{"max_ttl": 10}"#,
            "expected a duration with its unit, such as \"500ms\"",
        ),
        (r#"{"max_ttl": "10"}"#, "expected a duration with its unit"),
        (
            r#"{"max_ttl": "ten"}"#,
            "invalid value: string \"ten\", expected a duration",
        ),
        (r#"{"tls": {"ca_file": "a"}}"#, "unknown field `ca_file`"),
    ] {
        let error = json(text).map(drop).unwrap_err();
        assert!(
            error.contains(expected) && !error.contains("secret"),
            "{error}"
        );
    }
    let error = toml::from_str::<ClientSettings>("node = 'redis://:secret@a'").unwrap_err();
    assert!(!error.message().contains("secret"), "{}", error.message());
    let settings = json(r#"{"nodes": ["redis://user:secret@a", "redis://:secret@b:x"]}"#).unwrap();
    assert!(!format!("{settings:?}").contains("secret"));
    let builder = Builder::from(settings);
    let error = builder.build().map(drop).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
}
