//! Processes that the command has left running: the lock is kept for them, as by `flock`.

use std::fs;
use std::time::Duration;

use super::loss::with_short_rounds;
use super::program::{Running, end, redlatch};
use super::support::eventually;
use super::support::locks::{LIMIT, all_nodes_client, holders};
use super::support::servers::Servers;
use super::support::waiters::await_keys;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// A process without the command's output, which a test reads to its end.
const LEFT: &str = "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!;";

/// Starts a command that prints the number of a process, and leaves it running.
#[track_caller]
fn leave(servers: &Servers, more: &[&str], script: &str) -> (Running, Pid) {
    let arguments = [&["run", "name"], more, &["--", "sh", "-c", script]].concat();
    let mut running = Running::start(&mut with_short_rounds(servers, &arguments));
    let line = running.next_line();
    let pid = line.trim().parse().ok().and_then(Pid::from_raw);
    (running, pid.expect("the number of a process"))
}

/// Has it ended? It may be left as a zombie, if nobody waits for what was left running.
fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let is_zombie = stat.is_ok_and(|stat| stat.contains(") Z "));
    test_kill_process(pid).is_err() || is_zombie
}

fn kill(pid: Pid) {
    kill_process(pid, Signal::KILL).expect("it runs");
}

#[test]
fn the_lock_is_kept_until_they_have_ended() {
    let servers = Servers::start(3);
    let (mut running, left) = leave(&servers, &["--ttl", "5s"], &format!("{LEFT} exit 7"));
    // Longer than the ttl.
    std::thread::sleep(Duration::from_millis(6_500));
    assert!(running.0.try_wait().expect("a child can be asked").is_none());
    assert_eq!(end(&mut redlatch(&servers, &["run", "name", "-n", "--", "true"])).code, 1);
    kill(left);
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (7, ""), "as the command did");
    await_keys(&servers, &[]);
}

#[test]
fn close_releases_the_lock_at_the_end_of_the_command() {
    let servers = Servers::start(3);
    for option in ["-o", "--close"] {
        let (running, left) = leave(&servers, &[option], LEFT);
        assert_eq!(running.end().code, 0);
        assert!(!has_ended(left));
        await_keys(&servers, &[]);
        kill(left);
    }
}

#[test]
fn what_has_closed_all_descriptors_is_not_waited_for() {
    let servers = Servers::start(3);
    // Not every shell knows numbers of two digits.
    let close = "for fd in /proc/self/fd/*; do fd=${fd##*/}; \
                 if [ $fd -gt 2 ]; then eval \"exec $fd>&-\"; fi; done;";
    let (running, left) = leave(&servers, &[], &format!("exec bash -c '{close} {LEFT}'"));
    assert_eq!(running.end().code, 0);
    assert!(!has_ended(left));
    await_keys(&servers, &[]);
    kill(left);
}

#[test]
fn signals_reach_them_when_the_command_has_ended() {
    let servers = Servers::start(3);
    // In the command's group, and in a session of its own.
    for script in [LEFT.to_owned(), format!("setsid {LEFT}")] {
        let (mut running, left) = leave(&servers, &[], &script);
        let has_ended_command = || {
            let children = fs::read_to_string(format!("/proc/{}/stat", left.as_raw_nonzero()));
            // Its parent is no shell any more.
            children.is_ok_and(|stat| stat.contains("(sleep) S 1 "))
        };
        assert!(eventually(LIMIT, has_ended_command));
        assert!(running.0.try_wait().expect("a child can be asked").is_none());
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 0, "as the command did");
        assert!(eventually(LIMIT, || has_ended(left)));
        await_keys(&servers, &[]);
    }
}

#[test]
fn they_are_killed_when_the_lock_is_lost() {
    let servers = Servers::start(3);
    for script in [LEFT.to_owned(), format!("setsid {LEFT}"), format!("trap '' TERM; {LEFT}")] {
        let (running, left) = leave(&servers, &["--ttl", "3s", "--grace", "300ms"], &script);
        let client = all_nodes_client(servers.urls());
        assert!(eventually(LIMIT, || holders(&servers, "name") == 3));
        let seen = client.inspect("name").expect("a majority answers");
        assert_eq!(client.force_release(&seen), Ok(true));
        let ended = running.end();
        assert_eq!(ended.code, 75, "{}", ended.stderr);
        assert!(eventually(LIMIT, || has_ended(left)), "{script}");
    }
}
