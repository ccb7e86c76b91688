//! Several locks that one command holds together, all or none.

use std::process::Stdio;

use super::loss::lose;
use super::program::{Running, end, redlatch};
use super::show::json;
use super::terminal::in_terminal;
use support::locks::{LONG, all_nodes_client, holders, take};
use support::servers::Servers;
use support::waiters::await_keys;

#[test]
fn all_locks_are_held_while_the_command_runs() {
    let servers = Servers::start(3);
    let script = "echo $REDLATCH_LOCK; read x; exit 5";
    let arguments = [
        "run", "b", "--also", "a", "--also", "c", "--", "sh", "-c", script,
    ];
    let mut running = Running::start(redlatch(&servers, &arguments).stdin(Stdio::piped()));
    running.await_line("b");
    for name in ["a", "b", "c"] {
        assert_eq!(holders(&servers, name), 3);
        let refused = end(&mut redlatch(&servers, &["run", name, "-n", "true"]));
        assert_eq!(refused.code, 1, "{refused:?}");
    }
    drop(running.0.stdin.take());
    assert_eq!(running.end().code, 5);
    await_keys(&servers, &[]);
}

#[test]
fn without_one_of_them_none_is_held_and_the_text_names_it() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "c", LONG);
    let arguments = ["run", "a", "--also", "b", "--also", "c", "-n", "true"];
    let refused = end(&mut redlatch(&servers, &arguments));
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused
            .stderr
            .starts_with("redlatch: c: another client holds the lock: ")
    );
    assert_eq!((holders(&servers, "a"), holders(&servers, "b")), (0, 0));
    let mut waiting = in_terminal(&servers, "run a --also c -- echo done");
    waiting
        .await_text("\r\x1b[Kredlatch: c: first in line, held by an unknown owner; waiting for ");
    drop(held);
    let ended = waiting.end();
    assert!(
        ended.code == 0 && ended.stdout.contains("done"),
        "{ended:?}"
    );
    await_keys(&servers, &[]);
}

#[test]
fn readers_and_permits_are_of_one_lock() {
    let servers = Servers::start(1);
    for more in [&["--shared"][..], &["--permits", "2"]] {
        let arguments = [&["run", "a", "--also", "b"], more, &["true"]].concat();
        let ended = end(&mut redlatch(&servers, &arguments));
        assert_eq!(ended.code, 2);
        assert!(
            ended.stderr.contains("cannot be used with"),
            "{}",
            ended.stderr
        );
    }
    let ended = end(&mut redlatch(&servers, &["run", "a", "--also", "", "true"]));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
}

#[test]
fn the_loss_of_one_stops_the_command() {
    let servers = Servers::start(3);
    let script = "echo ready; exec sleep 60";
    let arguments = [
        "run", "other", "--also", "name", "--ttl", "7s", "-c", script,
    ];
    let mut running = Running::start(&mut redlatch(&servers, &arguments));
    running.await_line("ready");
    lose(&servers);
    let ended = running.end();
    assert_eq!(ended.code, 75, "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("redlatch: other, name: the lock was lost"),
        "{ended:?}"
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_script_can_hold_several_with_one_token() {
    let servers = Servers::start(3);
    let arguments = ["lock", "a", "--also", "b", "--json"];
    let mut running = Running::start(redlatch(&servers, &arguments).stdin(Stdio::piped()));
    let object = json(&running.next_line());
    assert_eq!(
        (&object["name"], &object["also"]),
        (&"a".into(), &json("[\"b\"]"))
    );
    assert!(
        object["fencing_token"]
            .as_u64()
            .is_some_and(|token| token > 0)
    );
    assert_eq!((holders(&servers, "a"), holders(&servers, "b")), (3, 3));
    drop(running.0.stdin.take());
    assert_eq!(running.end().code, 0);
    await_keys(&servers, &[]);
}
