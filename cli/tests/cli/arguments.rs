//! Arguments, files of nodes, help, and the exit code of what cannot be used.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::program::{bare, end, redlatch};
use support::program::in_memory;
use support::redis::Server;
use support::servers::Servers;
use support::waiters::await_keys;

#[test]
fn help_and_the_version_go_to_stdout() {
    for arguments in [&["--help"][..], &["run", "--help"], &["help", "run"]] {
        let help = end(bare().args(arguments));
        assert_eq!((help.code, &*help.stderr), (0, ""));
        // The first of them is where the others are.
        let is_run = arguments.contains(&"run");
        assert_eq!(
            help.stdout.contains("\n  redlatch run nightly-report "),
            is_run
        );
        for text in ["Exit codes:", "  75     the lock was lost", "REDLATCH"] {
            assert!(help.stdout.contains(text), "{text}: {}", help.stdout);
        }
    }
    let version = end(bare().arg("--version"));
    let expected = concat!("redlatch ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((version.code, &*version.stdout), (0, expected));
}

/// Arguments that are refused, and what the line on stderr names.
const WRONG: [(&[&str], &str); 13] = [
    (&["run", "name"], "COMMAND"),
    (
        &["run", "name", "--ttl", "soon", "--", "true"],
        "not a duration",
    ),
    (
        &["run", "name", "--wait", "1s", "--no-wait", "--", "true"],
        "cannot be used with",
    ),
    (
        &["run", "name", "--shared", "--permits", "2", "--", "true"],
        "cannot be used with",
    ),
    (&["run", "name", "-E", "256", "--", "true"], "256"),
    (&["walk"], "walk"),
    (
        &["run", "name", "--", "true"],
        "no nodes: name them with --node, in REDLATCH_NODES",
    ),
    (
        &["--node", "http://a", "run", "name", "--", "true"],
        "http:// is not a URL of a Redis",
    ),
    (
        &["--config", "/nowhere/file", "run", "n", "--", "true"],
        "/nowhere/file: no such file",
    ),
    (
        &["--node", "redis://a", "run", "", "--", "true"],
        "the resource's name is empty",
    ),
    (
        &[
            "--node",
            "redis://a",
            "run",
            "n",
            "--ttl",
            "2m",
            "--",
            "true",
        ],
        "--max-ttl",
    ),
    (
        &[
            "--node",
            "redis://a",
            "run",
            "n",
            "--ttl",
            "1ms",
            "--",
            "true",
        ],
        "ttl",
    ),
    (
        &[
            "--node",
            "redis://a",
            "run",
            "n",
            "--permits",
            "0",
            "--",
            "true",
        ],
        "permits",
    ),
];

#[test]
fn wrong_usage_is_code_2_and_a_line_on_stderr() {
    for (arguments, text) in WRONG {
        let ended = end(bare().args(arguments));
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
    assert_eq!(end(&mut bare()).code, 2);
}

#[test]
fn what_a_message_quotes_does_not_act_on_the_terminal() {
    let name = "/\x1b[31m\u{202e}/no";
    for arguments in [
        &["--node", "redis://a", "run", "n", "--", name][..],
        &["--config", name, "status"],
        &[
            "--node",
            "redis://a",
            "run",
            "n",
            "--ttl",
            name,
            "--",
            "true",
        ],
        &[name],
    ] {
        let ended = end(bare().args(arguments));
        let is_raw = |text: &str| text.contains('\x1b') || text.contains('\u{202e}');
        assert!(!is_raw(&ended.stderr), "{arguments:?}: {:?}", ended.stderr);
        assert!(
            ended.stderr.contains("/no"),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn no_text_shows_a_password() {
    for arguments in [
        &["redis://:Zq7x@a", "run", "n", "--", "true"][..],
        &["--config", "redis://:Zq7x@a", "status"],
        &["--node", "redis://a", "run", "n", "--", "redis://:Zq7x@a"],
        &["run", "n", "redis://:Zq7x@a", "--", "true"],
        &["run", "n", "u:Zq7x@a:6379", "--", "true"],
        &["status", ":Zq7x@a"],
        &["--node", "u:Zq7x@a", "status"],
        &["--nodes=redis://:Zq7x@a", "run", "n", "--", "true"],
        &["--node", "redis://:Zq7x@a:port", "run", "n", "--", "true"],
        &[
            "--node",
            "redis://u:Zq7x@127.0.0.1:1",
            "run",
            "n",
            "--no-wait",
            "--",
            "true",
        ],
    ] {
        let ended = end(bare().args(arguments));
        assert_ne!(ended.code, 0);
        assert!(
            !ended.stderr.contains("Zq7x"),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.is_empty(), "{arguments:?}");
    }
    let folder = in_memory();
    let file = folder.path().join("nodes");
    for text in [
        "nodes = 'redis://:Zq7x@a:port'",
        "redis://:Zq7x@a",
        "node = 'redis://:Zq7x@a'",
    ] {
        fs::write(&file, text).expect("the folder is there");
        let ended = end(bare()
            .arg("--config")
            .arg(&file)
            .args(["run", "n", "--", "true"]));
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(!ended.stderr.contains("Zq7x"), "{}", ended.stderr);
    }
}

#[test]
fn nodes_come_from_arguments_before_a_file_before_the_environment_before_the_users_file() {
    let servers = Servers::start(1);
    let url = &servers.urls()[0];
    let folder = in_memory();
    let good = folder.path().join("good");
    let bad = folder.path().join("bad");
    fs::write(
        &good,
        format!("# a node\nnodes = {url:?}\nrestart_guard = false\n"),
    )
    .expect("a folder");
    fs::write(&bad, "nodes = 'http://wrong'\nrestart_guard = false\n").expect("a folder");
    let work = ["run", "name", "--", "true"];

    let code = |command: &mut std::process::Command| end(command.args(work)).code;
    assert_eq!(code(bare().arg("--config").arg(&good)), 0);
    assert_eq!(
        code(
            bare()
                .arg("--config")
                .arg(&good)
                .env("REDLATCH_NODES", "http://wrong")
        ),
        0
    );
    assert_eq!(
        code(bare().arg("--config").arg(&bad).args(["--node", url])),
        0
    );
    assert_eq!(
        code(bare().arg("--config").arg(&bad).env("REDLATCH_NODES", url)),
        2
    );

    fs::create_dir(folder.path().join(".config")).expect("a folder");
    fs::copy(&good, folder.path().join(".config/redlatch.conf")).expect("a file");
    assert_eq!(code(bare().env("HOME", folder.path())), 0);
    fs::copy(&bad, folder.path().join("redlatch.conf")).expect("a file");
    let home = |command: &mut std::process::Command| {
        command
            .env("HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path());
    };
    let mut command = bare();
    home(&mut command);
    assert_eq!(code(&mut command), 2);
    let mut command = redlatch(&servers, &[]);
    home(&mut command);
    assert_eq!(code(&mut command), 0);
}

#[test]
fn the_prefix_of_keys_comes_from_where_the_other_settings_do() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let file = folder.path().join("redlatch.conf");
    let nodes = format!("nodes = {:?}\nrestart_guard = false\n", servers.urls()[0]);
    let with_file = format!("{nodes}key_prefix = 'file:'\n");
    let check = |text: &str, arguments: &[&str], variable: &str, expected: &str| {
        fs::write(&file, text).expect("the folder is there");
        let mut command = bare();
        command
            .env("XDG_CONFIG_HOME", folder.path())
            .env("REDLATCH_KEY_PREFIX", variable);
        let work = ["run", "name", "--hold-at-least", "50s", "true"];
        let ended = end(command.args(arguments).args(work));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        await_keys(&servers, &[expected]);
        servers[0].command(&["FLUSHALL"]);
    };
    let config = ["--config", file.to_str().expect("text")];
    let option = [&config[..], &["--key-prefix", "option:"]].concat();
    for (text, arguments, variable, expected) in [
        (&*nodes, &[][..], "", "name"),
        (&with_file, &[], "", "file:name"),
        (&with_file, &[], "variable:", "variable:name"),
        (&with_file, &config, "variable:", "file:name"),
        (&nodes, &config, "variable:", "variable:name"),
        (&with_file, &option, "variable:", "option:name"),
    ] {
        check(text, arguments, variable, expected);
    }
}

#[test]
fn a_file_with_a_password_that_all_users_can_read_is_used_with_a_warning() {
    let server = Server::start(&["--requirepass", "Zq7x"]);
    let folder = in_memory();
    let file = folder.path().join("nodes");
    let port = server.port();
    let with_password =
        format!("nodes = 'redis://:Zq7x@127.0.0.1:{port}'\nrestart_guard = false\n");
    let without = "nodes = 'redis://127.0.0.1:1'\n";
    // It has two clients, and gives one warning.
    let bench = &["bench", "--rounds", "2", "--handoffs", "2"][..];
    for (text, mode, arguments, is_open) in [
        (&*with_password, 0o644, bench, true),
        (&with_password, 0o604, &["status"], true),
        (&with_password, 0o640, bench, false),
        (&with_password, 0o600, &["status"], false),
        (without, 0o644, &["status"], false),
    ] {
        fs::write(&file, text).expect("the folder is there");
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("it is ours");
        let mut command = bare();
        let ended = end(command
            .args(["--node-timeout", "2s", "--config"])
            .arg(&file)
            .args(arguments));
        assert_eq!(
            ended.code,
            if text == without { 69 } else { 0 },
            "{}",
            ended.stderr
        );
        let is_warning = |line: &&str| line.starts_with("redlatch: warning: ");
        let warnings: Vec<_> = ended.stderr.lines().filter(is_warning).collect();
        assert_eq!(
            warnings.len(),
            usize::from(is_open),
            "{mode:o}: {}",
            ended.stderr
        );
        for warning in warnings {
            assert!(warning.contains("/nodes has a password, "), "{warning}");
            assert!(
                warning.contains(": chmod o-r ") && !warning.contains("Zq7x"),
                "{warning}"
            );
        }
    }
}
