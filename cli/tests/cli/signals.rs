//! Signals to `redlatch run`, while it waits and while its command runs, and deaths by SIGKILL.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::program::{Left, Running, child_of, end, redlatch, shell_script};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, holders, take};
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

/// Writes the name of each signal that it gets. It ends by SIGKILL only.
const LOOP: &str = "for s in INT TERM HUP QUIT USR1 USR2; do trap \"echo $s\" $s; done; \
    echo ready; while :; do sleep 0.05; done";

const ALL: [(Signal, &str, i32); 6] = [
    (Signal::INT, "INT", 2),
    (Signal::TERM, "TERM", 15),
    (Signal::HUP, "HUP", 1),
    (Signal::QUIT, "QUIT", 3),
    (Signal::USR1, "USR1", 10),
    (Signal::USR2, "USR2", 12),
];

#[test]
fn signals_are_passed_on_once_and_the_command_decides() {
    let servers = Servers::start(1);
    let mut running = Running::start(&mut redlatch(
        &servers,
        &["run", "name", "--", "sh", "-c", LOOP],
    ));
    running.await_line("ready");
    for (signal, name, _) in ALL {
        running.signal(signal);
        running.await_line(name);
    }
    assert_eq!(holders(&servers, "name"), 1, "it still has the lock");
    kill_process(child_of(Pid::from_child(&running.0)), Signal::KILL).expect("it runs");
    let ended = running.end();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (128 + 9, ""),
        "no signal came twice"
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_command_that_a_signal_ends_is_128_plus_its_number() {
    let servers = Servers::start(1);
    for (signal, _, number) in ALL {
        let arguments = ["run", "name", "--", "sh", "-c", "echo ready; exec sleep 60"];
        let mut running = Running::start(&mut redlatch(&servers, &arguments));
        running.await_line("ready");
        running.signal(signal);
        let ended = running.end();
        assert_eq!((ended.code, &*ended.stderr), (128 + number, ""));
        await_keys(&servers, &[]);
    }
}

#[test]
fn a_signal_to_the_whole_group_arrives_once() {
    use std::os::unix::process::CommandExt;
    let servers = Servers::start(1);
    let mut command = redlatch(&servers, &["run", "name", "--", "sh", "-c", LOOP]);
    let mut running = Running::start(command.process_group(0));
    running.await_line("ready");
    let group = Pid::from_child(&running.0);
    for (signal, name, _) in ALL {
        kill_process_group(group, signal).expect("it is our group");
        running.await_line(name);
    }
    kill_process(child_of(Pid::from_child(&running.0)), Signal::KILL).expect("it runs");
    assert_eq!(running.end().stdout, "", "no signal came twice");
}

#[test]
fn a_signal_ends_the_waiting_and_leaves_nothing_in_the_queue() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    for (signal, _, number) in &ALL[..4] {
        let arguments = ["run", "name", "--", "echo", "never"];
        let running = Running::start(&mut redlatch(&servers, &arguments));
        await_queued(&servers, "name", 1);
        running.signal(*signal);
        let ended = running.end();
        assert_eq!(
            (ended.code, &*ended.stdout, &*ended.stderr),
            (128 + number, "", "")
        );
        await_queued(&servers, "name", 0);
    }
    let arguments = ["run", "name", "--", "echo", "served"];
    let running = Running::start(&mut redlatch(&servers, &arguments));
    await_queued(&servers, "name", 1);
    running.signal(Signal::USR1);
    thread::sleep(Duration::from_secs(2)); // later it is for the command
    drop(held);
    let ended = running.end();
    assert_eq!(
        (ended.code, &*ended.stdout),
        (0, "served\n"),
        "{}",
        ended.stderr
    );
    await_keys(&servers, &[]);
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let servers = Servers::start(1);
    let script = format!(
        "trap '' HUP; exec {} --no-restart-guard run name -- sh -c 'echo ready; kill -HUP $$; \
         read x; exit 5'",
        env!("CARGO_BIN_EXE_redlatch")
    );
    let mut command = shell_script(&servers, &script);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    running.await_line("ready");
    running.signal(Signal::HUP);
    drop(running.0.stdin.take());
    assert_eq!(running.end().code, 5);
}

#[test]
fn the_command_blocks_the_signals_that_were_blocked_and_no_others() {
    const TSTP: u64 = 1 << (20 - 1);
    let servers = Servers::start(1);
    for (option, expected) in [("--block-signal=INT", 0), ("--block-signal=TSTP", TSTP)] {
        let mut command = Command::new("env");
        command.args([option, env!("CARGO_BIN_EXE_redlatch"), "--no-restart-guard"]);
        command.args(["run", "name", "--", "cat", "/proc/self/status"]);
        let ended = end(command.env("REDLATCH_NODES", servers.urls().join(",")));
        let line = ended
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("SigBlk:"));
        let blocked = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
        assert_eq!(
            blocked.map(|blocked| blocked & TSTP),
            Some(expected),
            "{ended:?}"
        );
    }
}

#[test]
fn the_exit_code_is_the_commands_even_if_children_were_ignored() {
    let servers = Servers::start(1);
    // The first process of a container may start it so.
    let mut command = Command::new("env");
    let redlatch = [env!("CARGO_BIN_EXE_redlatch"), "--no-restart-guard"];
    command.arg("--ignore-signal=CHLD").args(redlatch);
    command.args(["run", "name", "--", "sh", "-c", "exit 7"]);
    let ended = end(command.env("REDLATCH_NODES", servers.urls().join(",")));
    assert_eq!((ended.code, &*ended.stderr), (7, ""));
    await_keys(&servers, &[]);
}

#[test]
fn when_it_is_killed_the_command_dies_and_the_lock_ends_with_its_ttl() {
    let servers = Servers::start(3);
    let arguments = [
        "run",
        "name",
        "--ttl",
        "8s",
        "--",
        "sh",
        "-c",
        "echo $$; exec sleep 60",
    ];
    let mut running = Running::start(&mut redlatch(&servers, &arguments));
    let child = Left::parse(&running.next_line());
    assert!(!child.has_ended());
    let start = Instant::now();
    running.0.kill().expect("it is our child");
    running.0.wait().expect("it was killed");
    if cfg!(target_os = "linux") {
        assert!(
            eventually(LIMIT, || child.has_ended()),
            "the command lives on"
        );
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
    }
    let ended = end(&mut redlatch(&servers, &["run", "name", "--", "true"]));
    assert_eq!(ended.code, 0);
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    await_keys(&servers, &[]);
}
