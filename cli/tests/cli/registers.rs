//! `redlatch registers`: values that are written, read, listed and deleted.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use super::loss::with_short_rounds;
use super::program::{Ended, end, redlatch};
use super::terminal::in_terminal;
use serde_json::{Value, json};
use support::servers::Servers;

/// Servers in memory that are a group.
pub(crate) fn formed(count: usize) -> Servers {
    let servers = Servers::start(count);
    let ended = registers(&servers, &["form", "--in-memory"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    assert_eq!(ended.stdout, "the nodes are a group, and keep registers\n");
    servers
}

pub(crate) fn command(servers: &Servers, arguments: &[&str]) -> Command {
    redlatch(servers, &[&["registers"], arguments].concat())
}

#[track_caller]
pub(crate) fn registers(servers: &Servers, arguments: &[&str]) -> Ended {
    end(&mut command(servers, arguments))
}

/// The same with `--json`: the code, and the JSON, which is all that is printed.
#[track_caller]
pub(crate) fn registers_json(servers: &Servers, arguments: &[&str]) -> (i32, Value) {
    let ended = registers(servers, &[arguments, &["--json"]].concat());
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.ends_with('\n'), "{}", ended.stdout);
    (
        ended.code,
        serde_json::from_str(&ended.stdout).expect("JSON"),
    )
}

/// Runs it to its end with these bytes as its stdin.
#[track_caller]
fn with_input(command: &mut Command, input: &[u8]) -> Output {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = command.spawn().expect("the command starts");
    let mut stdin = running.stdin.take().expect("it is piped");
    stdin.write_all(input).expect("it is read");
    drop(stdin);
    running.wait_with_output().expect("it ends")
}

/// Sets a register, and returns its version.
#[track_caller]
fn set(servers: &Servers, name: &str, value: &str) -> u64 {
    let ended = registers(servers, &["set", name, value]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let version = ended
        .stdout
        .rsplit_once(": version ")
        .map(|(_, version)| version.trim());
    version
        .and_then(|version| version.parse().ok())
        .expect("the number of a version")
}

#[test]
fn a_value_is_read_as_it_was_written_until_it_is_deleted() {
    let servers = formed(3);
    let first = set(&servers, "leader", "host-17");
    let ended = registers(&servers, &["get", "leader"]);
    assert_eq!(
        (ended.code, &*ended.stdout, &*ended.stderr),
        (0, "host-17", "")
    );
    let second = set(&servers, "leader", "-17");
    assert!(second > first);
    let (code, mut seen) = registers_json(&servers, &["get", "leader"]);
    let written = seen["written_unix_millis"].take();
    let none = Value::Null;
    let expected = json!({
        "name": "leader", "version": second, "fence": none, "value": "-17",
        "written_unix_millis": none,
    });
    assert_eq!((code, seen), (0, expected));
    assert!(
        written.as_u64().is_some_and(|it| it > 1_600_000_000_000),
        "{written}"
    );

    let ended = registers(&servers, &["delete", "leader"]);
    assert_eq!(
        (ended.code, ended.stdout),
        (0, format!("leader: deleted version {second}\n"))
    );
    for verb in ["get", "delete"] {
        let ended = registers(&servers, &[verb, "leader"]);
        assert_eq!((ended.code, &*ended.stdout), (4, ""));
        assert_eq!(
            ended.stderr,
            "redlatch: leader: there is no such register\n"
        );
    }
    let nothing = json!({
        "name": "leader", "version": none, "fence": none, "value": none,
        "written_unix_millis": none,
    });
    assert_eq!(registers_json(&servers, &["get", "leader"]), (4, nothing));
    let nothing = json!({ "name": "leader", "version": none, "deleted": false });
    assert_eq!(
        registers_json(&servers, &["delete", "leader"]),
        (4, nothing)
    );

    let (code, written) = registers_json(&servers, &["set", "leader", "host-18"]);
    let third = written["version"].as_u64().expect("a version");
    assert!(third > second, "versions go on");
    assert_eq!((code, &written["written"]), (0, &true.into()));
    let gone = json!({ "name": "leader", "version": third, "deleted": true });
    assert_eq!(registers_json(&servers, &["delete", "leader"]), (0, gone));
}

#[test]
fn only_the_version_that_was_seen_is_replaced() {
    let servers = formed(3);
    let cas = |version: &str, value: &str| {
        registers(&servers, &["cas", "once", "--version", version, value])
    };
    let refused = cas("64", "early");
    assert_eq!(refused.code, 5);
    assert_eq!(
        refused.stderr,
        "redlatch: once: nothing was written: there is no value\n"
    );
    let made = cas("none", "one");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let version = made
        .stdout
        .trim()
        .strip_prefix("once: version ")
        .expect("a version")
        .to_owned();
    for other in ["none", "64"] {
        let refused = cas(other, "two");
        assert_eq!((refused.code, &*refused.stdout), (5, ""));
        let text = format!("redlatch: once: nothing was written: its version is {version}\n");
        assert_eq!(refused.stderr, text);
    }
    let arguments = ["cas", "once", "--version", "none", "two"];
    let (code, refused) = registers_json(&servers, &arguments);
    let number: u64 = version.parse().expect("a number");
    assert_eq!(code, 5);
    assert_eq!(
        refused,
        json!({ "name": "once", "written": false, "version": number })
    );
    assert_eq!(registers(&servers, &["get", "once"]).stdout, "one");

    let (code, made) = registers_json(&servers, &["cas", "once", "two", "--version", &version]);
    assert_eq!((code, &made["written"]), (0, &true.into()));
    assert!(
        made["version"]
            .as_u64()
            .is_some_and(|version| version > number)
    );
    assert_eq!(registers(&servers, &["get", "once"]).stdout, "two");
}

#[test]
fn a_smaller_fencing_token_writes_nothing() {
    let servers = formed(3);
    let write =
        |token: &str, value: &str| registers(&servers, &["set", "report", "--fence", token, value]);
    assert_eq!(write("7", "seven").code, 0);
    assert_eq!(write("7", "seven again").code, 0);
    let stale = write("6", "late");
    assert_eq!((stale.code, &*stale.stdout), (6, ""));
    let text = "redlatch: report: nothing was written: the lock with the fencing token 6 is lost: \
                7 has written since\n";
    assert_eq!(stale.stderr, text);
    let (code, stale) = registers_json(&servers, &["set", "report", "--fence", "6", "late"]);
    assert_eq!(
        (code, stale),
        (6, json!({ "name": "report", "written": false, "fence": 7 }))
    );
    let (_, seen) = registers_json(&servers, &["get", "report"]);
    assert_eq!(
        (&seen["value"], &seen["fence"]),
        (&"seven again".into(), &7.into())
    );
}

#[test]
fn a_command_under_a_lock_writes_with_its_token() {
    let servers = formed(3);
    let script = "printf done | \"$0\" --node-timeout 2s registers set report \
                  --fence $REDLATCH_FENCING_TOKEN --json; echo $REDLATCH_FENCING_TOKEN";
    let program = env!("CARGO_BIN_EXE_redlatch");
    let run = [
        "run", "report", "--fenced", "--", "sh", "-c", script, program,
    ];
    let ended = end(&mut redlatch(&servers, &run));
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let token = ended.stdout.lines().last().expect("two lines");
    let (_, seen) = registers_json(&servers, &["get", "report"]);
    assert_eq!(
        (&seen["value"], seen["fence"].to_string()),
        (&"done".into(), token.to_owned())
    );
}

#[test]
fn bytes_go_through_stdin_and_stdout_unharmed() {
    let servers = formed(3);
    let all: Vec<u8> = (0..=255).collect();
    let long = vec![0xff; 16 * 1024];
    for (arguments, value) in [
        (&["set", "bytes"][..], &*all),
        (&["set", "bytes", "-"], b"a line\n"),
        (&["set", "bytes", "--fence", "1"], &long),
        (&["set", "bytes"], b""),
    ] {
        let ended = with_input(&mut command(&servers, arguments), value);
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            (ended.status.code(), &*text),
            (Some(0), ""),
            "{arguments:?}"
        );
        let read = command(&servers, &["get", "bytes"])
            .output()
            .expect("the command starts");
        assert_eq!(
            (read.status.code(), &*read.stdout),
            (Some(0), value),
            "{arguments:?}"
        );
        let (_, seen) = registers_json(&servers, &["get", "bytes"]);
        let expected = std::str::from_utf8(value).map_or(json!(value), |text| json!(text));
        assert_eq!(seen["value"], expected);
    }
    let mut cas = command(&servers, &["cas", "other", "--version", "none"]);
    assert_eq!(with_input(&mut cas, &all).status.code(), Some(0));
    let read = command(&servers, &["get", "other"])
        .output()
        .expect("the command starts");
    assert_eq!(read.stdout, all);
}

#[test]
fn a_terminal_gets_a_value_that_does_not_act_on_it() {
    let servers = formed(1);
    let ended = with_input(&mut command(&servers, &["set", "odd"]), b"\x1b[31mred\xff");
    assert_eq!(ended.status.code(), Some(0));
    let ended = in_terminal(&servers, "registers get odd").end();
    assert_eq!((ended.code, &*ended.stdout), (0, "\\u{1b}[31mred\\xff\r\n"));
}

fn is_of_this_minute(unix_millis: &Value) -> bool {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("it is after 1970")
        .as_secs();
    unix_millis
        .as_u64()
        .is_some_and(|millis| now - millis / 1000 < 60)
}

#[test]
fn the_list_has_the_registers_with_a_value() {
    let servers = formed(3);
    let list = |more: &[&str]| {
        let ended = registers(&servers, &[&["list"], more].concat());
        assert_eq!((ended.code, &*ended.stderr), (0, ""));
        ended.stdout
    };
    assert_eq!(list(&[]), "0 registers\n");
    assert_eq!(registers_json(&servers, &["list"]), (0, json!([])));
    let b = set(&servers, "jobs:b", "four");
    assert_eq!(
        registers(&servers, &["set", "jobs:a", "--fence", "7", ""]).code,
        0
    );
    let c = set(&servers, "c\u{1b}", "1");
    set(&servers, "gone", "1");
    assert_eq!(registers(&servers, &["delete", "gone"]).code, 0);

    let text = list(&[]);
    let mut lines = text.lines();
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("3 registers")),
        "{text}"
    );
    let cells: Vec<Vec<&str>> = lines
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        cells[0],
        ["REGISTER", "VERSION", "FENCE", "LENGTH", "WRITTEN"]
    );
    assert_eq!(cells[1][..4], ["c\\u{1b}", &*c.to_string(), "-", "1"]);
    assert_eq!((cells[2][0], &cells[2][2..4]), ("jobs:a", &["7", "0"][..]));
    assert_eq!(cells[3][..4], ["jobs:b", &*b.to_string(), "-", "4"]);
    assert!(
        cells[1..].iter().all(|row| row.last() == Some(&"ago")),
        "{text}"
    );

    let text = list(&["jobs:*"]);
    assert!(
        text.starts_with("2 registers\n") && text.lines().count() == 5,
        "{text}"
    );
    let (_, rows) = registers_json(&servers, &["list", "jobs:*"]);
    let none = Value::Null;
    let written = rows[1]["written_unix_millis"].clone();
    assert!(is_of_this_minute(&written), "{written}");
    let expected = json!({
        "name": "jobs:b", "version": b, "fence": none, "length": 4,
        "written_unix_millis": written, "error": none,
    });
    assert_eq!(
        (rows.as_array().map(Vec::len), &rows[1]),
        (Some(2), &expected)
    );
    assert_eq!(
        (&rows[0]["fence"], &rows[0]["length"]),
        (&7.into(), &0.into())
    );
}

#[test]
fn what_a_deletion_leaves_on_a_node_that_is_away_is_swept() {
    let servers = formed(3);
    set(&servers, "stays", "1");
    set(&servers, "gone", "1");
    servers[2].pause();
    assert_eq!(registers(&servers, &["delete", "gone"]).code, 0);
    // These ask the node that is away again and again.
    let short = |verb| end(&mut with_short_rounds(&servers, &["registers", verb]));
    let text = short("list").stdout;
    let summary = "1 register; deleted ones of which something is left: 1 (`redlatch registers \
                   sweep` removes it)\n";
    assert!(
        text.starts_with(summary) && !text.contains("\ngone"),
        "{text}"
    );
    let text = short("sweep").stdout;
    let expected =
        "1 register; deleted ones: 0 removed, 1 left (a node did not answer, or refused)\n";
    assert_eq!(text, expected);
    servers[2].resume();
    let swept = json!({ "deleted": 0, "values": 1, "removed": 1, "left": 0 });
    assert_eq!(registers_json(&servers, &["sweep"]), (0, swept));
    let text = registers(&servers, &["sweep"]).stdout;
    assert_eq!(text, "1 register; deleted ones: 0 removed, 0 left\n");
    assert_eq!(registers(&servers, &["get", "stays"]).stdout, "1");
}

#[test]
fn what_was_written_long_ago_is_deleted_by_its_age() {
    let servers = formed(3);
    let _ = ["done:a", "done:b", "other"].map(|name| set(&servers, name, "1"));
    let sweep = |arguments: &[&str]| registers(&servers, &[&["sweep"], arguments].concat());
    assert_eq!(sweep(&["done:*"]).code, 2, "a pattern without an age");
    let text = sweep(&["done:*", "--older-than", "1d"]).stdout;
    assert_eq!(
        text,
        "0 deleted; 3 registers; deleted ones: 0 removed, 0 left\n"
    );
    let text = sweep(&["done:*", "--older-than", "0s"]).stdout;
    assert!(text.starts_with("2 deleted; 1 register; "), "{text}");
    let (_, swept) = registers_json(&servers, &["sweep", "--older-than", "0s"]);
    assert_eq!(
        (&swept["deleted"], &swept["values"]),
        (&1.into(), &0.into())
    );
    assert_eq!(registers(&servers, &["get", "other"]).code, 4);
}
