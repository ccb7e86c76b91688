//! `redlatch run`: the command's environment, its exit code, and what others see of the lock.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::program::{Running, bare, end, redlatch};
use redlatch::LockState;
use support::locks::{LONG, all_nodes_client, take};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

#[test]
fn the_command_runs_under_the_lock_and_its_exit_code_is_passed_on() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    for code in [0, 1, 3, 125, 255] {
        let script = format!("echo out; echo err >&2; exit {code}");
        let ended = end(&mut redlatch(
            &servers,
            &["run", "name", "--", "sh", "-c", &script],
        ));
        assert_eq!(
            (ended.code, &*ended.stdout, &*ended.stderr),
            (code, "out\n", "err\n")
        );
    }
    let mut running = Running::start(
        redlatch(
            &servers,
            &[
                "run",
                "name",
                "--owner",
                "me",
                "--",
                "sh",
                "-c",
                "echo go; read x",
            ],
        )
        .stdin(Stdio::piped()),
    );
    running.await_line("go");
    let seen = client.inspect("name").expect("all nodes are up");
    let LockState::Held(holder) = seen.state else {
        panic!("{seen:?}")
    };
    assert!(holder.owner().is_some_and(|owner| owner == "me"));
    assert!(
        holder
            .remaining
            .is_some_and(|left| left > Duration::from_secs(20)),
        "{holder:?}"
    );
    drop(running.0.stdin.take());
    assert_eq!(running.end().code, 1, "read ends with 1");
    await_keys(&servers, &[]);
}

#[test]
fn the_command_needs_no_dashes_before_it_and_gets_all_that_follows_its_name() {
    let servers = Servers::start(1);
    for (arguments, printed) in [
        (
            &[
                "run", "name", "-n", "printf", "%s,", "-n", "--", "--wait", "x",
            ][..],
            "-n,--,--wait,x,",
        ),
        (
            &["run", "name", "-n", "--", "printf", "%s,", "--", "-n"],
            "--,-n,",
        ),
        (&["run", "-n", "--", "name", "echo", "a"], "a\n"),
        (
            &["run", "name", "-c", "echo a | tr a b; echo $0"],
            "b\n/bin/sh\n",
        ),
    ] {
        let ended = end(&mut redlatch(&servers, arguments));
        assert_eq!(
            (ended.code, &*ended.stdout, &*ended.stderr),
            (0, printed, ""),
            "{arguments:?}"
        );
    }
    assert_eq!(
        end(&mut redlatch(&servers, &["run", "name", "-c", "exit 7"])).code,
        7
    );
    for wrong in [
        &["-c", "true", "--", "true"][..],
        &["--no-such-option", "true"],
        &[],
    ] {
        let arguments = [&["run", "name"], wrong].concat();
        let ended = end(&mut redlatch(&servers, &arguments));
        assert_eq!(ended.code, 2, "{arguments:?}");
        assert!(
            ended.stderr.contains("<NAME> [--] <COMMAND>..."),
            "{}",
            ended.stderr
        );
    }
    await_keys(&servers, &[]);
}

#[test]
fn the_environment_has_the_lock_the_token_and_the_permit() {
    let servers = Servers::start(3);
    let show = "echo \"$REDLATCH_LOCK,$REDLATCH_FENCING_TOKEN,${REDLATCH_PERMIT-none}\"";
    let with = |more: &[&str]| {
        let arguments = [&["run", "a name"], more, &["--", "sh", "-c", show]].concat();
        let mut command = redlatch(&servers, &arguments);
        // As under another redlatch run.
        end(command
            .env("REDLATCH_PERMIT", "7")
            .env("REDLATCH_FENCING_TOKEN", "7"))
    };
    assert_eq!(with(&[]).stdout, "a name,,none\n");
    let permit = with(&["--permits", "3"]).stdout;
    assert!(
        ["a name,,0\n", "a name,,1\n", "a name,,2\n"].contains(&&*permit),
        "{permit}"
    );
    assert_eq!(with(&["--shared"]).stdout, "a name,,none\n");
    let token = |ended: &str| -> u64 {
        ended
            .split(',')
            .nth(1)
            .expect("three fields")
            .parse()
            .expect("a token")
    };
    let first = token(&with(&["--fenced"]).stdout);
    assert!(token(&with(&["--fenced"]).stdout) > first);
}

#[test]
fn a_lock_of_another_client_is_code_1_or_that_of_e() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    for (arguments, code) in [
        (&["run", "name", "--no-wait", "--", "true"][..], 1),
        (&["run", "name", "--wait", "0", "--", "true"], 1),
        (&["run", "name", "-n", "-E", "99", "--", "true"], 99),
        (&["run", "name", "--permits", "2", "-n", "--", "true"], 1),
    ] {
        let ended = end(&mut redlatch(&servers, arguments));
        assert_eq!(ended.code, code, "{arguments:?}");
        let text = "redlatch: name: another client holds the lock: an unknown owner for another ";
        assert!(ended.stderr.starts_with(text), "{}", ended.stderr);
    }
    let quiet = end(&mut redlatch(
        &servers,
        &["run", "name", "-s", "-n", "-E", "0", "--", "true"],
    ));
    assert_eq!(
        (quiet.code, &*quiet.stderr),
        (0, ""),
        "it is not a failure then"
    );
    let start = Instant::now();
    let ended = end(&mut redlatch(
        &servers,
        &["run", "name", "--wait", "300ms", "--", "true"],
    ));
    assert_eq!(ended.code, 1);
    assert!(start.elapsed() >= Duration::from_millis(300));
    drop(held);
    await_keys(&servers, &[]);
}

#[test]
fn who_waits_is_served_when_the_holder_is_done_and_a_pipe_sees_nothing_of_it() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let waiting = Running::start(&mut redlatch(
        &servers,
        &["run", "name", "--", "echo", "done"],
    ));
    await_queued(&servers, "name", 1);
    thread::sleep(Duration::from_secs(1)); // a terminal would show a line by now
    drop(held);
    let ended = waiting.end();
    assert_eq!(
        (ended.code, &*ended.stdout, &*ended.stderr),
        (0, "done\n", "")
    );
    await_keys(&servers, &[]);
}

#[test]
fn the_lock_is_kept_alive_as_long_as_the_command_runs() {
    let servers = Servers::start(1);
    let mut command = bare();
    command
        .env("REDLATCH_NODES", servers.urls().join(","))
        .arg("--no-restart-guard");
    let ended = end(command.args(["run", "name", "--ttl", "4s", "--", "sleep", "6"]));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn readers_and_permits_run_side_by_side() {
    let servers = Servers::start(3);
    for more in [&["--shared"][..], &["--permits", "2"]] {
        let work = ["--", "sh", "-c", "echo go; read x || true"];
        let arguments = [&["run", "name", "-n"], more, &work].concat();
        let start = || {
            let mut running = Running::start(redlatch(&servers, &arguments).stdin(Stdio::piped()));
            running.await_line("go");
            running
        };
        let mut both = [start(), start()];
        assert_eq!(
            end(&mut redlatch(
                &servers,
                &["run", "name", "-n", "--", "true"]
            ))
            .code,
            1
        );
        both.iter_mut()
            .for_each(|running| drop(running.0.stdin.take()));
        both.into_iter()
            .for_each(|running| assert_eq!(running.end().code, 0));
        await_keys(&servers, &[]);
    }
}

#[test]
fn a_command_that_cannot_be_started_is_127_or_126_and_takes_no_lock() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let plain = folder.path().join("plain");
    fs::write(&plain, "no program").expect("a folder");
    let path = |path: &std::path::Path| path.to_str().expect("text").to_owned();
    let code = |command: &str| {
        // With a lock that stays, it would be seen on the server.
        let arguments = ["run", "name", "--hold-at-least", "40s", "--", command];
        let ended = end(&mut redlatch(&servers, &arguments));
        assert!(ended.stderr.contains(command), "{}", ended.stderr);
        ended.code
    };
    assert_eq!(code("no-such-command"), 127);
    assert_eq!(code(""), 127);
    assert_eq!(code("/no/such/command"), 127);
    assert_eq!(code(&path(&plain)), 126);
    assert_eq!(code(&path(folder.path())), 126);
    await_keys(&servers, &[]);
}

#[test]
fn a_lock_under_which_nothing_has_run_does_not_stay() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let script = folder.path().join("script");
    let name = script.to_str().expect("text");
    for (text, why) in [
        (
            "#!/bin/sh\r\necho ran\r\n",
            "its interpreter does not exist: /bin/sh\\r",
        ),
        (
            "#! /no/such/shell -e\n",
            "its interpreter does not exist: /no/such/shell",
        ),
    ] {
        fs::write(&script, text).expect("a folder");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("our file");
        for more in [
            &[][..],
            &["--permits", "2"],
            &["--shared"],
            &["--also", "other"],
        ] {
            // What its file does not tell: the lock is acquired, as the shell's fork would be.
            let arguments = [
                &["run", "name", "--hold-at-least", "50s"],
                more,
                &["--", name],
            ];
            let ended = end(&mut redlatch(&servers, &arguments.concat()));
            assert_eq!(
                (ended.code, &*ended.stdout),
                (127, ""),
                "{more:?}: {}",
                ended.stderr
            );
            assert_eq!(
                ended.stderr,
                format!("redlatch: {name}: {why}\n"),
                "{more:?}"
            );
            await_keys(&servers, &[]);
        }
    }
    // A command that ends so itself has run.
    let arguments = ["run", "name", "--hold-at-least", "50s", "-c", "exit 127"];
    assert_eq!(end(&mut redlatch(&servers, &arguments)).code, 127);
    await_keys(&servers, &["name"]);
}

#[test]
fn the_default_ttl_is_no_longer_than_the_lock_may_be_held_or_any_ttl_be() {
    let servers = Servers::start(1);
    let short = ["run", "name", "--max-hold", "7s", "--", "sleep", "60"];
    let ended = end(&mut redlatch(&servers, &short));
    assert_eq!(ended.code, 75, "{}", ended.stderr);
    let least = ["--max-ttl", "10s", "run", "name", "--", "true"];
    assert_eq!(end(&mut redlatch(&servers, &least)).code, 0);
    let both = [
        "run",
        "name",
        "--max-hold",
        "7s",
        "--ttl",
        "30s",
        "--",
        "true",
    ];
    assert_eq!(end(&mut redlatch(&servers, &both)).code, 2);
    await_keys(&servers, &[]);
}

#[test]
fn no_quorum_is_69() {
    let mut servers = Servers::start(3);
    servers[0].kill();
    assert_eq!(
        end(&mut redlatch(
            &servers,
            &["run", "name", "-n", "--", "true"]
        ))
        .code,
        0
    );
    servers[1].kill();
    for wait in [&["-n"][..], &["--wait", "300ms"]] {
        let arguments = [&["run", "name"], wait, &["--", "true"]].concat();
        let ended = end(&mut redlatch(&servers, &arguments));
        assert_eq!(ended.code, 69);
        assert!(
            ended.stderr.starts_with("redlatch: no quorum: "),
            "{}",
            ended.stderr
        );
    }
    await_keys(&servers[2..], &[]);
}

#[test]
fn a_lock_is_held_at_least_as_long_as_asked_for() {
    let servers = Servers::start(3);
    let arguments = ["run", "name", "--hold-at-least", "40s", "--", "true"];
    assert_eq!(end(&mut redlatch(&servers, &arguments)).code, 0);
    assert_eq!(
        end(&mut redlatch(
            &servers,
            &["run", "name", "-n", "--", "true"]
        ))
        .code,
        1
    );
    // Longer than max-ttl.
    let long = ["run", "other", "--hold-at-least", "14m", "--", "true"];
    assert_eq!(end(&mut redlatch(&servers, &long)).code, 0);
    let beyond = [
        "run",
        "third",
        "--max-hold",
        "1m",
        "--hold-at-least",
        "14m",
        "--",
        "true",
    ];
    let refused = end(&mut redlatch(&servers, &beyond));
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("--hold-at-least of 840s"),
        "{}",
        refused.stderr
    );
    let long = ["run", "fourth", "--ttl", "5m", "--", "true"];
    let refused = end(&mut redlatch(&servers, &long));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--max-ttl"), "{}", refused.stderr);
}

#[test]
fn a_name_may_be_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let servers = Servers::start(1);
    let name = OsStr::from_bytes(b"a\xff\n");
    let mut command = redlatch(&servers, &["run"]);
    command.arg(name).args([
        "--",
        "sh",
        "-c",
        "printf %s \"$REDLATCH_LOCK\" | od -An -tx1",
    ]);
    assert_eq!(end(&mut command).stdout.trim(), "61 ff 0a");
    let usage = bare()
        .arg("run")
        .arg(name)
        .output()
        .expect("the command starts");
    assert_eq!(usage.status.code(), Some(2));
}
