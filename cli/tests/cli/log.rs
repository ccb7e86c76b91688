//! The log of `run` and `lock`: `--verbose` and `--log json`.

use std::io;

use super::loss::{lose, with_full_stderr, with_short_rounds};
use super::program::{Running, end, redlatch};
use super::show::json;
use serde_json::Value;
use support::locks::{LONG, all_nodes_client, take};
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

/// The events of a log in JSON that are about the lock, and not about a node.
fn events(stderr: &str) -> Vec<Value> {
    let lines = stderr.lines().filter(|line| line.starts_with('{'));
    lines
        .map(json)
        .filter(|event| event["node"].is_null())
        .collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["event"].as_str().expect("text"))
        .collect()
}

/// Such as 2026-11-25T01:23:15.271Z.
fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    shape == "0000-00-00T00:00:00.000Z"
}

#[test]
fn a_log_has_a_line_with_a_time_for_each_thing_that_happens_to_the_lock() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let arguments = [
        "run",
        "name",
        "--log",
        "json",
        "--fenced",
        "--ttl",
        "3s",
        "-c",
        "sleep 1.5",
    ];
    let running = Running::start(&mut with_short_rounds(&servers, &arguments));
    await_queued(&servers, "name", 1);
    drop(held);
    let ended = running.end();
    assert_eq!(ended.code, 0);
    let events = events(&ended.stderr);
    for event in &events {
        assert!(event["time"].as_str().is_some_and(is_time), "{event}");
        assert_eq!(event["lock"], "name");
        assert!(event["message"].is_string());
    }
    let kinds = kinds(&events);
    assert_eq!(
        &kinds[..4],
        ["waiting", "waiting", "held", "extended"],
        "{events:?}"
    );
    assert_eq!(kinds.last(), Some(&"released"), "{events:?}");
    assert_eq!(events[1]["place"], 1);
    assert!(
        events[2]["fencing_token"]
            .as_u64()
            .is_some_and(|token| token > 0),
        "{events:?}"
    );
    assert!(
        events[2]["waited_seconds"]
            .as_f64()
            .is_some_and(|waited| waited > 0.0)
    );
}

#[test]
fn lines_for_people_have_the_names_of_all_locks() {
    let servers = Servers::start(3);
    let arguments = ["run", "a\n", "--also", "b", "-v", "--", "echo", "out"];
    let ended = end(&mut redlatch(&servers, &arguments));
    assert_eq!((ended.code, &*ended.stdout), (0, "out\n"));
    for line in ended.stderr.lines() {
        let (time, text) = line.split_once(' ').expect("two words");
        assert!(
            is_time(time) && text.starts_with("redlatch: a\\n, b: "),
            "{line}"
        );
    }
    assert!(ended.stderr.contains(": held, waited "), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(": released after "),
        "{}",
        ended.stderr
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_loss_is_logged() {
    let servers = Servers::start(1);
    let log = ["name", "--log", "json", "--ttl", "7s"];
    for (verb, more) in [
        ("lock", &["--until-signal"][..]),
        ("run", &["-c", "echo ready; exec sleep 60"]),
    ] {
        let arguments = [&[verb], &log[..], more].concat();
        let mut running = Running::start(&mut redlatch(&servers, &arguments));
        running.next_line();
        lose(&servers);
        let ended = running.end();
        assert_eq!(ended.code, 75);
        let events = events(&ended.stderr);
        assert!(kinds(&events).contains(&"lost"), "{}", ended.stderr);
    }
}

#[test]
fn a_long_wait_is_logged_every_half_minute() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = client
        .request("name")
        .owner("me")
        .ttl(LONG)
        .lock()
        .expect("it is free");
    let arguments = ["run", "name", "--log", "json", "--wait", "32s", "true"];
    let ended = end(&mut redlatch(&servers, &arguments));
    assert_eq!(ended.code, 1);
    let events = events(&ended.stderr);
    let long = events
        .iter()
        .find(|event| event["waited_seconds"].as_f64() >= Some(30.0));
    let text = long.and_then(|event| event["message"].as_str());
    assert_eq!(
        text,
        Some("waiting for 30 s: first in line, held by me"),
        "{events:?}"
    );
    drop(held);
}

#[test]
fn a_log_that_nobody_reads_keeps_no_lock() {
    let servers = Servers::start(1);
    let arguments = "--no-restart-guard run name --log json -- echo done";
    let mut running = with_full_stderr(&servers, arguments);
    running.await_line("done");
    await_keys(&servers, &[]);
    // Its lines wait for a reader.
    let mut stderr = running.0.stderr.take().expect("it is piped");
    let _ = io::copy(&mut stderr, &mut io::sink()).expect("a pipe can be read");
    assert_eq!(running.end().code, 0);
}
