//! Replicated groups over TLS: their URLs, and a cluster.

use std::fs;

use super::program::{Ended, bare, end};
use support::certificates::{Authority, Purpose};
use support::cli::Value;
use support::eventually;
use support::locks::LIMIT;
use support::program::in_memory;
use support::redis::Server;

#[test]
fn groups_over_tls_are_over_tls() {
    let folder = in_memory();
    let ca = folder.path().join("ca.crt");
    fs::write(&ca, Authority::trusted().pem()).expect("a folder");
    let file = folder.path().join("redlatch.conf");
    fs::write(&file, "[tls]\nca_files = [\"ca.crt\"]\n").expect("a folder");
    // Nobody listens there: a command that has come so far has taken the settings.
    let status = |url: &str| {
        let mut command = bare();
        command
            .env("REDLATCH_NODES", url)
            .args(["--node-timeout", "2s", "status"]);
        command
    };
    for url in [
        "rediss+sentinel://127.0.0.1:1/m",
        "valkeys+sentinel://127.0.0.1:1/m",
        "rediss-sentinel://127.0.0.1:1/m",
        "rediss+cluster://127.0.0.1:1?nodes=1",
        "VALKEYS+CLUSTER://127.0.0.1:1?nodes=1",
        "rediss-cluster://127.0.0.1:1?nodes=1",
        "redis://127.0.0.1:2,rediss://127.0.0.1:1?failover=true",
    ] {
        let sources = [
            end(status(url).arg("--tls-ca").arg(&ca)),
            end(status(url).env("REDLATCH_TLS_CA", &ca)),
            end(status(url).arg("--config").arg(&file)),
        ];
        for Ended {
            code,
            stderr,
            stdout,
        } in sources
        {
            assert!(
                code != 2 && !stderr.contains("encrypted"),
                "{url}: {code} {stderr}{stdout}"
            );
        }
    }
    for url in [
        "redis+sentinel://127.0.0.1:1/m",
        "unix:///rediss+sentinel:/s",
        "redis://127.0.0.1",
    ] {
        let ended = end(status(url).arg("--tls-ca").arg(&ca));
        assert_eq!(ended.code, 2, "{url}");
        assert!(
            ended
                .stderr
                .contains("rediss+sentinel://, rediss+cluster://"),
            "{}",
            ended.stderr
        );
    }
    // What is wrong with a URL is said first.
    let ended = end(status("redis+sentinels://127.0.0.1:1/m")
        .arg("--tls-ca")
        .arg(&ca));
    assert!(
        ended.stderr.contains("unknown scheme 'redis+sentinels'"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_cluster_over_tls_is_adopted_and_locked_with_a_private_authority() {
    let folder = in_memory();
    let ca = folder.path().join("ca.crt");
    fs::write(&ca, Authority::trusted().pem()).expect("a folder");
    let identity = Authority::trusted().issue(Purpose::Server);
    let settings = [
        "--tls-auth-clients",
        "no",
        "--cluster-enabled",
        "yes",
        "--tls-cluster",
        "yes",
    ];
    let server = Server::start_tls(&identity, &settings);
    assert_eq!(
        server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]),
        Value::ok()
    );
    let url = format!(
        "rediss+cluster://127.0.0.1:{}?nodes=1",
        server.secure_port()
    );
    let run = |arguments: &[&str]| {
        let mut command = bare();
        command
            .env("REDLATCH_NODES", &url)
            .args(["--node-timeout", "5s"]);
        end(command.arg("--tls-ca").arg(&ca).args(arguments))
    };
    assert!(
        eventually(LIMIT, || run(&["adopt", "--yes"]).code == 0),
        "{:?}",
        run(&["status"])
    );
    let ended = run(&["run", "--no-wait", "name", "--", "echo", "ran"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (0, "ran\n"),
        "{}",
        ended.stderr
    );
}
