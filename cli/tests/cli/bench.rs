//! `redlatch bench`.

use std::fs;
use std::thread;
use std::time::Duration;

use super::program::{Running, bare, end, redlatch};
use rustix::process::Signal;
use support::eventually;
use support::locks::{LIMIT, calls, pause, resume};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::{await_keys, keys};

#[test]
fn without_nodes_it_ends_and_a_signal_ends_it_while_it_waits_for_them() {
    let servers = Servers::start(3);
    let arguments = ["bench", "--handoffs", "1000000", "--rounds", "1"];
    let mut command = bare();
    command
        .env("REDLATCH_NODES", servers.urls().join(","))
        .arg("--no-restart-guard");
    let running = Running::start(command.args(arguments));
    // It hands the lock over when one of its clients waits.
    let waits = || keys(&servers[0]).iter().any(|key| key.contains("queue"));
    assert!(eventually(LIMIT, waits));
    pause(&servers, 2);
    thread::sleep(Duration::from_millis(300));
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    let ended = end(bare()
        .env("REDLATCH_NODES", servers.urls().join(","))
        .arg("bench"));
    resume(&servers, 2);
    assert_eq!((ended.code, &*ended.stdout), (69, ""));
    assert!(
        ended.stderr.starts_with("redlatch: no quorum: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn it_measures_rounds_and_hand_overs_and_leaves_nothing() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("chart.svg");
    let counts = ["bench", "--rounds", "50", "--handoffs", "20"];
    let mut command = redlatch(&servers, &counts);
    let ended = end(command.arg("--svg").arg(&file));
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    for text in [
        "acquire (50 times): median ",
        "release (50 times): ",
        "handoff (2",
        "█",
    ] {
        assert!(ended.stdout.contains(text), "{text}: {}", ended.stdout);
    }
    let svg = fs::read_to_string(&file).expect("it was written");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert_eq!(svg.matches("class=\"title\"").count(), 3);

    let ended = end(redlatch(&servers, &counts).arg("--json"));
    let figures: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(figures["acquire"]["count"], 50);
    assert!(
        figures["handoff"]["p50_micros"]
            .as_f64()
            .is_some_and(|micros| micros > 0.0)
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_signal_ends_it_and_nothing_is_left() {
    let servers = Servers::start(1);
    let mut command = redlatch(&servers, &["bench", "--rounds", "100000000"]);
    let running = Running::start(&mut command);
    assert!(eventually(LIMIT, || !keys(&servers[0]).is_empty()));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (130, ""));
    await_keys(&servers, &[]);
}

#[test]
fn rounds_that_time_out_are_counted_and_end_nothing() {
    let servers = Servers::start(1);
    let mut command = bare();
    command.env("REDLATCH_NODES", servers.urls().join(","));
    command.args(["--no-restart-guard", "--node-timeout", "300ms"]);
    let counts = ["bench", "--rounds", "20000", "--handoffs", "20", "--json"];
    let mut running = Running::start(command.args(counts));
    assert!(eventually(LIMIT, || calls(&servers[0], "set") > 100));
    let mut pauses = 0;
    while running
        .0
        .try_wait()
        .expect("a child can be asked")
        .is_none()
        && pauses < 4
    {
        thread::sleep(Duration::from_millis(100));
        pause(&servers, 1);
        // A round waits for nine times as long for the only node, whose connection is given up soon
        // after that.
        thread::sleep(Duration::from_millis(3_400));
        resume(&servers, 1);
        pauses += 1;
    }
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let figures: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let failed = figures["failed_rounds"].as_u64().expect("a number");
    assert_eq!(figures["acquire"]["count"].as_u64(), Some(20_000 - failed));
    assert!(failed > 0, "in {pauses} pauses");
}

#[test]
fn it_needs_numbers_and_a_file_that_can_be_written() {
    let servers = Servers::start(1);
    let arguments = [
        "bench",
        "--rounds",
        "1",
        "--handoffs",
        "1",
        "--svg",
        "/nowhere/chart.svg",
    ];
    let ended = end(&mut redlatch(&servers, &arguments));
    assert_eq!(ended.code, 70);
    assert!(
        ended.stderr.contains("/nowhere/chart.svg: "),
        "{}",
        ended.stderr
    );
    assert_eq!(
        end(&mut redlatch(&servers, &["bench", "--rounds", "many"])).code,
        2
    );
}
