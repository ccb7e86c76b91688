//! `redlatch doctor`.

use std::process::Command;
use std::time::Duration;

use super::program::{bare, end, guarded, redlatch};
use serde_json::Value;
use support::cli::Value as Reply;
use support::locks::{LONG, all_nodes_client, take};
use support::proxy::{Mode, Proxy};
use support::redis::Server;
use support::servers::Servers;

/// A server that forgets nothing.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// What it finds, as `level node check`, and its exit code.
#[track_caller]
fn found(command: &mut Command) -> (Vec<String>, Vec<Value>, i32) {
    let ended = end(command.arg("--json"));
    assert_eq!(ended.stderr, "");
    let list: Vec<Value> = serde_json::from_str(&ended.stdout).expect("JSON");
    let word = |finding: &Value, name: &str| finding[name].as_str().unwrap_or("all").to_owned();
    let line = |it: &Value| {
        format!(
            "{} {} {}",
            word(it, "level"),
            word(it, "node"),
            word(it, "check")
        )
    };
    (list.iter().map(line).collect(), list, ended.code)
}

#[track_caller]
fn text(list: &[Value], level: &str, check: &str) -> String {
    let found = list
        .iter()
        .find(|it| it["level"] == level && it["check"] == check);
    found.unwrap_or_else(|| panic!("no {level} of {check}: {list:?}"))["text"].to_string()
}

#[test]
fn all_is_well_with_a_node_that_forgets_nothing() {
    let servers = Servers::start_with(1, &DURABLE);
    let url = servers.urls()[0].clone();
    let (lines, list, code) = found(&mut redlatch(&servers, &["doctor"]));
    assert_eq!(code, 0, "{list:?}");
    for check in ["connection", "round_trip", "crash", "memory", "clock"] {
        assert!(
            lines.contains(&format!("ok {url}/0 {check}")),
            "{check}: {lines:?}"
        );
    }
    assert_eq!(lines.last().map(String::as_str), Some("ok all quorum"));
    assert_eq!(text(&list, "ok", "crash"), "\"a crash costs nothing\"");
    let shown = |more: &[&str]| {
        let ended = end(&mut redlatch(&servers, &[&["doctor"], more].concat()));
        let lines = ended.stdout.lines();
        let rows = lines.map(|line| {
            line.split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" ")
        });
        (rows.collect::<Vec<_>>(), ended.stdout)
    };
    let (rows, _) = shown(&[]);
    assert_eq!(
        rows,
        ["LEVEL NODE CHECK", "ok all quorum"],
        "what is well is not listed"
    );
    let (rows, text) = shown(&["-v"]);
    assert_eq!(rows[1], format!("ok {url}/0 connection"));
    let memory = text
        .lines()
        .find(|line| line.contains("memory"))
        .expect("a line");
    assert!(memory.contains("iB used, without a limit"), "{memory}");
    let clock = text
        .lines()
        .find(|line| line.contains("clock"))
        .expect("a line");
    assert!(
        clock.ends_with(" µs)") || clock.ends_with(" ms)"),
        "{clock}"
    );
    assert_eq!(
        servers[0].command(&["DBSIZE"]),
        Reply::Integer(0),
        "it changes nothing"
    );
}

#[test]
fn an_answer_that_takes_more_than_a_fifth_of_the_node_timeout_is_warned_of() {
    let servers = Servers::start(1);
    let proxy = Proxy::start(servers[0].port());
    let each_way = Duration::from_millis(150);
    proxy.set(Mode::Delay {
        to_server: each_way,
        to_client: each_way,
    });
    for (timeout, level) in [("1s", "warning"), ("60s", "ok")] {
        let mut command = bare();
        command.env("REDLATCH_NODES", proxy.url());
        command.args(["--no-restart-guard", "--node-timeout", timeout, "doctor"]);
        let (_, list, _) = found(&mut command);
        assert!(
            text(&list, level, "round_trip").contains("an answer took "),
            "{list:?}"
        );
    }
}

#[test]
fn warnings_and_lost_nodes_have_exit_codes_for_monitoring() {
    let mut servers = Servers::start(3);
    let (lines, list, code) = found(&mut redlatch(&servers, &["doctor"]));
    assert_eq!(code, 9, "{list:?}");
    let urls = servers.urls();
    assert!(
        lines.contains(&format!("warning {}/0 same_host", urls[1])),
        "{lines:?}"
    );
    assert!(
        text(&list, "warning", "forgets").contains("a crash costs everything"),
        "{list:?}"
    );
    let (lines, list, code) = found(&mut guarded(&servers, &["doctor"]));
    assert_eq!(code, 71, "{list:?}");
    assert!(
        lines.contains(&format!("warning {}/0 quarantine", urls[0])),
        "{lines:?}"
    );
    assert!(
        text(&list, "error", "quorum").contains("0 of 3 nodes grant locks"),
        "{list:?}"
    );
    servers[0].kill();
    let (lines, list, code) = found(&mut redlatch(&servers, &["doctor"]));
    assert_eq!(code, 9, "{list:?}");
    assert!(
        lines.contains(&format!("error {}/0 connection", urls[0])),
        "{lines:?}"
    );
    assert!(
        text(&list, "warning", "quorum").contains("the next node"),
        "{list:?}"
    );
    servers[1].kill();
    let (_, list, code) = found(&mut redlatch(&servers, &["doctor"]));
    assert_eq!(code, 69, "{list:?}");
    assert!(
        text(&list, "error", "quorum").contains("1 of 3 nodes grant locks"),
        "{list:?}"
    );
}

#[test]
fn the_lock_that_is_named_shows_whether_the_rights_suffice() {
    support::needs!(Tracking);
    let servers = Servers::start_with(1, &DURABLE);
    let lock = ["doctor", "--lock", "orders:1"];
    let (lines, list, code) = found(&mut redlatch(&servers, &lock));
    assert_eq!(code, 0, "{list:?}");
    assert!(
        text(&list, "ok", "lock").contains("orders:1: acquired in "),
        "{list:?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("ok ") && line.ends_with(" queue"))
    );
    assert_eq!(
        servers[0].command(&["EXISTS", "orders:1"]),
        Reply::Integer(0)
    );
    let held = take(&all_nodes_client(servers.urls()), "orders:1", LONG);
    let (_, list, code) = found(&mut redlatch(&servers, &lock));
    assert_eq!(code, 0, "{list:?}");
    assert!(
        text(&list, "ok", "lock").contains("others have it"),
        "{list:?}"
    );
    drop(held);
}

/// The command as a user with these rights.
fn as_user(server: &Server, rights: &str, arguments: &[&str]) -> Command {
    let user = format!("ACL SETUSER app on >pw {rights}");
    let user: Vec<_> = user.split_whitespace().collect();
    assert_eq!(server.command(&user), Reply::ok());
    let mut command = bare();
    command.env("REDLATCH_NODES", server.url_of("app:pw"));
    command
        .args(["--no-restart-guard", "--node-timeout", "2s"])
        .args(arguments);
    command
}

#[test]
fn what_the_user_may_not_do_is_found() {
    support::needs!(Tracking);
    let server = Server::start(&DURABLE);
    let all = "~orders:* &redlatch:* +@all";
    let (_, list, code) = found(&mut as_user(
        &server,
        all,
        &["doctor", "--lock", "orders:1"],
    ));
    assert_eq!(code, 0, "{list:?}");
    // The key that it reads by default is out of reach of this user.
    let (_, list, code) = found(&mut as_user(&server, all, &["doctor"]));
    assert_eq!(code, 69, "{list:?}");
    assert!(
        text(&list, "error", "rights").contains("name one with --lock"),
        "{list:?}"
    );
    for (rights, level, check, words) in [
        ("-set", "error", "rights", "orders:1 is refused: "),
        ("-config", "warning", "crash", "+config|get"),
        ("-info", "warning", "rights", "+info"),
        ("-time", "warning", "rights", "+time"),
        ("-zadd", "warning", "queue", "it has no queue"),
        ("-subscribe", "warning", "queue", "does not tell them"),
    ] {
        let rights = format!("{all} {rights}");
        let lock = ["doctor", "--lock", "orders:1"];
        let (_, list, code) = found(&mut as_user(&server, &rights, &lock));
        assert!(
            text(&list, level, check).contains(words),
            "{rights}: {list:?}"
        );
        assert_eq!(
            code,
            if level == "error" { 69 } else { 9 },
            "{rights}: {list:?}"
        );
        assert!(!format!("{list:?}").contains("pw"), "no password: {list:?}");
    }
}

#[test]
fn a_node_without_a_vote_on_registers_is_found() {
    let servers = Servers::start_with(3, &DURABLE);
    let client = all_nodes_client(servers.urls());
    let is_of_registers = |line: &String| line.ends_with(" registers");
    let (lines, ..) = found(&mut redlatch(&servers, &["doctor"]));
    assert!(
        !lines.iter().any(is_of_registers),
        "nobody wants any: {lines:?}"
    );
    client
        .registers()
        .form(false)
        .expect("the nodes are durable");
    servers[2].command(&["FLUSHALL"]);
    let (lines, list, code) = found(&mut redlatch(&servers, &["doctor"]));
    let votes: Vec<_> = lines.iter().filter(|line| is_of_registers(line)).collect();
    let urls = servers.urls();
    let expected = [("ok", 0), ("ok", 1), ("warning", 2)]
        .map(|(level, it)| format!("{level} {}/0 registers", urls[it]));
    assert_eq!(votes, expected.iter().collect::<Vec<_>>());
    assert!(
        text(&list, "warning", "registers").contains("registers repair"),
        "{list:?}"
    );
    assert_eq!(code, 9);
}
