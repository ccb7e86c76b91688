//! `redlatch status`, `inspect`, `waiters` and `release`.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use super::program::{Running, bare, end, guarded, redlatch};
use super::terminal::in_terminal;
use serde_json::Value;
use support::locks::{LONG, all_nodes_client, holders, take};
use support::queue::finish;
use support::redis::Server;
use support::servers::Servers;
use support::waiters::await_queued;

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn status_shows_each_node_and_whether_a_majority_is_up() {
    let mut servers = Servers::start(3);
    let ended = end(&mut redlatch(&servers, &["status"]));
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let lines: Vec<_> = ended.stdout.lines().collect();
    // Three servers on one machine, which keep nothing.
    assert!(lines.len() > 4, "{}", ended.stdout);
    let is_warning = |line: &&&str| line.starts_with("WARNING redis://127.0.0.1:");
    assert_eq!(
        lines.iter().filter(is_warning).count(),
        lines.len() - 4,
        "{}",
        ended.stdout
    );
    assert!(lines[0].starts_with("NODE "), "{}", lines[0]);
    assert!(
        lines[1].starts_with(&format!("{}/0  yes  ", servers.urls()[0])),
        "{}",
        lines[1]
    );

    servers[0].kill();
    let ended = end(&mut redlatch(&servers, &["status", "--json"]));
    assert_eq!(ended.code, 0);
    let nodes = json(&ended.stdout);
    assert_eq!(nodes[0]["up"], false);
    assert!(
        nodes[0]["last_error"]
            .as_str()
            .is_some_and(|error| error.contains("refused"))
    );
    assert_eq!(
        (&nodes[1]["up"], &nodes[1]["last_error"]),
        (&true.into(), &Value::Null)
    );
    assert!(
        nodes[1]["round_trip_micros"]
            .as_u64()
            .is_some_and(|micros| micros > 0)
    );
    assert_eq!(
        nodes[1]["warnings"].as_array().map(Vec::is_empty),
        Some(false)
    );
    assert!(
        nodes[1]["clock_ahead_micros"]
            .as_i64()
            .is_some_and(|by| by.abs() < 1_000_000)
    );
    assert!(nodes[1]["version"].as_str().is_some());

    servers[1].kill();
    let ended = end(&mut redlatch(&servers, &["status"]));
    assert_eq!(ended.code, 69);
    assert_eq!(
        ended.stdout.matches("  no   ").count(),
        2,
        "{}",
        ended.stdout
    );
}

#[test]
fn status_shows_the_quarantine_and_no_password() {
    let server = Server::start(&["--requirepass", "Zq7x"]);
    let url = format!("redis://:Zq7x@127.0.0.1:{}", server.port());
    let run = |more: &[&str]| {
        let ended = end(bare()
            .env("REDLATCH_NODES", &url)
            .args(["--node-timeout", "2s", "status"])
            .args(more));
        assert!(!ended.stdout.contains("Zq7x") && !ended.stderr.contains("Zq7x"));
        ended.stdout
    };
    let quarantine = json(&run(&["--json"]))[0]["quarantine_seconds"].as_f64();
    assert!(
        quarantine.is_some_and(|left| left > 20.0 && left <= 61.0),
        "{quarantine:?}"
    );
    assert!(run(&[]).contains(" s  "), "{}", run(&[]));
}

#[test]
fn status_can_watch_until_nobody_reads() {
    let servers = Servers::start(1);
    let mut running = Running::start(&mut redlatch(&servers, &["status", "--watch", "--json"]));
    for _ in 0..2 {
        let line = running.next_line();
        assert_eq!(json(&line)[0]["up"], true);
    }
    drop(running.0.stdout.take());
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (141, ""));
}

#[test]
fn a_stdout_that_cannot_be_written_is_no_panic() {
    let servers = Servers::start(1);
    for arguments in [
        &["status"][..],
        &["inspect", "name"],
        &["waiters", "name"],
        &["--help"],
    ] {
        let full = File::options().write(true).open("/dev/full");
        if let Ok(full) = full {
            let output = redlatch(&servers, arguments).stdout(full).output();
            let output = output.expect("the command starts");
            assert_eq!(output.status.code(), Some(70), "{arguments:?}");
            let text = String::from_utf8(output.stderr).expect("text");
            assert!(
                text.starts_with("redlatch: stdout: No space left"),
                "{text}"
            );
        }
        let (reader, writer) = UnixStream::pair().expect("sockets can be made");
        drop(reader);
        let output = redlatch(&servers, arguments)
            .stdout(OwnedFd::from(writer))
            .output();
        let output = output.expect("the command starts");
        assert_eq!(
            (output.status.code(), &*output.stderr),
            (Some(141), &b""[..]),
            "{arguments:?}"
        );
    }
}

#[test]
fn inspect_shows_the_holder_on_each_node() {
    let servers = Servers::start(3);
    let inspect = |name: &str| end(&mut redlatch(&servers, &["inspect", name])).stdout;
    let details =
        |name: &str| json(&end(&mut redlatch(&servers, &["inspect", "--json", name])).stdout);
    assert!(inspect("name").starts_with("name: free; nobody waits\n\nNODE "));
    assert_eq!(details("name")["state"], "free");

    let client = all_nodes_client(servers.urls());
    let held = client
        .request("name")
        .owner("host-7")
        .ttl(LONG)
        .lock()
        .expect("it is free");
    let text = inspect("name");
    assert!(
        text.starts_with("name: held by host-7 for another 4"),
        "{text}"
    );
    assert_eq!(
        text.matches("  yes     host-7 for another ").count(),
        3,
        "{text}"
    );
    let seen = details("name");
    assert_eq!(
        (&seen["state"], &seen["holders"][0]["owner"]),
        (&"held".into(), &"host-7".into())
    );
    assert!(
        seen["holders"][0]["remaining_millis"]
            .as_u64()
            .is_some_and(|left| left > 30_000)
    );
    assert_eq!(seen["nodes"].as_array().map(Vec::len), Some(3));
    assert_eq!(seen["nodes"][2]["holder"]["owner"], "host-7");
    drop(held);

    let permit = client
        .request("gpu")
        .one_of(2)
        .owner("host-8")
        .ttl(LONG)
        .lock();
    let permit = permit.expect("it is free");
    let number = permit.slot().expect("it has one");
    let text = inspect("gpu");
    assert!(
        text.starts_with(&format!("gpu: shared by host-8 with permit {number} for ")),
        "{text}"
    );
    assert_eq!(details("gpu")["holders"][0]["permit"], number);
}

#[test]
fn a_quiet_look_tells_by_its_exit_code() {
    let mut servers = Servers::start(3);
    let code = |name: &str| {
        let ended = end(&mut redlatch(&servers, &["inspect", "-q", name]));
        assert_eq!((&*ended.stdout, &*ended.stderr), ("", ""));
        ended.code
    };
    assert_eq!(code("name"), 0);
    let client = all_nodes_client(servers.urls());
    let held = take(&client, "name", LONG);
    assert_eq!(code("name"), 1);
    drop(held);
    let reader = client
        .request("name")
        .shared()
        .ttl(LONG)
        .lock()
        .expect("it is free");
    assert_eq!(code("name"), 1);
    drop(reader);
    // A waiter that nobody serves.
    let quarantined = &mut guarded(&servers, &["run", "name", "--", "true"]);
    let waiter = Running::start(quarantined);
    await_queued(&servers, "name", 1);
    assert_eq!(code("name"), 3);
    drop(waiter);
    servers[0].command(&["SET", "other", "no lock"]);
    servers[1].command(&["SET", "other", "no lock"]);
    assert_eq!(code("other"), 70);
    let ended = end(&mut guarded(&servers, &["inspect", "--quiet", "third"]));
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (71, "", ""));
    let empty = end(&mut redlatch(&servers, &["inspect", "-q", ""]));
    assert!(empty.code == 2 && !empty.stderr.is_empty(), "{empty:?}");
    assert_eq!(
        end(&mut redlatch(
            &servers,
            &["inspect", "-q", "--json", "name"]
        ))
        .code,
        2
    );
    servers[0].kill();
    servers[1].kill();
    let ended = end(&mut redlatch(&servers, &["inspect", "-q", "name"]));
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (69, "", ""));
}

#[test]
fn waiters_are_shown_from_the_first_to_the_last() {
    let servers = Servers::start(3);
    let waiters = |more: &[&str]| {
        let arguments = [&["waiters", "name"], more].concat();
        end(&mut redlatch(&servers, &arguments)).stdout
    };
    assert_eq!(waiters(&[]), "name: nobody waits\n");
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let start = |owner: &str, more: &[&str], place: usize| {
        let arguments = [&["run", "name", "--owner", owner], more, &["--", "true"]].concat();
        let running = Running::start(&mut redlatch(&servers, &arguments));
        await_queued(&servers, "name", place);
        running
    };
    let all = [start("one", &[], 1), start("two", &["--shared"], 2)];
    let text = waiters(&[]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("PLACE  OWNER  WAITED"), "{text}");
    assert!(lines[1].starts_with("1      one    "), "{text}");
    assert!(
        lines[1].ends_with("  the lock  3") && lines[2].ends_with("  a share   3"),
        "{text}"
    );
    let list = json(&waiters(&["--json"]));
    assert_eq!(
        (&list["name"], &list["waiters"][1]["owner"]),
        (&"name".into(), &"two".into())
    );
    assert_eq!(list["waiters"][0]["is_for_share"], false);
    drop(held);
    all.into_iter()
        .for_each(|running| assert_eq!(running.end().code, 0));
}

#[test]
fn more_waiters_than_are_listed_are_counted() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let script = "for i = 1, 200 do local name = string.format('%020d', i)
        redis.call('ZADD', KEYS[1] .. ':redlatch:queue', i, name)
        local entry = i .. ' 100 900 channel host'
        redis.call('SET', KEYS[1] .. ':redlatch:lease:' .. name, entry, 'PX', 50000) end";
    for server in servers.iter() {
        server.command(&["EVAL", script, "1", "name"]);
    }
    let show = |arguments: &[&str]| end(&mut redlatch(&servers, arguments)).stdout;
    let table = show(&["waiters", "name"]);
    assert_eq!(table.lines().count(), 1 + 100 + 2, "{table}");
    assert!(table.ends_with("\n\n100 of 200 shown\n"), "{table}");
    let list = json(&show(&["waiters", "name", "--json"]));
    let shown = list["waiters"].as_array().map(Vec::len);
    assert_eq!((shown, &list["waiter_count"]), (Some(100), &200.into()));
    assert!(show(&["inspect", "name"]).contains("; 200 waiters\n"));
    assert_eq!(json(&show(&["inspect", "name", "--json"]))["waiters"], 200);
    let top = show(&["top"]);
    assert!(
        top.starts_with("1 lock, 200 waiting\n") && top.contains("name  200 "),
        "{top}"
    );
    assert_eq!(json(&show(&["top", "--json"]))[0]["waiters"], 200);
    drop(held);
}

#[test]
fn a_release_by_force_needs_a_terminal_or_yes() {
    let servers = Servers::start(3);
    let release = |more: &[&str]| {
        let arguments = [&["release", "name"], more].concat();
        end(&mut redlatch(&servers, &arguments))
    };
    assert_eq!(release(&[]).code, 2, "without --force");
    let free = release(&["--force"]);
    assert_eq!(
        (free.code, &*free.stdout),
        (1, "name: nothing was released\n")
    );

    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let refused = release(&["--force"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("use --yes"), "{}", refused.stderr);
    assert_eq!(holders(&servers, "name"), 3);
    let released = release(&["--force", "--yes"]);
    assert_eq!((released.code, &*released.stdout), (0, "name: released\n"));
    assert_eq!(holders(&servers, "name"), 0);
    drop(held);
    let json_text = release(&["--force", "--yes", "--json"]);
    assert_eq!(
        (json_text.code, &json(&json_text.stdout)["released"]),
        (1, &false.into())
    );

    servers[0].command(&["SET", "name", "no lock"]);
    servers[1].command(&["SET", "name", "no lock"]);
    assert_eq!(release(&["--force", "--yes"]).code, 70);
    assert_eq!(holders(&servers, "name"), 2);
}

#[test]
fn a_release_by_force_asks_and_removes_only_what_it_has_shown() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    for (answer, code, left) in [("n", 1, 3), ("", 1, 3), ("y", 0, 0)] {
        let held = client
            .request("name")
            .owner("host-7")
            .ttl(LONG)
            .lock()
            .expect("it is free");
        let mut asking = in_terminal(&servers, "release name --force");
        asking.await_text("Release it? [y/N] ");
        asking
            .0
            .stdin
            .as_mut()
            .expect("a pipe")
            .write_all(answer.as_bytes())
            .expect("it is read");
        asking
            .0
            .stdin
            .as_mut()
            .expect("a pipe")
            .write_all(b"\n")
            .expect("it is read");
        assert_eq!(asking.end().code, code, "{answer:?}");
        assert_eq!(holders(&servers, "name"), left, "{answer:?}");
        drop(held);
    }
    let held = take(&client, "name", LONG);
    let mut asking = in_terminal(&servers, "release name --force");
    asking.await_text("Release it? [y/N] ");
    let _ = held.release();
    let other = all_nodes_client(servers.urls());
    let next = finish(std::thread::spawn(move || other.lock("name", LONG)));
    asking
        .0
        .stdin
        .as_mut()
        .expect("a pipe")
        .write_all(b"y\n")
        .expect("it is read");
    assert_eq!(asking.end().code, 1);
    assert_eq!(holders(&servers, "name"), 3, "the next holder's");
    drop(next);
}

#[test]
fn no_quorum_and_bad_names_have_their_codes() {
    let mut servers = Servers::start(3);
    for command in ["inspect", "waiters"] {
        assert_eq!(end(&mut redlatch(&servers, &[command, ""])).code, 2);
    }
    servers[0].kill();
    servers[1].kill();
    for arguments in [
        &["inspect", "name"][..],
        &["waiters", "name"],
        &["release", "name", "--force"],
    ] {
        let ended = end(redlatch(&servers, arguments).stdin(Stdio::null()));
        assert_eq!((ended.code, &*ended.stdout), (69, ""), "{arguments:?}");
        assert!(
            ended.stderr.starts_with("redlatch: no quorum: "),
            "{}",
            ended.stderr
        );
    }
}
