//! `redlatch run --once-per`: one of several processes runs the command in a period.

use super::program::{Ended, Running, end, redlatch};
use super::registers::{formed, registers};
use rustix::process::Signal;
use std::thread;
use support::servers::Servers;

#[track_caller]
fn run(servers: &Servers, more: &[&str], script: &str) -> Ended {
    let options = [&["run", "job", "--once-per", "1d"], more, &["--", "sh", "-c", script]];
    end(&mut redlatch(servers, &options.concat()))
}

#[test]
fn one_of_several_processes_runs_the_command_and_the_others_say_why_not() {
    let servers = formed(3);
    let ended: Vec<Ended> = thread::scope(|scope| {
        let machines: Vec<_> =
            (0..4).map(|_| scope.spawn(|| run(&servers, &[], "echo $REDLATCH_LOCK"))).collect();
        machines.into_iter().map(|machine| machine.join().expect("no panic")).collect()
    });
    let ran = ended.iter().filter(|it| it.code == 0 && it.stdout == "job\n").count();
    assert_eq!(ran, 1, "{ended:?}");
    for other in ended.iter().filter(|it| it.code != 0) {
        assert!(other.stdout.is_empty() && [1, 3, 10].contains(&other.code), "{other:?}");
    }
    let again = run(&servers, &[], "echo again");
    assert_eq!((again.code, &*again.stdout), (10, ""));
    assert!(again.stderr.starts_with("redlatch: job: not due for another 21 h "), "{again:?}");
    let silent = run(&servers, &["-E", "0"], "echo again");
    assert_eq!((silent.code, &*silent.stdout, &*silent.stderr), (0, "", ""));
    assert_eq!(run(&servers, &["-E", "42"], "echo again").code, 42);
    // Its record is a register like others.
    let value = registers(&servers, &["get", "once_per:job"]).stdout;
    assert!(value.starts_with("once_per 1 ") && value.trim_end().ends_with(" counts"), "{value}");
    assert_eq!(registers(&servers, &["delete", "once_per:job"]).code, 0);
    assert_eq!(run(&servers, &[], "echo again").stdout, "again\n");
}

#[test]
fn a_command_that_fails_counts_unless_failed_ones_are_retried() {
    let servers = formed(3);
    assert_eq!(run(&servers, &[], "exit 5").code, 5);
    assert_eq!(run(&servers, &["--retry-failed"], "echo ran").code, 10);
    assert_eq!(registers(&servers, &["delete", "once_per:job"]).code, 0);
    assert_eq!(run(&servers, &["--retry-failed"], "exit 5").code, 5);
    assert_eq!(run(&servers, &["--retry-failed"], "kill -TERM $$").code, 143);
    assert_eq!(run(&servers, &["--retry-failed"], "echo ran").stdout, "ran\n");
    assert_eq!(run(&servers, &["--retry-failed"], "echo ran").code, 10);
}

#[test]
fn a_signal_ends_the_command_and_the_run_counts() {
    let servers = formed(3);
    let options = ["run", "job", "--once-per", "1d", "--", "sh", "-c", "echo began; sleep 600"];
    let mut running = Running::start(&mut redlatch(&servers, &options));
    running.await_line("began");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, 143);
    assert_eq!(run(&servers, &[], "echo ran").code, 10);
}

#[test]
fn what_is_missing_is_said() {
    let servers = Servers::start(3);
    let ended = run(&servers, &[], "echo ran");
    assert_eq!((ended.code, &*ended.stdout), (78, ""));
    assert!(ended.stderr.contains("(redlatch registers form)"), "{ended:?}");
    for options in [&["--no-wait"][..], &["--wait", "1s"], &["--hold-at-least", "1s"]] {
        assert_eq!(run(&servers, options, "echo ran").code, 2);
    }
    assert_eq!(end(&mut redlatch(&servers, &["run", "a", "--retry-failed", "--", "a"])).code, 2);
}
