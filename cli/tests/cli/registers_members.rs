//! `redlatch registers status`, `repair` and `trust`: nodes that have lost their votes, and servers
//! that take the place of others.

use super::loss::with_short_rounds;
use super::program::{Ended, bare, end, redlatch};
use super::registers::{formed, registers, registers_json};
use serde_json::{Value, json};
use support::redis::Server;
use support::servers::Servers;

/// The URL as it is shown.
fn shown(server: &Server) -> String {
    format!("{}/0", server.url())
}

/// Of each node: whether it has a vote, whether it is durable, and why it has no vote.
#[track_caller]
fn cells(text: &str) -> Vec<[String; 3]> {
    let lines = text.lines().skip(3);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        [
            cells[1].to_owned(),
            cells[2].to_owned(),
            cells[3..].join(" "),
        ]
    };
    lines.map(row).collect()
}

/// With another server in the place of the last one.
fn with_other(servers: &Servers, other: &Server, arguments: &[&str]) -> Ended {
    let mut command = bare();
    for url in [servers[0].url(), servers[1].url(), other.url()] {
        command.args(["--node", &url]);
    }
    end(command
        .args(["--node-timeout", "2s", "registers"])
        .args(arguments))
}

#[test]
fn the_status_says_which_nodes_have_a_vote_and_why_the_others_have_none() {
    let mut servers = formed(3);
    let ended = registers(&servers, &["status"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    assert!(
        ended
            .stdout
            .starts_with("3 of 3 nodes have a vote in epoch 1\n\n"),
        "{}",
        ended.stdout
    );
    let voter = ["yes", "no", "-"].map(String::from);
    assert_eq!(
        cells(&ended.stdout),
        [voter.clone(), voter.clone(), voter.clone()]
    );

    servers[1].command(&["FLUSHALL"]);
    let ended = registers(&servers, &["status"]);
    assert_eq!(ended.code, 0, "a majority has");
    let emptied = ["no", "-", "it is not a member, or has forgotten that it is"].map(String::from);
    assert_eq!(cells(&ended.stdout), [voter.clone(), emptied, voter]);

    servers[2].kill();
    let (code, json) = registers_json(&servers, &["status"]);
    assert_eq!(
        (code, &json["epoch"], &json["votes"]),
        (69, &1.into(), &1.into())
    );
    let member = json!({
        "url": shown(&servers[0]), "up": true, "vote": true, "durable": false, "why_not": null,
    });
    assert_eq!(json["nodes"][0], member);
    assert_eq!(
        (&json["nodes"][1]["up"], &json["nodes"][1]["vote"]),
        (&true.into(), &false.into())
    );
    let down = &json["nodes"][2];
    assert_eq!(
        (&down["up"], &down["vote"], &down["durable"]),
        (&json!(false), &json!(null), &json!(null))
    );
    assert!(down["why_not"].is_string(), "{down}");
}

#[test]
fn nodes_that_are_no_group_have_a_code_of_their_own() {
    let mut servers = Servers::start(3);
    let (code, json) = registers_json(&servers, &["status"]);
    assert_eq!(
        (code, &json["epoch"], &json["votes"]),
        (78, &Value::Null, &0.into())
    );
    for arguments in [&["repair"][..], &["trust", "redis://127.0.0.1:1"]] {
        let ended = registers(&servers, arguments);
        assert_eq!(
            (ended.code, &*ended.stdout),
            (78, ""),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
    servers[0].kill();
    assert_eq!(registers(&servers, &["status"]).code, 78);
    servers[1].kill();
    for arguments in [
        &["status"][..],
        &["repair"],
        &["trust", "redis://127.0.0.1:1"],
    ] {
        let ended = registers(&servers, arguments);
        assert_eq!(ended.code, 69, "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn an_emptied_node_is_repaired() {
    let servers = formed(3);
    assert_eq!(registers(&servers, &["set", "name", "value"]).code, 0);
    let ended = registers(&servers, &["repair"]);
    let all = (0, "all nodes have their votes\n", "");
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), all);
    servers[1].command(&["FLUSHALL"]);
    let url = shown(&servers[1]);
    let ended = registers(&servers, &["repair"]);
    assert_eq!(
        (ended.code, ended.stdout),
        (0, format!("{url}: it has got its vote\n"))
    );
    let ended = registers(&servers, &["status"]);
    assert!(
        ended
            .stdout
            .starts_with("3 of 3 nodes have a vote in epoch 2\n"),
        "{}",
        ended.stdout
    );

    servers[2].command(&["FLUSHALL"]);
    let repaired = json!({ "repaired": [shown(&servers[2])], "unanswered": [] });
    assert_eq!(registers_json(&servers, &["repair"]), (0, repaired));
    assert_eq!(registers(&servers, &["get", "name"]).stdout, "value");
}

#[test]
fn a_node_that_does_not_answer_is_named_and_another_one_is_repaired() {
    let servers = formed(5);
    servers[4].pause();
    let ended = end(&mut with_short_rounds(&servers, &["registers", "repair"]));
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let mut lines = ended.stdout.lines();
    assert_eq!(lines.next(), Some("the nodes that answer have their votes"));
    let away = format!("{}: no answer: ", shown(&servers[4]));
    assert!(
        lines.next().is_some_and(|line| line.starts_with(&away)),
        "{}",
        ended.stdout
    );

    servers[1].command(&["FLUSHALL"]);
    let ended = end(&mut with_short_rounds(&servers, &["registers", "repair"]));
    let repaired = format!("{}: it has got its vote\n{away}", shown(&servers[1]));
    assert!(
        ended.code == 0 && ended.stdout.starts_with(&repaired),
        "{ended:?}"
    );
    servers[4].resume();
}

#[test]
fn a_server_takes_the_place_of_another_by_a_repair() {
    let servers = formed(3);
    assert_eq!(registers(&servers, &["set", "name", "value"]).code, 0);
    let fresh = Server::start(&[]);
    assert_eq!(with_other(&servers, &fresh, &["status"]).code, 0);
    let old = servers[2].url();
    let address = |server: &Server| shown(server).replace("redis://", "");
    let is_refused = |ended: Ended, node: &Server, holder: &Server| {
        assert_eq!((ended.code, &*ended.stdout), (7, ""), "{}", ended.stderr);
        let place = format!(
            "redlatch: {} has got no vote: the place is that of {} (registers repair --replace",
            shown(node),
            address(holder)
        );
        assert!(ended.stderr.starts_with(&place), "{}", ended.stderr);
    };
    is_refused(
        with_other(&servers, &fresh, &["repair"]),
        &fresh,
        &servers[2],
    );
    let ended = with_other(&servers, &fresh, &["repair", "--replace", &old]);
    let expected = format!("{}: it has got its vote\n", shown(&fresh));
    assert_eq!(
        (ended.code, ended.stdout, &*ended.stderr),
        (0, expected, "")
    );
    // A host that has the old list.
    is_refused(registers(&servers, &["repair"]), &servers[2], &fresh);
    assert!(
        with_other(&servers, &fresh, &["status"])
            .stdout
            .starts_with("3 of 3 nodes")
    );
    let doctor = end(&mut redlatch(&servers, &["doctor"]));
    assert!(
        doctor
            .stdout
            .contains("another server has its place; name that one"),
        "{doctor:?}"
    );
    servers[0].command(&["FLUSHALL"]);
    assert_eq!(
        with_other(&servers, &fresh, &["get", "name"]).stdout,
        "value"
    );
    let ended = registers(&servers, &["status"]);
    assert_eq!(
        ended.code, 69,
        "the old server has no vote: {}",
        ended.stdout
    );
    assert_eq!(
        cells(&ended.stdout)[2][2],
        "another server has its place",
        "{}",
        ended.stdout
    );

    // One of another group is not taken from it.
    let others = formed(1);
    let ended = with_other(&servers, &others[0], &["repair"]);
    assert_ne!(ended.code, 0);
    assert_eq!(registers(&others, &["status"]).code, 0);
}

#[test]
fn nodes_that_were_started_again_are_trusted_by_a_person() {
    let mut servers = Servers::start_with(3, &["--appendonly", "yes"]);
    assert_eq!(registers(&servers, &["form", "--in-memory"]).code, 0);
    assert_eq!(registers(&servers, &["set", "name", "value"]).code, 0);
    for number in 0..2 {
        servers[number].stop();
        servers[number].restart();
    }
    let ended = registers(&servers, &["status"]);
    assert_eq!(ended.code, 69, "{}", ended.stdout);
    let restarted = "it was started again and may have forgotten something";
    assert_eq!(cells(&ended.stdout)[0], ["no", "-", restarted]);
    assert_eq!(
        registers(&servers, &["repair"]).code,
        69,
        "a majority may have forgotten"
    );

    let first = shown(&servers[0]);
    let ended = registers(&servers, &["trust", &first]);
    let trusted = (0, "the node has its vote\n", "");
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), trusted);
    let trusted = json!({ "trusted": true });
    assert_eq!(registers_json(&servers, &["trust", &first]), (0, trusted));
    assert_eq!(registers(&servers, &["get", "name"]).stdout, "value");
    servers[1].command(&["FLUSHALL"]);
    for url in [&*servers[1].url(), "redis://nowhere:7", "no URL"] {
        let ended = registers(&servers, &["trust", url]);
        assert_eq!(
            (ended.code, &*ended.stdout),
            (7, ""),
            "{url}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("has got no vote: "),
            "{}",
            ended.stderr
        );
    }
}
