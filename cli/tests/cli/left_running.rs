//! Processes that the command has left running: the lock is kept for them, as by `flock`.

use std::fs;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use super::loss::{lose, with_short_rounds};
use super::program::{
    Left, Running, child_of, children_of, end, has_ended, redlatch, shell_script, state_of,
};
use rustix::process::{Pid, Signal, kill_process};
use support::eventually;
use support::locks::{LIMIT, holders};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::await_keys;

/// A process without the command's output, which a test reads to its end.
const LEFT: &str = "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!;";

/// Closes all descriptors but three. Not every shell knows numbers of two digits: this is bash's.
const CLOSE: &str = "for fd in /proc/self/fd/*; do fd=${fd##*/}; \
                     if [ $fd -gt 2 ]; then eval \"exec $fd>&-\"; fi; done;";

/// Starts a command that prints the number of a process, and leaves it running.
#[track_caller]
fn leave(servers: &Servers, more: &[&str], script: &str) -> (Running, Left) {
    let arguments = [&["run", "name"], more, &["--", "sh", "-c", script]].concat();
    let mut running = Running::start(&mut with_short_rounds(servers, &arguments));
    let left = Left::parse(&running.next_line());
    (running, left)
}

/// Waits until the command has ended, which stays to be waited for. `redlatch` runs on.
#[track_caller]
fn await_end_of_command(running: &mut Running) {
    let command = child_of(Pid::from_child(&running.0));
    assert!(
        eventually(LIMIT, || has_ended(command)),
        "the command does not end"
    );
    assert!(
        running
            .0
            .try_wait()
            .expect("a child can be asked")
            .is_none()
    );
}

#[test]
fn the_lock_is_kept_until_they_have_ended() {
    let servers = Servers::start(3);
    let (mut running, left) = leave(&servers, &["--ttl", "5s"], &format!("{LEFT} exit 7"));
    // Longer than the ttl.
    std::thread::sleep(Duration::from_millis(6_500));
    assert!(
        running
            .0
            .try_wait()
            .expect("a child can be asked")
            .is_none()
    );
    assert_eq!(
        end(&mut redlatch(
            &servers,
            &["run", "name", "-n", "--", "true"]
        ))
        .code,
        1
    );
    left.signal(Signal::KILL);
    assert_eq!(running.end().code, 7, "as the command did");
    await_keys(&servers, &[]);
}

#[test]
fn it_is_told_once_after_a_while_what_is_waited_for() {
    let servers = Servers::start(1);
    let start = Instant::now();
    let (mut running, left) = leave(&servers, &[], LEFT);
    let mut stderr = running.0.stderr.take().expect("it is piped");
    let mut first = [0; 1];
    stderr.read_exact(&mut first).expect("a note");
    assert!(
        start.elapsed() >= Duration::from_secs(10),
        "later than what ends soon by itself"
    );
    std::thread::sleep(Duration::from_secs(2));
    left.signal(Signal::KILL);
    assert_eq!(running.end().code, 0);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    let expected = format!(
        "edlatch: the command has ended; the lock is kept for what it has left running \
         (process {}); TERM ends that, and --close would release the lock\n",
        left.0
    );
    assert_eq!(rest, expected);
}

#[test]
fn close_releases_the_lock_at_the_end_of_the_command() {
    let servers = Servers::start(3);
    for option in ["-o", "--close"] {
        let (running, left) = leave(&servers, &[option], LEFT);
        assert_eq!(running.end().code, 0);
        assert!(!left.has_ended());
        await_keys(&servers, &[]);
    }
}

#[test]
fn what_has_closed_all_descriptors_is_not_waited_for() {
    let servers = Servers::start(3);
    let (running, left) = leave(&servers, &[], &format!("exec bash -c '{CLOSE} {LEFT}'"));
    assert_eq!(running.end().code, 0);
    assert!(!left.has_ended());
    await_keys(&servers, &[]);
}

#[test]
fn the_descriptor_has_a_lower_number_where_high_ones_are_not_allowed() {
    let servers = Servers::start(1);
    let redlatch = env!("CARGO_BIN_EXE_redlatch");
    // The script has a file of its own with the number 9.
    let script = format!(
        "ulimit -n 60; exec {redlatch} --no-restart-guard run name -- sh -c 'exec 9>&1; {LEFT}'"
    );
    let mut running = Running::start(&mut shell_script(&servers, &script));
    let left = Left::parse(&running.next_line());
    await_end_of_command(&mut running);
    assert_eq!(holders(&servers, "name"), 1);
    left.signal(Signal::KILL);
    assert_eq!(running.end().code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn signals_reach_them_when_the_command_has_ended() {
    let servers = Servers::start(3);
    // In the command's group, and in a session of its own.
    for script in [LEFT.to_owned(), format!("setsid {LEFT}")] {
        let (mut running, left) = leave(&servers, &[], &script);
        await_end_of_command(&mut running);
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 0, "as the command did");
        assert!(eventually(LIMIT, || left.has_ended()));
        await_keys(&servers, &[]);
    }
}

#[test]
fn one_that_ignores_a_signal_keeps_the_lock() {
    let servers = Servers::start(1);
    let (mut running, left) = leave(&servers, &[], &format!("trap '' TERM; {LEFT}"));
    await_end_of_command(&mut running);
    running.signal(Signal::TERM);
    std::thread::sleep(Duration::from_secs(1));
    assert!(
        running
            .0
            .try_wait()
            .expect("a child can be asked")
            .is_none()
    );
    assert!(!left.has_ended());
    assert_eq!(holders(&servers, "name"), 1);
    left.signal(Signal::KILL);
    assert_eq!(running.end().code, 0);
}

#[test]
fn they_stop_and_continue_with_redlatch() {
    let servers = Servers::start(1);
    for script in [
        LEFT.to_owned(),
        format!("setsid {LEFT}"),
        format!("trap '' TSTP; {LEFT}"),
    ] {
        let (mut running, left) = leave(&servers, &[], &script);
        await_end_of_command(&mut running);
        let redlatch = Pid::from_child(&running.0);
        running.signal(Signal::TSTP);
        assert!(eventually(LIMIT, || state_of(redlatch) == Some('T')));
        // It was told before, and stops when it gets a processor.
        let is_stopped = || state_of(left.0) == Some('T');
        assert!(
            eventually(LIMIT, is_stopped),
            "nobody extends the lock: {script}"
        );
        running.signal(Signal::CONT);
        assert!(
            eventually(LIMIT, || state_of(left.0) == Some('S')),
            "{script}"
        );
        assert!(state_of(redlatch) != Some('T'));
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 0);
        assert!(eventually(LIMIT, || left.has_ended()));
    }
}

#[test]
fn they_are_killed_when_the_lock_is_lost() {
    let servers = Servers::start(3);
    for script in [
        LEFT.to_owned(),
        format!("setsid {LEFT}"),
        format!("trap '' TERM; {LEFT}"),
    ] {
        let (running, left) = leave(&servers, &["--ttl", "3s", "--grace", "300ms"], &script);
        lose(&servers);
        let ended = running.end();
        assert_eq!(ended.code, 75, "{}", ended.stderr);
        assert!(eventually(LIMIT, || left.has_ended()), "{script}");
    }
}

#[test]
fn what_these_have_started_is_killed_as_well() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("script");
    // It has closed the descriptor, and what has started it has not. Both ignore TERM.
    let script = format!(
        "trap '' TERM; (echo $BASHPID; {CLOSE} exec sleep 1000 >/dev/null 2>&1) & \
         exec >/dev/null 2>&1; wait"
    );
    fs::write(&file, script).expect("a folder");
    let command = format!("setsid bash {} </dev/null & exit 0", file.display());
    let (running, left) = leave(&servers, &["--ttl", "3s", "--grace", "300ms"], &command);
    lose(&servers);
    let ended = running.end();
    assert_eq!(ended.code, 75, "{}", ended.stderr);
    assert!(eventually(LIMIT, || left.has_ended()));
}

#[test]
fn it_runs_in_a_pid_namespace_that_knows_neither_its_group_nor_its_proc() {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork"]);
        command
    };
    if !unshare()
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("not run: no pid namespaces here");
        return;
    }
    let servers = Servers::start(1);
    let mut command = unshare();
    let script = format!("{LEFT} exit 7");
    command.args([env!("CARGO_BIN_EXE_redlatch"), "--no-restart-guard"]);
    command.args(["run", "name", "--", "sh", "-c", &script]);
    let mut running = Running::start(command.env("REDLATCH_NODES", servers.urls().join(",")));
    running.next_line();
    // What is in the command's group gets signals there as well.
    let redlatch = child_of(Pid::from_child(&running.0));
    let command_has_ended = || children_of(redlatch).into_iter().any(has_ended);
    assert!(eventually(LIMIT, command_has_ended));
    kill_process(redlatch, Signal::TERM).expect("it runs");
    assert_eq!(running.end().code, 7);
    await_keys(&servers, &[]);
}
