//! The lock is lost while the command runs.

use std::io;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::program::{Ended, Left, Running, bare, redlatch, shell_script};
use rustix::process::test_kill_process;
use support::eventually;
use support::locks::{LIMIT, all_nodes_client, holders, pause, resume};
use support::servers::Servers;
use support::waiters::await_keys;

/// As [`redlatch`], with rounds that fit into a short ttl.
pub(crate) fn with_short_rounds(servers: &Servers, arguments: &[&str]) -> Command {
    let mut command = bare();
    command.env("REDLATCH_NODES", servers.urls().join(","));
    command
        .args(["--no-restart-guard", "--node-timeout", "300ms"])
        .args(arguments);
    command
}

/// Waits until all nodes have the lock, and removes it.
#[track_caller]
pub(crate) fn lose(servers: &Servers) {
    let client = all_nodes_client(servers.urls());
    assert!(eventually(LIMIT, || holders(servers, "name") == servers.len()));
    let seen = client.inspect("name").expect("a majority answers");
    assert_eq!(client.force_release(&seen), Ok(true));
}

/// Runs this until a majority of the servers, which stops when the command has begun, has lost the
/// lock. Returns how it ended, and how long after the stop.
#[track_caller]
fn run_until_lost(servers: &Servers, arguments: &[&str]) -> (Ended, Duration) {
    let mut running = Running::start(&mut with_short_rounds(servers, arguments));
    running.await_line("ready");
    let start = Instant::now();
    pause(servers, 2);
    let ended = running.end();
    let took = start.elapsed();
    resume(servers, 2);
    (ended, took)
}

#[test]
fn a_command_that_ends_on_sigterm_has_ended_before_the_validity_does() {
    let servers = Servers::start(3);
    let script = "trap 'echo TERM; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let arguments = [
        "run", "name", "--ttl", "6s", "--grace", "2s", "--", "sh", "-c", script,
    ];
    let (ended, took) = run_until_lost(&servers, &arguments);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (75, "TERM\n"),
        "{}",
        ended.stderr
    );
    for text in [
        "is being lost: stopping the command",
        "was lost, and the command was stopped",
    ] {
        assert!(
            ended.stderr.contains(&format!("name: the lock {text}")),
            "{}",
            ended.stderr
        );
    }
    // It had between 4 and 6 s of validity. Its last two are for the command; the release is not
    // answered, for 0.3 s.
    assert!(
        took > Duration::from_secs(1) && took < Duration::from_secs(6),
        "{took:?}"
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_with_all_that_it_started() {
    let servers = Servers::start(3);
    // The pipe of stdout stays open as long as any of them lives.
    let script = "trap '' TERM; sh -c \"trap '' TERM; sleep 60\" & echo ready; sleep 60";
    let arguments = [
        "run", "name", "--ttl", "3s", "--grace", "500ms", "--", "sh", "-c", script,
    ];
    let (ended, took) = run_until_lost(&servers, &arguments);
    assert_eq!(ended.code, 75, "{}", ended.stderr);
    assert!(took < Duration::from_secs(8), "{took:?}");
    await_keys(&servers, &[]);
}

/// Runs a script of the shell whose stderr is a full pipe that nobody reads.
pub(crate) fn with_full_stderr(servers: &Servers, arguments: &str) -> Running {
    let redlatch = env!("CARGO_BIN_EXE_redlatch");
    // As much as a pipe holds.
    let script = format!("head -c 65536 /dev/zero >&2; exec {redlatch} {arguments}");
    Running::start(&mut shell_script(servers, &script))
}

#[test]
fn a_lost_lock_stops_the_command_even_if_nobody_reads_stderr() {
    let servers = Servers::start(1);
    for command in [
        "sleep 60",
        "sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'",
    ] {
        let options = "--no-restart-guard run name --ttl 3s --grace 300ms";
        let mut running = with_full_stderr(
            &servers,
            &format!("{options} -- sh -c 'echo $$; exec \"$@\"' - {command}"),
        );
        let child = Left::parse(&running.next_line());
        lose(&servers);
        let has_ended = eventually(Duration::from_secs(10), || {
            test_kill_process(child.0).is_err()
        });
        assert!(has_ended, "the command runs on without the lock: {command}");
        // Its last words wait for a reader.
        let mut stderr = running.0.stderr.take().expect("it is piped");
        let _ = io::copy(&mut stderr, &mut io::sink()).expect("a pipe can be read");
        assert_eq!(running.end().code, 75);
    }
}

#[test]
fn no_majority_for_a_while_stops_nothing() {
    let servers = Servers::start(3);
    let script = "echo ready; sleep 4; echo done";
    let arguments = [
        "run", "name", "--ttl", "12s", "--grace", "1s", "--", "sh", "-c", script,
    ];
    let mut running = Running::start(&mut with_short_rounds(&servers, &arguments));
    running.await_line("ready");
    pause(&servers, 2);
    thread::sleep(Duration::from_secs(3));
    resume(&servers, 2);
    running.await_line("done");
    assert_eq!(running.end().code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn a_lock_that_is_released_by_force_stops_the_command() {
    let servers = Servers::start(3);
    let arguments = [
        "run",
        "name",
        "--ttl",
        "7s",
        "--",
        "sh",
        "-c",
        "echo ready; exec sleep 60",
    ];
    let mut running = Running::start(&mut redlatch(&servers, &arguments));
    running.await_line("ready");
    lose(&servers);
    let ended = running.end();
    assert_eq!(ended.code, 75, "{}", ended.stderr);
    await_keys(&servers, &[]);
}

#[test]
fn the_longest_hold_ends_the_command() {
    let servers = Servers::start(1);
    let limits = ["--ttl", "2s", "--max-hold", "3s", "--grace", "300ms"];
    let arguments = [&["run", "name"], &limits[..], &["--", "sleep", "60"]].concat();
    let start = Instant::now();
    let ended = Running::start(&mut with_short_rounds(&servers, &arguments)).end();
    assert_eq!(ended.code, 75, "{}", ended.stderr);
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_command_for_the_loss_is_started_before_the_command_is_stopped() {
    let servers = Servers::start(3);
    let script = "trap 'echo TERM; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    // Longer than the grace, and as others see it: the lock is still held.
    let told = "echo \"lost $REDLATCH_LOCK\"; read x || sleep 3; echo told; exit 3";
    let arguments = [
        "run",
        "name",
        "--ttl",
        "7s",
        "--grace",
        "1s",
        "--on-lost",
        told,
    ];
    let arguments = [&arguments[..], &["--", "sh", "-c", script]].concat();
    let (ended, _) = run_until_lost(&servers, &arguments);
    assert_eq!(ended.code, 75, "{}", ended.stderr);
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    // Both run at the same time.
    lines.sort_unstable();
    assert_eq!(lines, ["TERM", "lost name", "told"]);
    assert!(
        ended.stderr.contains("redlatch: --on-lost: exit code 3\n"),
        "{}",
        ended.stderr
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_command_for_the_loss_that_hangs_is_killed_and_without_a_loss_there_is_none() {
    let servers = Servers::start(1);
    let arguments = ["run", "name", "--on-lost", "echo lost", "true"];
    let ended = Running::start(&mut redlatch(&servers, &arguments)).end();
    assert_eq!((ended.code, &*ended.stdout), (0, ""));
    let limits = ["--ttl", "2s", "--max-hold", "3s", "--grace", "300ms"];
    // The pipe of stdout stays open as long as one of them runs.
    let arguments = [
        &["run", "name", "--on-lost", "sleep 300 & sleep 300"],
        &limits[..],
        &["sleep", "300"],
    ];
    let mut running = Running::start(&mut with_short_rounds(&servers, &arguments.concat()));
    assert_eq!(running.status().code(), Some(75));
    let ended = running.end();
    assert!(
        ended
            .stderr
            .contains("redlatch: --on-lost: killed after 10 s\n"),
        "{ended:?}"
    );
}

#[test]
fn a_loss_that_is_noticed_after_the_end_of_the_command_is_told_too() {
    let servers = Servers::start(1);
    let mut command = redlatch(
        &servers,
        &["run", "name", "--ttl", "60s", "--on-lost", "echo lost"],
    );
    let mut running = Running::start(
        command
            .args(["-c", "echo ready; read x"])
            .stdin(Stdio::piped()),
    );
    running.await_line("ready");
    lose(&servers);
    drop(running.0.stdin.take());
    let ended = running.end();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (75, "lost\n"),
        "{}",
        ended.stderr
    );
}
