//! `redlatch run --once-per`: one of several processes runs the command in a period.

use super::program::{Ended, Running, end, redlatch};
use super::registers::{formed, registers};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use support::eventually;
use support::locks::LIMIT;
use support::servers::Servers;

/// What remembers the runs: a lock, or a register.
const FORMS: [&[&str]; 2] = [&[], &["--exact"]];

#[track_caller]
fn run(servers: &Servers, more: &[&str], script: &str) -> Ended {
    let options = [
        &["run", "job", "--once-per", "1d"],
        more,
        &["--", "sh", "-c", script],
    ];
    end(&mut redlatch(servers, &options.concat()))
}

/// Removes what remembers the runs.
#[track_caller]
fn forget(servers: &Servers, form: &[&str]) {
    let ended = match form {
        [] => end(&mut redlatch(
            servers,
            &["release", "once_per:job", "--force", "--yes"],
        )),
        _ => registers(servers, &["delete", "once_per:job"]),
    };
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn one_of_several_processes_runs_the_command_and_the_others_say_why_not() {
    for form in FORMS {
        let servers = formed(3);
        let run = |more: &[&str], script| run(&servers, &[form, more].concat(), script);
        let ended: Vec<Ended> = thread::scope(|scope| {
            let machines: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| run(&[], "echo $REDLATCH_LOCK")))
                .collect();
            machines
                .into_iter()
                .map(|machine| machine.join().expect("no panic"))
                .collect()
        });
        let ran = ended
            .iter()
            .filter(|it| it.code == 0 && it.stdout == "job\n")
            .count();
        assert_eq!(ran, 1, "{ended:?}");
        for other in ended.iter().filter(|it| it.code != 0) {
            assert!(
                other.stdout.is_empty() && [1, 3, 10].contains(&other.code),
                "{other:?}"
            );
        }
        let again = run(&[], "echo again");
        assert_eq!((again.code, &*again.stdout), (10, ""));
        assert!(
            again
                .stderr
                .starts_with("redlatch: job: not due for another 21 h "),
            "{again:?}"
        );
        let silent = run(&["-E", "0"], "echo again");
        assert_eq!((silent.code, &*silent.stdout, &*silent.stderr), (0, "", ""));
        assert_eq!(run(&["-E", "42"], "echo again").code, 42);
        forget(&servers, form);
        let logged = run(&["-v"], "echo again");
        assert_eq!(logged.stdout, "again\n");
        // What remembers the run is not the lock that the log is about.
        let is_told = |text| logged.stderr.contains(text);
        assert!(
            is_told("job: released after") && !is_told("stays taken"),
            "{logged:?}"
        );
    }
}

#[test]
fn the_record_of_an_exact_run_is_a_register_like_others() {
    let servers = formed(3);
    assert_eq!(run(&servers, &["--exact"], "true").code, 0);
    let value = registers(&servers, &["get", "once_per:job"]).stdout;
    assert!(
        value.starts_with("once_per 1 ") && value.trim_end().ends_with(" counts"),
        "{value}"
    );
}

#[test]
fn a_command_that_fails_counts_unless_failed_ones_are_retried() {
    for form in FORMS {
        let servers = formed(3);
        let run = |more: &[&str], script| run(&servers, &[form, more].concat(), script);
        assert_eq!(run(&[], "exit 5").code, 5);
        assert_eq!(run(&["--retry-failed"], "echo ran").code, 10);
        forget(&servers, form);
        assert_eq!(run(&["--retry-failed"], "exit 5").code, 5);
        assert_eq!(run(&["--retry-failed"], "kill -TERM $$").code, 143);
        assert_eq!(run(&["--retry-failed"], "echo ran").stdout, "ran\n");
        assert_eq!(run(&["--retry-failed"], "echo ran").code, 10);
    }
}

#[test]
fn a_command_that_cannot_be_started_does_not_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/shell\n").expect("a folder");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it is there");
    for form in FORMS {
        let servers = formed(3);
        let script = script.to_str().expect("it is UTF-8");
        let options = [&["run", "job", "--once-per", "1d"], form, &["--", script]].concat();
        let ended = end(&mut redlatch(&servers, &options));
        assert!([126, 127].contains(&ended.code), "{ended:?}");
        assert_eq!(run(&servers, form, "echo ran").stdout, "ran\n");
    }
}

/// The ttl of the run's own lock is short, whatever `--ttl` says.
#[test]
fn after_a_kill_another_process_soon_runs_what_is_to_be_retried() {
    for form in FORMS {
        let servers = formed(3);
        let retried = [form, &["--retry-failed", "--ttl", "10m"]].concat();
        let script = ["--", "sh", "-c", "echo began; exec sleep 5"];
        let options = [
            &["run", "job", "--once-per", "1d"],
            &retried[..],
            &script[..],
        ]
        .concat();
        let mut killed = Running::start(&mut redlatch(&servers, &options));
        killed.await_line("began");
        killed.signal(Signal::KILL);
        killed.status();
        assert!(eventually(LIMIT, || run(&servers, &retried, "echo ran")
            .stdout
            == "ran\n"));
    }
}

#[test]
fn a_signal_ends_the_command_and_the_run_counts() {
    let servers = formed(3);
    let options = [
        "run",
        "job",
        "--once-per",
        "1d",
        "--",
        "sh",
        "-c",
        "echo began; sleep 600",
    ];
    let mut running = Running::start(&mut redlatch(&servers, &options));
    running.await_line("began");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, 143);
    assert_eq!(run(&servers, &[], "echo ran").code, 10);
}

#[test]
fn what_is_missing_is_said() {
    let servers = Servers::start(3);
    let ended = run(&servers, &["--exact"], "echo ran");
    assert_eq!((ended.code, &*ended.stdout), (78, ""));
    assert!(
        ended.stderr.contains("(redlatch registers form)"),
        "{ended:?}"
    );
    for options in [
        &["--no-wait"][..],
        &["--wait", "1s"],
        &["--hold-at-least", "1s"],
    ] {
        assert_eq!(run(&servers, options, "echo ran").code, 2);
    }
    for option in ["--retry-failed", "--exact"] {
        assert_eq!(
            end(&mut redlatch(&servers, &["run", "a", option, "--", "a"])).code,
            2
        );
    }
}
