//! The command as the first process of a container: it gets no signal that it does not catch, and
//! is the parent of what others leave behind.

use std::process::Command;

use super::program::{Running, child_of};
use rustix::process::{Pid, Signal, kill_process};
use support::servers::Servers;
use support::waiters::await_keys;

/// The command in a pid namespace of its own. `None` where there is none to be had.
fn contained(servers: &Servers, arguments: &[&str]) -> Option<Running> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]);
        command
    };
    if !unshare()
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("not run: no pid namespaces here");
        return None;
    }
    let mut command = unshare();
    command.args([
        env!("CARGO_BIN_EXE_redlatch"),
        "--no-restart-guard",
        "--node-timeout",
        "2s",
    ]);
    command
        .args(arguments)
        .env("REDLATCH_NODES", servers.urls().join(","));
    Some(Running::start(&mut command))
}

#[test]
fn a_signal_ends_every_subcommand() {
    let servers = Servers::start(1);
    for (arguments, text) in [
        (&["exporter", "--listen", "127.0.0.1:0"][..], "/metrics\n"),
        (&["status", "--watch"], "NODE"),
        (&["top", "--watch"], "0 locks, 0 waiting\n"),
        (&["lock", "name", "--until-signal"], "\n"),
    ] {
        for signal in [Signal::TERM, Signal::INT] {
            let Some(mut running) = contained(&servers, arguments) else {
                return;
            };
            running.await_text(text);
            let redlatch = child_of(Pid::from_child(&running.0));
            kill_process(redlatch, signal).expect("it runs");
            let code = if arguments[0] == "lock" {
                0
            } else {
                128 + signal.as_raw()
            };
            assert_eq!(running.end().code, code, "{arguments:?}");
        }
    }
    await_keys(&servers, &[]);
}

#[test]
fn what_the_command_leaves_behind_is_waited_for() {
    // Each sleep loses its parent. In the end, none of them may be left as a zombie.
    const SCRIPT: &str = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.2 &); done; sleep 0.5; tries=0
        while zombies=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z 1 ')
            [ \"$zombies\" != 0 ] && [ $tries -lt 300 ]; do tries=$((tries + 1)); sleep 0.1; done
        echo \"$zombies left, under $PPID\"; exit 7";
    let servers = Servers::start(1);
    let on_lost = [
        "run",
        "name",
        "--on-lost",
        "sleep 0.1; exit 0",
        "--",
        "sh",
        "-c",
        SCRIPT,
    ];
    let Some(mut running) = contained(&servers, &on_lost) else {
        return;
    };
    running.await_line("0 left, under 1");
    assert_eq!(running.end().code, 7);
    await_keys(&servers, &[]);
}
