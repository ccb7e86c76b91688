//! The command over links whose round trip is a large part of a round, or longer: each run makes
//! its connections anew.

use std::process::Command;
use std::time::Duration;

use super::program::{bare, end};
use support::proxy::{Mode, Proxy};
use support::servers::Servers;

fn delayed(proxy: &Proxy, round_trip: u64) {
    let each_way = Duration::from_millis(round_trip / 2);
    proxy.set(Mode::Delay {
        to_server: each_way,
        to_client: each_way,
    });
}

/// Runs the command over such links, with the default settings.
fn works(round_trip: u64, proxies: &[Proxy], command: impl Fn() -> Command) {
    proxies.iter().for_each(|proxy| delayed(proxy, round_trip));
    for index in 0..3 {
        let name = format!("cold {round_trip} {index}");
        let ended = end(command().args(["run", "--no-wait", &name, "--", "echo", "ran"]));
        assert_eq!(
            (ended.code, &*ended.stdout),
            (0, "ran\n"),
            "{}",
            ended.stderr
        );
        let ended = end(command().args(["inspect", &name]));
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        let ended = end(command().arg("status"));
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn every_run_reaches_nodes_that_are_far_away() {
    let servers = Servers::start(3);
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::start(server.port()))
        .collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let command = || {
        let mut command = bare();
        command
            .arg("--no-restart-guard")
            .env("REDLATCH_NODES", urls.join(","));
        command
    };
    works(30, &proxies, command);
    works(150, &proxies, command);
}

#[cfg(target_os = "linux")]
#[test]
fn every_run_reaches_nodes_that_are_far_away_over_tls() {
    use support::certificates::{Authority, Purpose};
    use support::program::in_memory;
    use support::redis::Server;

    let folder = in_memory();
    let identity = Authority::trusted().issue(Purpose::Server);
    let servers: Vec<_> = (0..3)
        .map(|_| Server::start_tls(&identity, &["--tls-auth-clients", "no"]))
        .collect();
    let ca = folder.path().join("ca.crt");
    std::fs::write(&ca, Authority::trusted().pem()).expect("a folder");
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::before_tls(server.secure_port()))
        .collect();
    let urls: Vec<_> = proxies
        .iter()
        .map(|proxy| format!("rediss://127.0.0.1:{}", proxy.port()))
        .collect();
    let command = || {
        let mut command = bare();
        command.arg("--no-restart-guard").arg("--tls-ca").arg(&ca);
        command.env("REDLATCH_NODES", urls.join(","));
        command
    };
    works(30, &proxies, command);
    works(150, &proxies, command);
}
