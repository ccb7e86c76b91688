//! The command on a ZooKeeper ensemble: one server inside the test's process, and a real one where
//! it is installed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::program::{Running, bare, end};
use redlatch::LockClient;
use redlatch::embedded::Ensemble;
use serde_json::Value;
use support::eventually;
use support::locks::{LIMIT, LONG};

fn on(url: &str, arguments: &[&str]) -> Command {
    let mut command = bare();
    command.env("REDLATCH_NODES", url).args(arguments);
    command
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Everything the command does, on the ensemble at this URL.
fn all_subcommands(url: &str) {
    let token = run_fenced(url);
    let client = LockClient::new([url]).expect("a good URL");
    let lock = client
        .request("job")
        .ttl(LONG)
        .owner("a test")
        .lock()
        .expect("it is free");
    look(url);
    hold_several(url, token);
    refuse_what_ends_with_the_session(url);
    release_by_force(url, &client);
    assert!(lock.wait_lost(LIMIT).is_some(), "its holder learns of it");
}

/// Returns the fencing token of `job`.
fn run_fenced(url: &str) -> u64 {
    let script = "echo token $REDLATCH_FENCING_TOKEN";
    let ended = end(&mut on(
        url,
        &["run", "--fenced", "job", "--", "sh", "-c", script],
    ));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let token = ended
        .stdout
        .trim()
        .strip_prefix("token ")
        .and_then(|it| it.parse::<u64>().ok());
    assert!(token > Some(0), "{}", ended.stdout);
    token.unwrap_or_default()
}

/// While `job` is held.
fn look(url: &str) {
    let busy = end(&mut on(url, &["run", "--no-wait", "job", "--", "true"]));
    assert_eq!((busy.code, &*busy.stdout), (1, ""), "{}", busy.stderr);

    let seen = json(&end(&mut on(url, &["inspect", "job", "--json"])).stdout);
    assert!(seen.to_string().contains("a test"), "{seen}");
    let listed = end(&mut on(url, &["top"]));
    assert!(
        listed.stdout.lines().any(|line| line.contains("job")),
        "{}",
        listed.stdout
    );
    let status = json(&end(&mut on(url, &["status", "--json"])).stdout);
    assert_eq!(status[0]["up"], true, "{status}");
    // On a busy machine, an answer may take longer than a fifth of the default.
    let examined = end(&mut on(
        url,
        &["--node-timeout", "2s", "doctor", "--lock", "other"],
    ));
    assert_eq!(examined.code, 0, "{}", examined.stdout);
    assert!(
        examined.stdout.contains("other: acquired in "),
        "{}",
        examined.stdout
    );
}

/// While `job` is held, and was with this fencing token before.
fn hold_several(url: &str, token: u64) {
    let both = [
        "lock", "other", "--also", "third", "--json", "--log", "json",
    ];
    let mut holding = Running::start(on(url, &both).stdin(Stdio::piped()));
    let object = json(&holding.next_line());
    drop(holding.0.stdin.take());
    let held = holding.end();
    assert_eq!(held.code, 0, "{}", held.stderr);
    assert!(object["fencing_token"].as_u64() > Some(token), "{object}");
    assert!(
        held.stderr.contains("\"event\":\"released\""),
        "{}",
        held.stderr
    );
    let refused = end(&mut on(
        url,
        &["lock", "other", "--also", "job", "-n", "--until-signal"],
    ));
    assert_eq!(
        (refused.code, &*refused.stdout),
        (1, ""),
        "{}",
        refused.stderr
    );
    assert!(
        refused
            .stderr
            .contains("job: another client holds the lock: a test"),
        "{refused:?}"
    );
    let quiet = |name: &str| end(&mut on(url, &["inspect", "-q", name])).code;
    assert_eq!((quiet("job"), quiet("other")), (1, 0));
}

fn refuse_what_ends_with_the_session(url: &str) {
    let refused = end(&mut on(url, &["acquire", "third"]));
    assert_eq!(
        (refused.code, &*refused.stdout),
        (2, ""),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("ends with the session"),
        "{}",
        refused.stderr
    );
}

/// A waiter for `job` gets it.
fn release_by_force(url: &str, client: &LockClient) {
    let waiting = Running::start(&mut on(url, &["run", "job", "--", "echo", "after"]));
    let waits = || {
        client
            .inspect("job")
            .is_ok_and(|seen| seen.waiter_count == 1)
    };
    assert!(eventually(LIMIT, waits));
    let ended = end(&mut on(url, &["release", "job", "--force", "--yes"]));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let ended = waiting.end();
    assert_eq!((ended.code, &*ended.stdout), (0, "after\n"));
}

#[test]
fn all_subcommands_work_on_an_ensemble() {
    let ensemble = Ensemble::start().unwrap();
    all_subcommands(&format!("{}/locks", ensemble.url()));
}

#[test]
fn all_subcommands_work_on_a_real_server() {
    let zookeeper = support::needs_zookeeper!();
    all_subcommands(&zookeeper.shared().url());
}

#[test]
fn the_session_timeout_is_an_option_for_ensembles_alone() {
    let ensemble = Ensemble::start().unwrap();
    let run = ["--session-timeout", "4s", "run", "job", "--", "true"];
    assert_eq!(end(&mut on(&ensemble.url(), &run)).code, 0);
    let refused = end(&mut on("redis://127.0.0.1:1", &run));
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("session_timeout"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_command_is_stopped_when_its_session_is_lost() {
    let ensemble = Ensemble::start().unwrap();
    let script = "echo started; sleep 60";
    let arguments = [
        "--session-timeout",
        "1s",
        "run",
        "job",
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut running = Running::start(&mut on(&ensemble.url(), &arguments));
    running.await_line("started");
    ensemble.pause();
    let ended = running.end();
    assert_ne!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("lost"), "{}", ended.stderr);
    ensemble.resume();
    let client = LockClient::new([ensemble.url()]).unwrap();
    assert!(
        client
            .request("job")
            .ttl(Duration::from_secs(5))
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
}

/// The time from when the ensemble is frozen to the end of the command.
fn frozen(arguments: &[&str]) -> (i32, Duration) {
    let ensemble = Ensemble::start().expect("it starts");
    let arguments = [&["--session-timeout", "6s"], arguments].concat();
    let mut running = Running::start(on(&ensemble.url(), &arguments).stdin(Stdio::piped()));
    running.next_line();
    ensemble.pause();
    let start = Instant::now();
    drop(running.0.stdin.take());
    let ended = running.end();
    (ended.code, start.elapsed())
}

#[test]
fn the_end_needs_no_answer_of_an_ensemble_that_is_frozen() {
    let stopped = ["run", "job", "--", "sh", "-c", "echo started; sleep 60"];
    let stubborn = [
        "run",
        "job",
        "--",
        "sh",
        "-c",
        "trap '' TERM; echo started; sleep 60",
    ];
    let held = ["lock", "job", "--until-signal"];
    let ended = [
        "run",
        "job",
        "--",
        "sh",
        "-c",
        "echo started; read line; exit 7",
    ];
    for (arguments, code) in [
        (&stopped[..], 75),
        (&stubborn, 75),
        (&held, 75),
        (&ended, 7),
    ] {
        let (seen, took) = frozen(arguments);
        assert_eq!(seen, code, "{arguments:?}");
        // The session lives for 6 s at most.
        assert!(
            took < Duration::from_millis(7_500),
            "{arguments:?}: {took:?}"
        );
    }
}

#[test]
fn a_period_that_no_lock_remembers_is_refused_in_words_of_the_command() {
    let ensemble = Ensemble::start().expect("loopback");
    let command = ["run", "job", "--once-per", "1d", "--", "true"];
    let refused = end(&mut on(&ensemble.url(), &command));
    assert_eq!(refused.code, 2, "{refused:?}");
    let text = "redlatch: --once-per 1 d 0 h is longer than a lock can be held on ZooKeeper: ";
    assert!(refused.stderr.starts_with(text), "{refused:?}");
}
