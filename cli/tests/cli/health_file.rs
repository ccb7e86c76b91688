//! `redlatch run --health-file`: what a readiness probe looks at.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use super::loss::{lose, with_short_rounds};
use super::program::{Running, end, redlatch};
use rustix::process::Signal;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::await_queued;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// Until when the lock is held, if the file is there.
fn until(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.strip_suffix('\n').and_then(|text| text.parse().ok()).expect("a number"))
}

#[test]
fn the_file_is_there_as_long_as_the_lock_is_held() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("held");
    let path = file.to_str().expect("text");
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    // What a process that was killed has left.
    fs::write(&file, "9999999999\n").expect("it can be written");
    let arguments = ["run", "name", "--ttl", "3s", "--health-file", path, "--", "cat"];
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
    let ended = end(&mut redlatch(&servers, &["run", "name", "--health-file", "/no/a", "true"]));
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.contains("warning: --health-file: /no/a: "), "{ended:?}");
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
    let arguments = ["run", "name", "--ttl", "3s", "--health-file", path, "-c", &script];
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
    let arguments = ["run", "name", "--ttl", "2s", "--health-file", path, "--", "cat"];
    let mut command = with_short_rounds(&servers, &arguments);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    assert!(eventually(LIMIT, || until(&file).is_some()));
    running.signal(Signal::KILL);
    running.0.wait().expect("a child");
    // The probe that the guide shows.
    let probe = format!("test \"$(cat {path})\" -gt \"$(date +%s)\"");
    let is_ready = || {
        let status = std::process::Command::new("sh").args(["-c", &probe]).status();
        status.expect("a shell").success()
    };
    assert!(eventually(LIMIT, || !is_ready()));
    assert!(until(&file).is_some());
}
