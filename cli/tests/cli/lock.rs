//! `redlatch lock`: a lock that is held until standard input ends or a signal comes.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::loss::{lose, with_short_rounds};
use super::program::{Ended, Running, end, redlatch, shell_script};
use super::show::json;
use super::terminal::in_terminal;
use rustix::process::Signal;
use std::io::Write;
use support::locks::{LONG, all_nodes_client, holders, pause, resume, take};
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

/// Starts it with a pipe as its standard input, which stays open.
#[track_caller]
fn start(servers: &Servers, more: &[&str]) -> Running {
    let arguments = [&["lock", "name"], more].concat();
    Running::start(redlatch(servers, &arguments).stdin(Stdio::piped()))
}

fn is_token(line: &str) -> bool {
    line.trim_end().parse::<u64>().is_ok_and(|token| token > 0)
}

#[test]
fn the_lock_is_held_until_standard_input_ends_and_its_token_is_printed() {
    let servers = Servers::start(3);
    let mut first = start(&servers, &["--owner", "me"]);
    let token = first.next_line();
    assert!(is_token(&token), "{token:?}");
    assert_eq!(holders(&servers, "name"), 3);
    let seen = end(&mut redlatch(&servers, &["inspect", "name"])).stdout;
    assert!(seen.starts_with("name: held by me for "), "{seen}");
    let refused = end(&mut redlatch(
        &servers,
        &["lock", "name", "--no-wait", "--until-signal"],
    ));
    assert_eq!((refused.code, &*refused.stdout), (1, ""));
    assert!(
        refused
            .stderr
            .contains("name: another client holds the lock: me"),
        "{refused:?}"
    );

    let mut second = start(&servers, &["--wait", "5m", "--json"]);
    await_queued(&servers, "name", 1);
    // What is written does not end the input.
    let input = first.0.stdin.as_mut().expect("a pipe");
    input.write_all(b"text\n").expect("it is read");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(first.0.try_wait().expect("a child"), None);
    drop(first.0.stdin.take());
    let ended = first.end();
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (0, "", ""));

    let object = json(&second.next_line());
    let larger = object["fencing_token"]
        .as_u64()
        .map(|larger| larger.to_string() > token);
    assert_eq!(
        (&object["name"], larger),
        (&"name".into(), Some(true)),
        "{object}"
    );
    assert_eq!(object["permit"], serde_json::Value::Null);
    drop(second.0.stdin.take());
    assert_eq!(second.end().code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn signals_release_the_lock_with_0_and_end_the_waiting_with_128_plus_their_number() {
    let servers = Servers::start(3);
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let mut running = start(&servers, &[]);
        running.next_line();
        running.signal(Signal::USR1); // means nothing
        running.signal(signal);
        let ended = running.end();
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{signal:?}");
        await_keys(&servers, &[]);
        let held = take(&all_nodes_client(servers.urls()), "name", LONG);
        let running = start(&servers, &[]);
        await_queued(&servers, "name", 1);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(
            (ended.code, &*ended.stdout),
            (128 + number, ""),
            "{signal:?}"
        );
        await_queued(&servers, "name", 0);
        drop(held);
    }
}

#[test]
fn a_script_can_hold_a_lock_in_its_background() {
    let servers = Servers::start(1);
    // Its standard input is /dev/null there.
    let script = format!(
        "{} --no-restart-guard lock name --until-signal & read x; kill $!; wait $!; echo $?",
        env!("CARGO_BIN_EXE_redlatch")
    );
    let mut shell = Running::start(shell_script(&servers, &script).stdin(Stdio::piped()));
    assert!(is_token(&shell.next_line()));
    thread::sleep(Duration::from_millis(300));
    assert_eq!(holders(&servers, "name"), 1);
    drop(shell.0.stdin.take());
    assert_eq!(shell.end().stdout, "0\n");
    await_keys(&servers, &[]);
}

#[test]
fn an_input_that_has_ended_before_the_lock_is_held_is_refused() {
    let servers = Servers::start(1);
    let check = |ended: Ended| {
        assert_eq!((ended.code, &*ended.stdout), (2, ""), "{ended:?}");
        let text = "redlatch: name: not locked: standard input has ended";
        assert!(ended.stderr.starts_with(text), "{ended:?}");
        assert!(ended.stderr.contains("--until-signal"), "{ended:?}");
        await_keys(&servers, &[]);
    };
    check(end(&mut redlatch(&servers, &["lock", "name"])));
    let file = std::fs::File::open("/proc/self/status").expect("Linux has it");
    check(end(redlatch(&servers, &["lock", "name"]).stdin(file)));
    let script = format!(
        "{} --no-restart-guard lock name <&-",
        env!("CARGO_BIN_EXE_redlatch")
    );
    check(end(&mut shell_script(&servers, &script)));
    // The script has died while this waits: nobody is to get the lock for it.
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let mut waiting = start(&servers, &["--wait", "1h"]);
    await_queued(&servers, "name", 1);
    drop(waiting.0.stdin.take());
    let ended = waiting.end();
    await_queued(&servers, "name", 0);
    drop(held);
    check(ended);
}

#[test]
fn the_end_of_the_terminals_input_releases_the_lock() {
    let servers = Servers::start(1);
    let mut running = in_terminal(&servers, "lock name");
    running.next_line();
    assert_eq!(holders(&servers, "name"), 1);
    let keyboard = running.0.stdin.as_mut().expect("a pipe");
    keyboard
        .write_all(b"\x04")
        .and_then(|()| keyboard.flush())
        .expect("it is read");
    assert_eq!(running.end().code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn a_lost_lock_is_75_and_said() {
    let servers = Servers::start(3);
    let with = |more: &[&str]| {
        let arguments = [&["lock", "name", "--ttl", "3s", "--until-signal"], more].concat();
        let mut running = Running::start(&mut with_short_rounds(&servers, &arguments));
        running.next_line();
        running
    };
    let check = |running: Running| {
        let ended = running.end();
        assert_eq!((ended.code, &*ended.stdout), (75, ""));
        assert_eq!(ended.stderr, "redlatch: name: the lock was lost\n");
    };
    let running = with(&[]);
    lose(&servers);
    check(running);
    let running = with(&[]);
    pause(&servers, 2);
    check(running);
    resume(&servers, 2);
    check(with(&["--max-hold", "4s"]));
    await_keys(&servers, &[]);
}

#[test]
fn a_lock_is_kept_alive_and_readers_and_permits_are_side_by_side() {
    let servers = Servers::start(1);
    let arguments = ["lock", "name", "--permits", "2", "--ttl", "1500ms"];
    let mut command = with_short_rounds(&servers, &arguments);
    let mut short = Running::start(command.stdin(Stdio::piped()));
    let mut long = start(&servers, &["--permits", "2", "--json"]);
    let permit = json(&long.next_line())["permit"]
        .as_u64()
        .expect("a number");
    assert!(permit < 2);
    thread::sleep(Duration::from_secs(3));
    drop(long);
    let line = short.next_line();
    let numbers: Vec<u64> = line
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    assert!(numbers.len() == 2 && numbers[1] < 2, "{line}");
    drop(short.0.stdin.take());
    assert_eq!(short.end().code, 0);
}

#[test]
fn a_token_that_nobody_reads_holds_no_lock() {
    let servers = Servers::start(1);
    let hour = ["--hold-at-least", "1h"];
    let arguments = [&["lock", "name", "--until-signal"], &hour[..]].concat();
    let mut command = redlatch(&servers, &arguments);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let ended = end(command.stdout(full));
    assert_eq!(ended.code, 70, "{}", ended.stderr);
    await_keys(&servers, &[]);
}
