//! `redlatch run --health-file`: what a readiness probe looks at.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use super::loss::{lose, with_short_rounds};
use super::program::{Running, end, redlatch, shell_script};
use rustix::process::Signal;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

/// Until when the lock is held, if the file is there.
fn until(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    Some(
        text.strip_suffix('\n')
            .and_then(|text| text.parse().ok())
            .expect("a number"),
    )
}

#[test]
fn the_file_is_there_as_long_as_the_lock_is_held() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("held");
    let path = file.to_str().expect("text");
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let arguments = [
        "run",
        "name",
        "--ttl",
        "3s",
        "--health-file",
        path,
        "--",
        "cat",
    ];
    let mut command = with_short_rounds(&servers, &arguments);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    await_queued(&servers, "name", 1);
    assert_eq!(until(&file), None);
    drop(held);
    assert!(eventually(LIMIT, || until(&file).is_some()));
    let first = until(&file).expect("it is there");
    assert!((now()..=now() + 3).contains(&first), "{first}");
    // The lock is extended.
    assert!(eventually(LIMIT, || until(&file).is_some_and(|until| until > first)));
    drop(running.0.stdin.take());
    assert_eq!(running.end().code, 0);
    assert_eq!(until(&file), None);
    // Neither a file that cannot be written nor a command that does not start changes anything.
    let mut running = start(&servers, "name", &[], "/no/a");
    let note = running.first_note();
    assert!(
        note.starts_with("redlatch: warning: --health-file: /no/a: "),
        "{note}"
    );
    finish(running);
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
}

#[test]
fn the_file_is_gone_before_the_command_of_a_lost_lock_ends() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("held");
    let path = file.to_str().expect("text");
    // It says whether the file is there when it is asked to end.
    let script = format!(
        "trap 'test -e {path} && echo there || echo gone; exit 0' TERM; \
         echo ready; while :; do sleep 0.05; done"
    );
    let arguments = [
        "run",
        "name",
        "--ttl",
        "3s",
        "--health-file",
        path,
        "-c",
        &script,
    ];
    let mut running = Running::start(&mut with_short_rounds(&servers, &arguments));
    running.await_line("ready");
    assert!(eventually(LIMIT, || until(&file).is_some()));
    lose(&servers);
    running.await_line("gone");
    assert_eq!(running.end().code, 75);
    assert_eq!(until(&file), None);
}

#[test]
fn the_file_of_a_process_that_was_killed_says_until_when_it_counts() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let file = folder.path().join("held");
    let path = file.to_str().expect("text");
    let arguments = [
        "run",
        "name",
        "--ttl",
        "2s",
        "--health-file",
        path,
        "--",
        "cat",
    ];
    let mut command = with_short_rounds(&servers, &arguments);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    assert!(eventually(LIMIT, || until(&file).is_some()));
    running.signal(Signal::KILL);
    running.0.wait().expect("a child");
    // The probe that the guide shows.
    let probe = format!("test \"$(cat {path})\" -gt \"$(date +%s)\"");
    let is_ready = || {
        let status = Command::new("sh").args(["-c", &probe]).status();
        status.expect("a shell").success()
    };
    assert!(eventually(LIMIT, || !is_ready()));
    assert!(until(&file).is_some());
}

/// A run of `cat` under this lock.
fn start(servers: &Servers, name: &str, more: &[&str], path: &str) -> Running {
    let arguments = [
        &["run", name, "--ttl", "2s"],
        more,
        &["--health-file", path, "--", "cat"],
    ]
    .concat();
    Running::start(with_short_rounds(servers, &arguments).stdin(Stdio::piped()))
}

/// Ends a run. Returns what it has written to stderr.
fn finish(mut running: Running) -> String {
    drop(running.0.stdin.take());
    let ended = running.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.stderr
}

#[test]
fn who_waits_leaves_the_file_of_the_holder_alone() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("held");
    let path = file.to_str().expect("text");
    let holder = start(&servers, "name", &[], path);
    assert!(eventually(LIMIT, || until(&file).is_some()));
    let arguments = ["run", "name", "--no-wait", "--health-file", path, "true"];
    assert_eq!(end(&mut redlatch(&servers, &arguments)).code, 1);
    assert!(until(&file).is_some(), "it was not removed");
    let next = start(&servers, "name", &[], path);
    await_queued(&servers, "name", 1);
    assert!(until(&file).is_some(), "it was not removed");
    assert_eq!(finish(holder), "");
    assert!(eventually(LIMIT, || until(&file).is_some()));
    assert_eq!(finish(next), "");
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
}

#[test]
fn the_next_holder_replaces_the_file_of_one_that_was_killed_whatever_its_time() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("held");
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    fs::write(&file, "9999999999\n").expect("it can be written");
    let running = start(&servers, "name", &[], file.to_str().expect("text"));
    await_queued(&servers, "name", 1);
    assert_eq!(until(&file), Some(9_999_999_999));
    drop(held);
    assert!(eventually(LIMIT, || until(&file)
        .is_some_and(|until| until < 9_999_999_999)));
    assert_eq!(finish(running), "");
    assert_eq!(until(&file), None);
}

#[test]
fn a_holder_that_was_stopped_does_not_remove_the_file_of_the_next_one() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("held");
    let path = file.to_str().expect("text");
    let stopped = start(&servers, "name", &[], path);
    assert!(eventually(LIMIT, || until(&file).is_some()));
    let first = until(&file);
    stopped.signal(Signal::STOP);
    let next = start(&servers, "name", &[], path);
    assert!(eventually(LIMIT, || until(&file) > first));
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.end().code, 75);
    assert!(until(&file) > first);
    finish(next);
    assert_eq!(until(&file), None);
}

#[test]
fn two_holders_with_one_file_are_told_and_do_not_take_it_from_each_other() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("held");
    let path = file.to_str().expect("text");
    let first = start(&servers, "name", &["--permits", "2"], path);
    assert!(eventually(LIMIT, || until(&file).is_some()));
    let mut second = start(&servers, "name", &["--permits", "2"], path);
    let note = second.first_note();
    assert!(
        note.starts_with(&format!("redlatch: warning: --health-file: {path}: ")),
        "{note}"
    );
    assert_eq!(finish(first), "");
    assert!(
        eventually(LIMIT, || until(&file).is_some()),
        "the second keeps it now"
    );
    finish(second);
    assert_eq!(until(&file), None);
}

/// A file of the user, a device or a pipe would be gone for all that use it.
#[test]
fn what_is_no_file_of_a_run_is_refused_and_stays() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).expect("a folder");
    fs::write(at("text"), "precious\n").expect("a file");
    fs::write(at("process"), "4242\n").expect("a file");
    symlink(at("text"), at("link")).expect("a link");
    let _socket = UnixListener::bind(at("socket")).expect("a socket");
    let made = Command::new("mkfifo")
        .arg(at("pipe"))
        .status()
        .expect("mkfifo starts");
    assert!(made.success());
    let cases = [
        ("folder", "is a folder"),
        ("link", "is a symbolic link"),
        ("socket", "is a socket"),
        ("pipe", "is a pipe"),
        ("text", "has a text that redlatch has not written"),
        ("process", "has a text that redlatch has not written"),
    ];
    for option in ["--health-file", "--metrics-textfile"] {
        for (name, what) in cases {
            if option == "--metrics-textfile" && what.starts_with("has a text") {
                continue;
            }
            let path = at(name);
            let path = path.to_str().expect("text");
            let arguments = ["run", "name", option, path, "echo", "ran"];
            let ended = end(&mut redlatch(&servers, &arguments));
            assert_eq!((ended.code, &*ended.stdout), (2, ""), "{ended:?}");
            let text = format!("redlatch: {option}: {path} {what}");
            assert!(ended.stderr.starts_with(&text), "{ended:?}");
        }
    }
    await_keys(&servers, &[]);
    let kind = |name| {
        fs::symlink_metadata(at(name))
            .expect("it is there")
            .file_type()
    };
    assert!(kind("folder").is_dir() && kind("link").is_symlink());
    assert!(kind("socket").is_socket() && kind("pipe").is_fifo());
    assert_eq!(
        fs::read_to_string(at("text")).expect("it is there"),
        "precious\n"
    );
    assert_eq!(
        fs::read_dir(folder.path()).expect("it is there").count(),
        cases.len()
    );
    // One that somebody has made for it.
    fs::write(at("text"), "").expect("a file");
    let text = at("text");
    let arguments = [
        "run",
        "name",
        "--health-file",
        text.to_str().expect("text"),
        "true",
    ];
    let ended = end(&mut redlatch(&servers, &arguments));
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    assert!(!text.exists());
}

#[test]
fn what_this_user_may_not_read_is_refused_and_stays() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let file = folder.path().join("text");
    fs::write(&file, "another's\n").expect("a file");
    fs::set_permissions(&file, Permissions::from_mode(0o000)).expect("it is ours");
    // The superuser reads it all the same, unless it gives that up.
    let script = r#"
        if [ "$(id -u)" = 0 ]; then
          set -- setpriv --bounding-set=-dac_override,-dac_read_search "$@"
        fi
        exec "$@""#;
    let mut command = shell_script(&servers, script);
    let path = file.to_str().expect("text");
    command.args(["sh", env!("CARGO_BIN_EXE_redlatch"), "run", "name"]);
    command.args(["--health-file", path, "true"]);
    let ended = end(&mut command);
    assert_eq!(ended.code, 2, "{ended:?}");
    let text =
        format!("redlatch: --health-file: {path} cannot be read, so it is not a file of a run");
    assert!(ended.stderr.starts_with(&text), "{ended:?}");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("it is ours");
    assert_eq!(
        fs::read_to_string(&file).expect("it is there"),
        "another's\n"
    );
}
