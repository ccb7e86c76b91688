//! `redlatch acquire`, `extend` and `release`: a lock that outlives the commands, by its token.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use super::program::{Ended, end, redlatch, shell_script};
use super::show::json;
use rustix::process::{Pid, Signal, kill_process};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, gone, holders, pttl, take};
use support::servers::Servers;

/// Runs the command with this token in the environment.
fn with(token: &str, servers: &Servers, arguments: &[&str]) -> Ended {
    end(redlatch(servers, arguments).env("REDLATCH_TOKEN", token))
}

#[track_caller]
fn acquired(servers: &Servers, more: &[&str]) -> String {
    let ended = end(&mut redlatch(
        servers,
        &[&["acquire", "deploy", "--ttl", "50s"], more].concat(),
    ));
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    ended.stdout
}

#[test]
fn a_lock_outlives_the_command_that_acquires_it_and_goes_by_its_token() {
    let servers = Servers::start(3);
    let token = acquired(&servers, &["--owner", "job 7"]);
    assert!(
        token.starts_with("redlatch1.") && token.split_whitespace().count() == 1,
        "{token:?}"
    );
    // A majority has answered when a command ends, and the third may not have read it.
    assert!(eventually(LIMIT, || holders(&servers, "deploy") == 3));
    let refused = end(&mut redlatch(&servers, &["acquire", "deploy", "--no-wait"]));
    assert_eq!((refused.code, &*refused.stdout), (1, ""));
    assert!(
        refused
            .stderr
            .contains("another client holds the lock: job 7"),
        "{refused:?}"
    );

    let extended = with(&token, &servers, &["extend", "deploy", "--ttl", "60s"]);
    assert_eq!((extended.code, &*extended.stderr), (0, ""));
    // The minute less the round and the drift of clocks.
    let said = extended.stdout.strip_prefix("deploy: held for at least ");
    let seconds = said
        .and_then(|said| said.strip_suffix(" s from now\n"))
        .expect("seconds");
    assert!(
        (40..60).contains(&seconds.parse().expect("a number")),
        "{seconds}"
    );
    let is_longer = || {
        servers
            .iter()
            .filter(|server| pttl(server, "deploy") > 50_000)
            .count()
            >= 2
    };
    assert!(is_longer());
    let more = redlatch(&servers, &["extend", "deploy", "--token", token.trim_end()]).output();
    assert_eq!(Ended::from(more.expect("it starts")).code, 0);
    assert!(is_longer(), "nothing is shortened");

    let released = with(&token, &servers, &["release", "deploy"]);
    assert_eq!(
        (released.code, &*released.stdout),
        (0, "deploy: released\n"),
        "{released:?}"
    );
    assert!(gone(&servers, "deploy"));
    for again in [&["extend", "deploy"][..], &["release", "deploy"]] {
        let late = with(&token, &servers, again);
        assert_eq!((late.code, &*late.stdout), (75, ""), "{late:?}");
        assert!(
            late.stderr.contains("the lock \"deploy\" is lost"),
            "{late:?}"
        );
    }
    assert_eq!(holders(&servers, "deploy"), 0);
}

#[test]
fn a_script_of_several_steps_holds_a_lock_between_them() {
    let servers = Servers::start(3);
    let program = env!("CARGO_BIN_EXE_redlatch");
    let script = "set -e
        r() { \"$0\" --no-restart-guard --node-timeout 2s \"$@\"; }
        REDLATCH_TOKEN=$(r acquire deploy --fenced)
        export REDLATCH_TOKEN
        r extend deploy > /dev/null
        r inspect deploy
        r release deploy";
    let ended = end(shell_script(&servers, script).arg(program));
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    let (held, released) = ended
        .stdout
        .split_once("deploy: released")
        .expect("it was released");
    assert!(
        held.starts_with("deploy: held by ") && released == "\n",
        "{ended:?}"
    );
    assert!(gone(&servers, "deploy"));
}

#[test]
fn only_who_has_the_token_extends_and_releases() {
    let servers = Servers::start(3);
    let token = acquired(&servers, &[]);
    let other = end(&mut redlatch(
        &servers,
        &["acquire", "other", "--ttl", "50s"],
    ))
    .stdout;
    for verb in ["extend", "release"] {
        let refused = with(&other, &servers, &[verb, "deploy"]);
        assert_eq!((refused.code, &*refused.stdout), (2, ""), "{refused:?}");
        assert!(
            refused
                .stderr
                .contains("the token is not that of this lock"),
            "{refused:?}"
        );
        let without = end(&mut redlatch(&servers, &[verb, "deploy"]));
        assert_eq!(without.code, 2);
        assert!(
            without.stderr.contains("no token: name it with --token"),
            "{without:?}"
        );
        let mistyped = with("redlatch1.s3cret", &servers, &[verb, "deploy"]);
        assert_eq!(mistyped.code, 2);
        assert!(!mistyped.stderr.contains("s3cret"), "{mistyped:?}");
    }
    assert_eq!(holders(&servers, "deploy"), 3);
    let both = with(
        &token,
        &servers,
        &["release", "deploy", "--force", "--token", "x"],
    );
    assert_eq!(both.code, 2);
    // By force it goes without.
    let forced = end(&mut redlatch(
        &servers,
        &["release", "deploy", "--force", "--yes"],
    ));
    assert_eq!((forced.code, &*forced.stdout), (0, "deploy: released\n"));
}

#[test]
fn numbers_and_other_names_go_with_a_token() {
    let servers = Servers::start(3);
    let line = acquired(&servers, &["--permits", "2", "--fenced"]);
    let words: Vec<_> = line.split_whitespace().collect();
    let [token, fence, "0" | "1"] = words[..] else {
        panic!("{line:?}")
    };
    assert!(fence.parse::<u64>().is_ok_and(|fence| fence > 0));
    assert_eq!(
        with(&line, &servers, &["extend", "deploy"]).code,
        0,
        "the whole line is not a mistake"
    );
    assert_eq!(with(token, &servers, &["release", "deploy"]).code, 0);

    let object = json(&acquired(
        &servers,
        &["--also", "stock", "--fenced", "--json"],
    ));
    assert_eq!(
        (&object["name"], &object["also"][0]),
        (&"deploy".into(), &"stock".into())
    );
    assert!(object["fencing_token"].as_u64() > fence.parse().ok() && object["permit"].is_null());
    let token = object["token"].as_str().expect("a token");
    let few = ["deploy", "stock"].map(|name| vec![name]);
    let others = [
        vec!["deploy", "--also", "third"],
        vec!["stock", "--also", "deploy", "--also", "x"],
    ];
    for names in few.into_iter().chain(others) {
        for verb in ["extend", "release"] {
            let refused = with(token, &servers, &[&[verb], &names[..]].concat());
            assert_eq!(
                (refused.code, &*refused.stdout),
                (2, ""),
                "{verb} {names:?}"
            );
        }
    }
    assert_eq!(
        [holders(&servers, "deploy"), holders(&servers, "stock")],
        [3, 3]
    );
    let all = ["release", "deploy", "--also", "stock"];
    assert_eq!(with(token, &servers, &all).code, 0);
    assert!(gone(&servers, "deploy") && gone(&servers, "stock"));
}

/// A pipe that is full, for the output of a command.
fn full_pipe() -> (File, File) {
    let (reader, writer) = rustix::pipe::pipe().expect("two descriptors");
    let mut writer = File::from(writer);
    writer
        .write_all(&[b'x'; 65_536])
        .expect("a pipe has room for that, and no more");
    (File::from(reader), writer)
}

#[test]
fn a_signal_ends_a_command_whose_output_nobody_reads_and_releases_its_lock() {
    let servers = Servers::start(3);
    let (reader, writer) = full_pipe();
    let mut command = redlatch(&servers, &["acquire", "deploy", "--ttl", "50s"]);
    let mut child = command.stdout(writer).spawn().expect("it starts");
    assert!(
        eventually(LIMIT, || holders(&servers, "deploy") == 3),
        "it holds the lock"
    );
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(128 + 15));
    assert!(gone(&servers, "deploy"));
    drop(reader);
}

#[test]
fn a_token_that_was_read_too_late_is_that_of_a_lost_lock() {
    let servers = Servers::start(3);
    let (mut reader, writer) = full_pipe();
    let mut command = redlatch(&servers, &["acquire", "deploy", "--ttl", "8s"]);
    let mut child = command
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    drop(command);
    assert!(
        eventually(LIMIT, || holders(&servers, "deploy") == 3),
        "it holds the lock"
    );
    assert!(
        eventually(LIMIT, || holders(&servers, "deploy") == 0),
        "its ttl has passed"
    );
    reader.read_to_end(&mut Vec::new()).expect("it ends");
    assert_eq!(child.wait().expect("it ends").code(), Some(75));
}

#[test]
fn a_lock_whose_token_nobody_gets_is_released() {
    let servers = Servers::start(3);
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let mut command = redlatch(&servers, &["acquire", "deploy", "--ttl", "50s"]);
    let ended = end(command.stdout(full).stderr(Stdio::piped()));
    assert_ne!(ended.code, 0);
    assert!(gone(&servers, "deploy"));
    let held = take(&all_nodes_client(servers.urls()), "deploy", LONG);
    let late = end(&mut redlatch(
        &servers,
        &["acquire", "deploy", "--wait", "100ms"],
    ));
    assert_eq!(late.code, 1, "{late:?}");
    drop(held);
    let refused = end(&mut redlatch(
        &servers,
        &["acquire", "deploy", "--max-hold", "1h"],
    ));
    assert_eq!(refused.code, 2);
}
