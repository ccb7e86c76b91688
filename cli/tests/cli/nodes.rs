//! Which nodes are named, where, and with which passwords.

use std::fs;

use super::program::{Running, bare, end};
use rustix::process::Signal;
use support::program::in_memory;
use support::redis::Server;
use support::servers::Servers;

#[test]
fn a_list_of_nodes_that_cannot_be_used_is_refused_for_what_is_wrong_with_it() {
    for (list, text) in [
        (
            "http://a",
            "entry 1: http:// is not a URL of a Redis server, expected redis://, ",
        ),
        (
            "rds://a,redis://b",
            "entry 1: unknown scheme 'rds', expected redis://, ",
        ),
        (
            "'redis://a,redis://b'",
            "entry 1: it begins with a quotation mark, ",
        ),
        (
            "redis://a,rds://b",
            "entry 2 does not begin with redis:// or another scheme",
        ),
    ] {
        let ended = end(bare().env("REDLATCH_NODES", list).arg("status"));
        assert_eq!(ended.code, 2);
        assert!(ended.stderr.contains(text), "{list}: {}", ended.stderr);
    }
    let ended = end(bare().args(["--node", "\"redis://a\"", "status"]));
    assert!(
        ended.stderr.contains("it begins with a quotation mark, "),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_password_among_the_arguments_is_warned_of_once() {
    let server = Server::start(&["--requirepass", "Zq7x"]);
    let url = server.url_of(":Zq7x");
    let doctor = &["doctor", "--lock", "name"][..];
    for (arguments, code) in [(&["status"][..], 0), (doctor, 9)] {
        let mut command = bare();
        command.args(["--no-restart-guard", "--node-timeout", "2s", "--node", &url]);
        let ended = end(command.args(arguments));
        let expected = "redlatch: warning: --node has a password, and every user can see \
                        arguments: name the nodes in REDLATCH_NODES or in a file\n";
        assert_eq!(
            (ended.code, &*ended.stderr),
            (code, expected),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn a_wrong_password_has_an_exit_code_of_its_own() {
    let servers = Servers::start_with(3, &["--requirepass", "Zq7x"]);
    let urls = |wrong: usize| {
        let password = |it| if it < wrong { ":wrong" } else { ":Zq7x" };
        let urls = servers
            .iter()
            .enumerate()
            .map(|(it, server)| server.url_of(password(it)));
        urls.collect::<Vec<_>>().join(",")
    };
    let code = |wrong: usize, arguments: &[&str]| {
        let mut command = bare();
        command
            .args(["--no-restart-guard", "--node-timeout", "2s"])
            .args(arguments);
        let ended = end(command.env("REDLATCH_NODES", urls(wrong)));
        assert!(!ended.stderr.contains("Zq7x"), "{}", ended.stderr);
        ended.code
    };
    for arguments in [
        &["run", "name", "true"][..],
        &["inspect", "name"],
        &["status"],
        &["top"],
    ] {
        assert_eq!(code(1, arguments), 0, "{arguments:?}");
        assert_eq!(code(2, arguments), 77, "{arguments:?}");
    }
    assert_eq!(code(3, &["registers", "get", "name"]), 77);
}

#[test]
fn a_folder_that_cannot_be_looked_into_has_no_file() {
    for (home, config) in [("/dev/null", None), ("/nowhere", Some("/dev/null/x"))] {
        let mut command = bare();
        command.env("HOME", home);
        config.map(|config| command.env("XDG_CONFIG_HOME", config));
        let ended = end(command.arg("status"));
        assert_eq!(ended.code, 2);
        let text = "redlatch: no nodes: name them with --node, in REDLATCH_NODES or in a file \
                    (/dev/null/";
        assert!(ended.stderr.starts_with(text), "{}", ended.stderr);
        let rest = "redlatch.conf: Not a directory (os error 20), /etc/redlatch.conf)\n";
        assert!(ended.stderr.ends_with(rest), "{}", ended.stderr);
    }
}

#[test]
fn a_file_has_what_run_and_lock_do_without_options() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let file = folder.path().join("redlatch.conf");
    let text = format!(
        "nodes = {:?}\nrestart_guard = false\nnode_timeout = '2s'\n\
         [lock]\nttl = '25s'\nwait = '200ms'\nowner = 'of-file'\n",
        servers.urls()[0]
    );
    fs::write(&file, text).expect("the folder is there");
    let command = |arguments: &[&str]| {
        let mut command = bare();
        command.arg("--config").arg(&file).args(arguments);
        command
    };
    let mut held = Running::start(&mut command(&["lock", "name", "--until-signal"]));
    held.next_line();
    let seen = end(&mut command(&["run", "name", "--", "true"]));
    assert_eq!(
        seen.code, 1,
        "it has waited for as long as the file says: {}",
        seen.stderr
    );
    let text = "redlatch: name: another client holds the lock: of-file for another 2";
    assert!(seen.stderr.starts_with(text), "{}", seen.stderr);
    held.signal(Signal::TERM);
    assert_eq!(held.end().code, 0);
    let mut held = Running::start(&mut command(&[
        "lock",
        "name",
        "--until-signal",
        "--owner",
        "me",
        "--ttl",
        "45s",
    ]));
    held.next_line();
    let seen = end(&mut command(&["run", "name", "-n", "true"])).stderr;
    assert!(seen.contains(" holds the lock: me for another 4"), "{seen}");
}
