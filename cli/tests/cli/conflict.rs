//! `redlatch run` that does not get the lock: the exit code and the text say why.

use super::program::{Ended, Running, end, guarded, redlatch};
use super::terminal::in_guarded_terminal;
use rustix::process::Signal;
use std::process::Command;
use std::time::Instant;
use support::locks::{LONG, all_nodes_client, pause, resume, take};
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

/// `run` with these options, which must not run its command.
#[track_caller]
fn run(command: fn(&Servers, &[&str]) -> Command, servers: &Servers, more: &[&str]) -> Ended {
    let arguments = [&["run", "name"], more, &["--", "echo", "ran"]].concat();
    let ended = end(&mut command(servers, &arguments));
    assert_eq!(ended.stdout, "", "{ended:?}");
    ended
}

/// Holds a waiter in the queue of all servers that is never served.
#[track_caller]
fn waiter(servers: &Servers) -> Running {
    let running = Running::start(&mut guarded(servers, &["run", "name", "--", "true"]));
    await_queued(servers, "name", 1);
    running
}

#[track_caller]
fn interrupt(waiter: Running) {
    waiter.signal(Signal::INT);
    assert_eq!(waiter.end().code, 130);
}

#[test]
fn a_quarantine_is_reported_with_the_time_that_is_left() {
    let servers = Servers::start(3);
    let check = |more: &[&str]| {
        let ended = run(guarded, &servers, more);
        assert_eq!(ended.code, 71, "{more:?}: {ended:?}");
        let text = &ended.stderr;
        assert!(
            text.starts_with("redlatch: name: quarantined for another "),
            "{more:?}: {text}"
        );
        assert!(
            text.contains(" s: too few nodes have been up for max-ttl, "),
            "{text}"
        );
        assert!(
            text.contains("; --no-restart-guard does without the wait: for tests, "),
            "{text}"
        );
    };
    let all = || {
        check(&["--no-wait"]);
        // A job that ran nowhere is not a success.
        check(&["--no-wait", "-E", "0"]);
        check(&["--wait", "1500ms", "-E", "0"]);
        // It could not be granted within that time, and is not waited for.
        let start = Instant::now();
        check(&["--wait", "30s"]);
        assert!(start.elapsed() < LONG / 2);
        check(&["--no-wait", "--shared"]);
        check(&["--no-wait", "--permits", "2"]);
        check(&["--no-wait", "--fenced"]);
    };
    all();
    await_keys(&servers, &[]);
    let waiter = waiter(&servers);
    all();
    interrupt(waiter);
}

#[test]
fn a_lock_that_is_held_and_one_that_others_wait_for_have_different_codes() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = client
        .request("name")
        .owner("host-7")
        .ttl(LONG)
        .lock()
        .expect("it is free");
    let ended = run(redlatch, &servers, &["--no-wait"]);
    assert_eq!(ended.code, 1);
    let text = "redlatch: name: another client holds the lock: host-7 for another 4";
    assert!(ended.stderr.starts_with(text), "{}", ended.stderr);
    drop(held);

    // Reserved for a waiter that does not come.
    let reservation = format!("redlatch:reserved:{}", "w".repeat(20));
    for server in servers.iter() {
        server.command(&["SET", "name", &reservation, "PX", "50000"]);
    }
    let text = "redlatch: name: others wait for the lock and are served first\n";
    for (more, code) in [
        (&["--no-wait"][..], 3),
        (&["--no-wait", "--shared"], 3),
        (&["--no-wait", "-E", "99"], 99),
    ] {
        let ended = run(redlatch, &servers, more);
        assert_eq!((ended.code, &*ended.stderr), (code, text), "{more:?}");
    }
    let ended = run(redlatch, &servers, &["--no-wait", "-E", "0"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
}

#[test]
fn a_key_that_is_no_lock_is_not_reported_as_held() {
    let servers = Servers::start(3);
    let on_all = |words: &[&str]| {
        servers.iter().for_each(|server| {
            server.command(&["DEL", "name"]);
            server.command(words);
        });
    };
    let long = "x".repeat(1 << 20);
    for (words, kind) in [
        (&["RPUSH", "name", "x"][..], "it is not a string"),
        (&["HSET", "name", "field", "value"], "it is not a string"),
        (
            &["XADD", "name", "*", "field", "value"],
            "it is not a string",
        ),
        (&["SET", "name", "value"], "it has no ttl"),
        (&["SET", "name", "", "PX", "50000"], "it is an empty string"),
        (
            &["SET", "name", &long, "PX", "50000"],
            "it is longer than the value of any lock",
        ),
    ] {
        on_all(words);
        for more in [
            &["--no-wait"][..],
            &["--wait", "300ms"],
            &["--no-wait", "-E", "0"],
        ] {
            let ended = run(redlatch, &servers, more);
            assert_eq!(ended.code, 70, "{words:?} {more:?}: {ended:?}");
            let text = format!("redlatch: name: the key's value is not a lock: {kind}\n");
            assert_eq!(ended.stderr, text, "{more:?}");
        }
        if !words.contains(&"PX") {
            // A wait without a limit would never end.
            assert_eq!(run(redlatch, &servers, &[]).code, 70, "{words:?}");
        }
        let seen = end(&mut redlatch(&servers, &["inspect", "name"])).stdout;
        let line = format!("name: the key's value is not a lock: {kind}; nobody waits\n");
        assert!(seen.starts_with(&line), "{words:?}: {seen}");
        assert!(!seen.contains("unknown owner"), "{seen}");
        let json = end(&mut redlatch(&servers, &["inspect", "name", "--json"])).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["state"], "not_a_lock", "{json}");
        assert_eq!(json["not_a_lock"], kind, "{json}");
        assert_eq!(
            (&json["holders"], &json["nodes"][0]["not_a_lock"]),
            (&"[]".parse().unwrap(), &kind.into())
        );
    }
    for more in [&["--shared"][..], &["--permits", "2"], &["--fenced"]] {
        on_all(&["RPUSH", "name", "x"]);
        let ended = run(redlatch, &servers, &[&["--no-wait"], more].concat());
        assert_eq!(ended.code, 70, "{more:?}: {ended:?}");
        assert!(
            ended.stderr.contains("is not a lock: it is not a string"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_lock_of_another_program_is_shown_as_that() {
    let servers = Servers::start(3);
    for (value, text, program) in [
        (
            "3ZN5YNDuoiOLHpj9w3bxx7",
            "another program (likely redlock-py)",
            "redlock-py",
        ),
        ("of-another-program-here", "another program", "unknown"),
    ] {
        for server in servers.iter() {
            server.command(&["SET", "name", value, "PX", "50000"]);
        }
        let refused = run(redlatch, &servers, &["--no-wait"]);
        let line = format!("another client holds the lock: {text} for another ");
        assert!(
            refused.code == 1 && refused.stderr.contains(&line),
            "{refused:?}"
        );
        let seen = end(&mut redlatch(&servers, &["inspect", "name"])).stdout;
        assert!(
            seen.starts_with(&format!("name: held by {text} for another ")),
            "{seen}"
        );
        let json = end(&mut redlatch(&servers, &["inspect", "name", "--json"])).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let holder = &json["holders"][0];
        assert_eq!(
            (&holder["other_program"], holder["owner"].is_null()),
            (&program.into(), true)
        );
    }
}

#[test]
fn too_few_nodes_are_neither_held_nor_quarantined() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    pause(&servers, 2);
    let ended = run(
        redlatch,
        &servers,
        &["--no-wait", "-E", "0", "--node-timeout", "300ms"],
    );
    resume(&servers, 2);
    assert_eq!(ended.code, 69, "{ended:?}");
    assert!(
        ended.stderr.starts_with("redlatch: no quorum: "),
        "{}",
        ended.stderr
    );
    drop(held);
}

#[test]
fn commands_that_look_at_a_lock_say_that_it_is_quarantined() {
    let servers = Servers::start(3);
    let free = end(&mut guarded(&servers, &["inspect", "name"])).stdout;
    assert!(
        free.starts_with("name: free, quarantined for another "),
        "{free}"
    );
    let waiter = waiter(&servers);
    let seen = end(&mut guarded(&servers, &["inspect", "name"])).stdout;
    let text = "name: reserved for the first waiter, quarantined for another ";
    assert!(
        seen.starts_with(text) && seen.contains(" s; 1 waiter\n"),
        "{seen}"
    );
    let json = end(&mut guarded(&servers, &["inspect", "name", "--json"])).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(
        json["quarantine_seconds"]
            .as_f64()
            .is_some_and(|left| left > 1.0),
        "{json}"
    );
    let node = &json["nodes"][0]["quarantine_seconds"];
    assert!(node.as_f64().is_some_and(|left| left > 1.0), "{json}");
    let top = end(&mut guarded(&servers, &["top"])).stdout;
    assert!(
        top.contains("reserved for the first waiter, quarantined for another "),
        "{top}"
    );

    let mut second = in_guarded_terminal(&servers, "run name -- true");
    second.await_text("redlatch: --no-restart-guard does without the wait: for tests, ");
    second.await_text("second in line, quarantined for another ");
    second.await_text("; waiting for ");
    drop(second);
    interrupt(waiter);
}
