//! `redlatch run --metrics-textfile`: metrics for Prometheus.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use super::loss::with_short_rounds;
use super::program::{Running, end, redlatch, shell_script};
use support::locks::{LONG, all_nodes_client, take};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::await_queued;

/// The value of a metric without its prefix, by the label of its lock. Checks the whole file.
#[track_caller]
fn value(file: &Path, metric: &str, label: &str) -> Option<f64> {
    let text = fs::read_to_string(file).expect("it is written");
    let mut described = "";
    let mut found = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            described = rest.split_once(' ').expect("a name and its help").0;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert_eq!(rest, format!("{described} gauge"));
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a series and its value");
            let value: f64 = value.parse().expect("a number");
            assert!(
                series.starts_with(&format!("{described}{{lock=\"")),
                "{line}"
            );
            if series == format!("redlatch_run_{metric}{{lock=\"{label}\"}}") {
                found = Some(value);
            }
        }
    }
    found
}

#[test]
fn the_file_is_there_while_the_command_runs_and_tells_how_it_has_ended() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("name.prom");
    let path = file.to_str().expect("text");
    let script = format!(
        "umask 077; exec {} --no-restart-guard run name --metrics-textfile {path} \
         -c 'echo ready; read x || exit 0'",
        env!("CARGO_BIN_EXE_redlatch")
    );
    let mut running = Running::start(shell_script(&servers, &script).stdin(Stdio::piped()));
    running.await_line("ready");
    let of = |metric: &str| value(&file, metric, "name");
    assert_eq!(
        (of("held"), of("lost"), of("exit_code")),
        (Some(1.0), Some(0.0), None)
    );
    assert!(of("waited_seconds").is_some());
    assert_eq!(of("last_success_timestamp_seconds"), None);
    let mode = fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o644);
    drop(running.0.stdin.take());
    assert_eq!(running.end().code, 0);
    assert_eq!(
        (of("held"), of("lost"), of("exit_code")),
        (Some(0.0), Some(0.0), Some(0.0))
    );
    assert!(of("held_seconds").is_some_and(|held| held > 0.0));
    let success = of("last_success_timestamp_seconds");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs_f64();
    assert!(
        success.is_some_and(|success| (now - success).abs() < 60.0),
        "{success:?}"
    );

    // No success: the last one is kept.
    let run = |more: &[&str]| {
        let arguments = [&["run", "name", "--metrics-textfile", path], more].concat();
        let ended = end(&mut redlatch(&servers, &arguments));
        assert_eq!(of("last_success_timestamp_seconds"), success, "{more:?}");
        assert_eq!(of("exit_code"), Some(f64::from(ended.code)), "{more:?}");
        ended
    };
    assert_eq!(run(&["-c", "exit 3"]).code, 3);
    assert_eq!(run(&["no-such-command"]).code, 127);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    assert_eq!(run(&["--no-wait", "true"]).code, 1);
    let quiet = run(&["--wait", "300ms", "-E", "0", "true"]);
    assert_eq!((quiet.code, &*quiet.stderr), (0, ""));
    assert_eq!(of("held_seconds"), Some(0.0));
    assert!(of("waited_seconds") >= Some(0.3));
    drop(held);
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        1,
        "nothing else is left"
    );
}

#[test]
fn a_loss_is_told_and_each_lock_has_its_series() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let file = folder.path().join("name.prom");
    let path = file.to_str().expect("text");
    let limits = ["--ttl", "2s", "--max-hold", "3s", "--grace", "300ms"];
    let names = [
        "run",
        "a \"b\"\\\n",
        "--also",
        "other",
        "--metrics-textfile",
        path,
    ];
    let arguments = [&names[..], &limits, &["sleep", "60"]].concat();
    assert_eq!(end(&mut with_short_rounds(&servers, &arguments)).code, 75);
    for label in ["a \\\"b\\\"\\\\\\n", "other"] {
        let of = |metric: &str| value(&file, metric, label);
        assert_eq!((of("lost"), of("exit_code")), (Some(1.0), Some(75.0)));
        assert!(of("held_seconds").is_some_and(|held| held > 0.5));
        assert_eq!(of("last_success_timestamp_seconds"), None);
    }
}

#[test]
fn a_run_that_is_refused_leaves_the_file_of_the_one_that_holds_the_lock() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("name.prom");
    let path = file.to_str().expect("text");
    let arguments = [
        "run",
        "name",
        "--metrics-textfile",
        path,
        "-c",
        "echo ready; cat",
    ];
    let mut holder = Running::start(redlatch(&servers, &arguments).stdin(Stdio::piped()));
    holder.await_line("ready");
    let refused = [
        "run",
        "name",
        "--metrics-textfile",
        path,
        "--no-wait",
        "true",
    ];
    assert_eq!(end(&mut redlatch(&servers, &refused)).code, 1);
    assert_eq!(value(&file, "held", "name"), Some(1.0));
    let failing = ["run", "name", "--metrics-textfile", path, "--", "false"];
    let waiting = Running::start(&mut redlatch(&servers, &failing));
    await_queued(&servers, "name", 1);
    drop(holder.0.stdin.take());
    assert_eq!(holder.end().code, 0);
    assert_eq!(waiting.end().code, 1);
    let success = value(&file, "last_success_timestamp_seconds", "name");
    assert!(success.is_some(), "that of the one before is kept");
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    assert_eq!(
        end(&mut redlatch(
            &servers,
            &[&refused[..5], &["-E", "5", "true"]].concat()
        ))
        .code,
        5
    );
    assert_eq!(
        value(&file, "exit_code", "name"),
        Some(5.0),
        "nobody keeps it"
    );
    drop(held);
}

#[test]
fn a_file_that_cannot_be_written_is_a_warning() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let missing = folder.path().join("missing/name.prom");
    for path in [&*missing, Path::new("/dev/null/name.prom")] {
        let path = path.to_str().expect("text");
        for code in [0, 7] {
            let script = format!("sleep 0.3; exit {code}");
            let arguments = ["run", "name", "--metrics-textfile", path, "-c", &script];
            let ended = end(&mut redlatch(&servers, &arguments));
            assert_eq!(ended.code, code, "{ended:?}");
            let warning = format!("redlatch: warning: --metrics-textfile: {path}: ");
            assert!(ended.stderr.starts_with(&warning), "{}", ended.stderr);
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
