//! `redlatch registers`: nodes that keep no registers, nodes that do not answer, and arguments that
//! cannot be used.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use super::program::{bare, end};
use super::registers::{command, formed, registers};
use support::redis::Server;
use support::servers::Servers;

/// Settings with which a server forgets nothing that it has answered.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// All subcommands that need a group.
const VERBS: [&[&str]; 8] = [
    &["list"],
    &["get", "name"],
    &["set", "name", "value"],
    &["cas", "name", "--version", "none", "value"],
    &["delete", "name"],
    &["sweep"],
    &["repair"],
    &["trust", "redis://127.0.0.1:1"],
];

#[test]
fn nodes_that_are_no_group_keep_no_registers() {
    let servers = Servers::start(3);
    for verb in VERBS {
        let ended = registers(&servers, verb);
        assert_eq!((ended.code, &*ended.stdout), (78, ""), "{verb:?}");
        assert!(
            ended.stderr.contains("(redlatch registers form)"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn nodes_that_would_forget_values_are_a_group_only_if_that_is_accepted() {
    let servers = Servers::start(3);
    let ended = registers(&servers, &["form"]);
    assert_eq!((ended.code, &*ended.stdout), (78, ""));
    for url in servers.urls() {
        assert!(ended.stderr.contains(&url), "{}", ended.stderr);
    }
    assert!(
        ended.stderr.ends_with("(--in-memory accepts that)\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        registers(&servers, &["get", "name"]).code,
        78,
        "they are none yet"
    );
    let ended = registers(&servers, &["form", "--in-memory", "--json"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!({ "formed": true, "in_memory": true })
    );

    let again = registers(&servers, &["form", "--in-memory"]);
    assert_eq!((again.code, &*again.stdout), (78, ""));
    assert_eq!(
        again.stderr,
        "redlatch: the nodes are a group for registers already\n"
    );
}

#[test]
fn a_group_of_servers_that_keep_all_that_they_answer_outlives_a_restart() {
    let mut servers = Servers::start_with(3, &DURABLE);
    let ended = registers(&servers, &["form"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    assert_eq!(registers(&servers, &["set", "name", "value"]).code, 0);
    servers.iter_mut().for_each(Server::kill);
    servers.iter_mut().for_each(Server::restart);
    let ended = registers(&servers, &["get", "name"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (0, "value"),
        "{}",
        ended.stderr
    );
}

#[test]
fn another_number_of_nodes_is_another_group() {
    let servers = formed(3);
    let urls = servers.urls()[..2].join(",");
    let ended = end(bare().env("REDLATCH_NODES", urls).args([
        "--node-timeout",
        "2s",
        "registers",
        "get",
        "name",
    ]));
    assert_eq!(ended.code, 78);
    assert!(
        ended.stderr.contains("belongs to another group of nodes"),
        "{}",
        ended.stderr
    );
}

#[test]
fn too_few_nodes_are_no_quorum() {
    let mut servers = formed(3);
    servers[0].kill();
    servers[1].kill();
    // The last one names a node, which is none of these.
    for verb in VERBS[..7].iter().copied().chain([&["form"][..]]) {
        let ended = registers(&servers, verb);
        assert_eq!(
            (ended.code, &*ended.stdout),
            (69, ""),
            "{verb:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.starts_with("redlatch: no quorum: "),
            "{}",
            ended.stderr
        );
    }
}

/// A proxy that ends a connection on which more than this arrives at once.
fn short_pipe(port: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("redis://{}", listener.local_addr().expect("it has one"));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                return;
            };
            let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else {
                return;
            };
            thread::spawn(move || copy(from, to, 12 * 1024));
            thread::spawn(move || copy(server, client, usize::MAX));
        }
    });
    url
}

fn copy(mut source: TcpStream, mut sink: TcpStream, most: usize) {
    let mut chunk = [0; 16 * 1024];
    while let Ok(read @ 1..) = source.read(&mut chunk) {
        if read > most || sink.write_all(&chunk[..read]).is_err() {
            break;
        }
    }
    let _ = (
        source.shutdown(Shutdown::Both),
        sink.shutdown(Shutdown::Both),
    );
}

#[test]
fn a_change_that_may_have_been_made_has_a_code_of_its_own() {
    let servers = formed(3);
    // The servers know the scripts from now on.
    assert_eq!(registers(&servers, &["set", "name", "short"]).code, 0);
    let urls: Vec<String> = servers
        .iter()
        .map(|server| short_pipe(server.port()))
        .collect();
    let long = "x".repeat(16 * 1024);
    let set = |value: &str| {
        let arguments = ["--node-timeout", "1s", "registers", "set", "name", value];
        end(bare().env("REDLATCH_NODES", urls.join(",")).args(arguments))
    };
    assert_eq!(set("short again").code, 0, "it passes");
    let ended = set(&long);
    assert_eq!((ended.code, &*ended.stdout), (76, ""), "{}", ended.stderr);
    let text = "redlatch: the change may have been made: no quorum: ";
    assert!(ended.stderr.starts_with(text), "{}", ended.stderr);
}

#[test]
fn data_of_another_program_is_an_error_and_a_line_of_the_list() {
    let servers = formed(3);
    assert_eq!(registers(&servers, &["set", "good", "value"]).code, 0);
    for server in servers.iter() {
        server.command(&["SET", ":redlatch:register:bad", "x"]);
        server.command(&["SET", ":redlatch:promise:bad", "x"]);
    }
    let ended = registers(&servers, &["get", "bad"]);
    assert_eq!((ended.code, &*ended.stdout), (70, ""));
    assert!(
        ended.stderr.contains("another program has written the key"),
        "{}",
        ended.stderr
    );
    let ended = registers(&servers, &["list"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let last = ended.stdout.lines().last().expect("lines");
    let text = ": another program has written the key of the register";
    assert!(
        last.starts_with("bad: redis://") && last.ends_with(text),
        "{last}"
    );
    let ended = registers(&servers, &["list", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert!(
        rows[0]["version"].is_null() && rows[0]["error"].is_string(),
        "{rows}"
    );
    assert!(
        rows[1]["version"].is_u64() && rows[1]["error"].is_null(),
        "{rows}"
    );
}

#[test]
fn wrong_arguments_are_code_2_and_a_line_on_stderr() {
    let long = "x".repeat(16 * 1024 + 1);
    for (arguments, text) in [
        (&[][..], "Usage: redlatch registers"),
        (&["walk"], "walk"),
        (&["get"], "<NAME>"),
        (&["get", ""], "the resource's name is empty"),
        (&["list", ""], "the resource's name is empty"),
        (&["get", "a:redlatch:b"], ":redlatch:"),
        (
            &["set", "name", &long],
            "the value has 16385 bytes, a register has 16384 at most",
        ),
        (
            &["set", "name", "--fence", "0", "value"],
            "0 is not a fencing token",
        ),
        (
            &["set", "name", "--fence", "seven", "value"],
            "not the number of a fencing token",
        ),
        (&["set", "name", "value", "more"], "unexpected argument"),
        (&["cas", "name", "value"], "--version <VERSION>"),
        (
            &["cas", "name", "value", "--version", "5x"],
            "neither the number of a version nor",
        ),
        (&["cas", "name", "value", "--version", "-1"], "-1"),
        (
            &["delete", "name", "--version", "64"],
            "unexpected argument",
        ),
        (&["trust"], "<NODE>"),
        (&["status", "name"], "unexpected argument"),
    ] {
        // Nothing is sent: nobody listens there.
        let ended = end(bare()
            .args(["--node", "redis://127.0.0.1:1", "registers"])
            .args(arguments));
        assert_eq!(
            (ended.code, &*ended.stdout),
            (2, ""),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains(text),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
    let ended = end(bare().args(["registers", "list"]));
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.starts_with("redlatch: no nodes: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_input_without_an_end_is_refused() {
    let servers = formed(1);
    let Ok(zero) = File::open("/dev/zero") else {
        return;
    };
    let ended = end(command(&servers, &["set", "name"]).stdin(zero));
    assert_eq!((ended.code, &*ended.stdout), (2, ""));
    assert!(
        ended.stderr.contains("stdin has more than 16384 bytes"),
        "{}",
        ended.stderr
    );
    assert_eq!(registers(&servers, &["get", "name"]).code, 4);
}

#[test]
fn a_stdout_that_cannot_be_written_is_no_panic() {
    let servers = formed(1);
    assert_eq!(registers(&servers, &["set", "name", "value"]).code, 0);
    for arguments in [&["get", "name"][..], &["get", "name", "--json"], &["list"]] {
        let Ok(full) = File::options().write(true).open("/dev/full") else {
            return;
        };
        let output = command(&servers, arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(70), "{arguments:?}");
        assert!(
            output.stderr.starts_with(b"redlatch: stdout: "),
            "{arguments:?}"
        );
    }
}

#[test]
fn there_are_none_on_zookeeper() {
    for verb in VERBS.into_iter().chain([&["form"][..], &["status"]]) {
        // Nobody listens there.
        let ended = end(bare()
            .args(["--node", "zk://127.0.0.1:1/a", "registers"])
            .args(verb));
        assert_eq!((ended.code, &*ended.stdout), (2, ""), "{verb:?}");
        assert_eq!(
            ended.stderr, "redlatch: there are no registers on ZooKeeper\n",
            "{verb:?}"
        );
    }
}

#[test]
fn no_text_shows_a_password() {
    let servers = Servers::start_with(3, &["--requirepass", "Zq7x"]);
    let url = |server: &Server, password: &str| {
        format!("redis://:{password}@127.0.0.1:{}", server.port())
    };
    for (password, code) in [("Zq7x", 78), ("Zq7xWrong", 77)] {
        let urls: Vec<_> = servers.iter().map(|server| url(server, password)).collect();
        for verb in VERBS.into_iter().chain([&["form"][..]]) {
            let mut command = bare();
            command
                .env("REDLATCH_NODES", urls.join(","))
                .args(["--node-timeout", "2s"]);
            let ended = end(command.arg("registers").args(verb));
            assert_eq!(ended.code, code, "{verb:?}: {}", ended.stderr);
            assert!(
                !ended.stderr.is_empty() && !ended.stderr.contains("Zq7x"),
                "{verb:?}"
            );
        }
    }
}
