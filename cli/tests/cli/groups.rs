//! Replicated groups: `redlatch adopt`, `redlatch renew`, and what the other commands show.

use super::program::{Ended, bare, end};
use super::terminal::start_in_terminal_with;
use serde_json::Value;
use support::eventually;
use support::locks::LIMIT;
use support::redis::Server;
use support::sentinel::{NAME, SentinelGroup, replicated};

/// A group of one server, which no client has used before.
struct Group {
    servers: Vec<Server>,
    url: String,
}

impl Group {
    fn start() -> Self {
        let servers = replicated(1);
        let url = format!("redis://127.0.0.1:{}/0?failover=true", servers[0].port());
        Self { servers, url }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        end(bare()
            .env("REDLATCH_NODES", &self.url)
            .args(["--node-timeout", "2s"])
            .args(arguments))
    }

    fn doctor(&self) -> Ended {
        self.run(&["doctor", "--json"])
    }
}

#[test]
fn a_group_is_adopted_and_renewed_if_that_is_confirmed() {
    let group = Group::start();
    adoption_is_offered(&group);
    adopt(&group);
    renew(&group);
    let short = ["--max-ttl", "1s", "--failover-bound", "1ms"];
    let counts = || group.run(&[&short[..], &["adopt", "--yes"]].concat());
    let is_over =
        || counts().stdout == format!("{}: not changed: its grants count already\n", group.url);
    assert!(eventually(LIMIT, is_over), "{:?}", counts());
    assert_eq!(counts().code, 0);
}

/// Every command that meets a new group says how it is adopted.
fn adoption_is_offered(group: &Group) {
    assert_eq!(group.doctor().code, 71);
    assert!(
        group
            .doctor()
            .stdout
            .contains("if it is new, run redlatch adopt"),
        "{:?}",
        group.doctor()
    );
    let dry = group.run(&["adopt"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(
        dry.stdout
            .contains("its grants do not count for another 1 min 1"),
        "{dry:?}"
    );
    assert!(
        dry.stdout
            .ends_with("Nothing was changed: --yes does it.\n"),
        "{dry:?}"
    );
    let waits = group.run(&["run", "--no-wait", "orders", "true"]);
    assert_eq!(waits.code, 71);
    let text = "failover_bound, and one that was failed over may have forgotten who holds the \
                lock; redlatch adopt --yes does without the wait";
    assert!(
        waits.stderr.contains(text) && !waits.stderr.contains("restart"),
        "{waits:?}"
    );
    let locked = group.run(&["doctor", "--lock", "orders"]).stdout;
    assert!(
        locked.contains("redlatch adopt --yes") && !locked.contains("-guard"),
        "{locked}"
    );
    let command = concat!(
        "exec ",
        env!("CARGO_BIN_EXE_redlatch"),
        " run orders -- true"
    );
    let mut line = start_in_terminal_with(&group.url, command);
    line.await_text("redlatch: redlatch adopt --yes does without the wait, for a group that ");
    drop(line);
}

fn adopt(group: &Group) {
    let adopted = group.run(&["adopt", "--yes"]);
    assert_eq!(
        (adopted.code, &*adopted.stdout),
        (0, &*format!("{}: adopted\n", group.url))
    );
    // The waiter at the terminal may still be leaving the queue. A quarantine lasts longer than
    // this.
    let run = group.run(&["run", "--wait", "10s", "orders", "true"]);
    assert_eq!(run.code, 0, "{run:?}");
    let shown = group.run(&["status", "--json"]);
    let node = &serde_json::from_str::<Value>(&shown.stdout).expect("JSON")[0];
    assert_eq!(
        node["group"]["reign"].as_str().map(str::len),
        Some(40),
        "{shown:?}"
    );
    // No age from 1970 on.
    assert_eq!(node["group"]["adopted"], true, "{shown:?}");
    assert!(node["group"]["age_seconds"].is_null(), "{shown:?}");
    let table = group.run(&["status"]).stdout;
    assert!(
        table.contains("REIGN") && table.contains("adopted"),
        "{table}"
    );
    let found = group.run(&["doctor", "--verbose"]).stdout;
    assert!(
        found.contains(", adopted") && !found.contains("known for"),
        "{found}"
    );
    assert_eq!(
        group.run(&["adopt", "--yes"]).stdout,
        format!("{}: adopted\n", group.url)
    );
}

fn renew(group: &Group) {
    let renewed = group.run(&["renew", &group.url, "--yes"]);
    assert_eq!(
        (renewed.code, &*renewed.stdout),
        (0, &*format!("{}: renewed\n", group.url))
    );
    assert_eq!(group.doctor().code, 71);
    let found = group.doctor().stdout;
    assert!(
        found.contains("its master was replaced or restarted lately"),
        "{found}"
    );
    // It is not its first use, so nothing offers what is for that.
    let waits = group.run(&["run", "--no-wait", "orders", "true"]);
    let locked = group.run(&["doctor", "--lock", "orders"]).stdout;
    for text in [&found, &waits.stderr, &locked] {
        assert!(!text.contains("adopt"), "{text}");
    }
    assert!(
        waits
            .stderr
            .contains("a lock of that time may still be held"),
        "{waits:?}"
    );
    let refused = group.run(&["adopt", "--yes"]);
    assert_eq!(refused.code, 69, "{refused:?}");
    assert!(
        refused
            .stdout
            .contains("not changed: it was in use before, in the reign ")
    );
    assert_eq!(group.run(&["run", "--no-wait", "orders", "true"]).code, 71);
}

#[test]
fn a_node_that_is_not_a_group_is_not_renewed() {
    let group = Group::start();
    let plain = format!("redis://127.0.0.1:{}", group.servers[0].port());
    let none = end(bare().args(["--node-timeout", "2s", "renew", &plain, "--yes"]));
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("no node is a replicated group"),
        "{none:?}"
    );
}

#[test]
fn doctor_looks_at_sentinels_and_says_where_it_may_not_look() {
    let group = SentinelGroup::start(1);
    for server in &group.servers {
        let user = "ACL SETUSER app on >pw ~* &* +@all -config";
        server.command(&user.split(' ').collect::<Vec<_>>());
    }
    group.sentinels[1].command(&["SENTINEL", "SET", NAME, "quorum", "1"]);
    let found = |url: &str| {
        let ended = end(bare().env("REDLATCH_NODES", url).args([
            "--node-timeout",
            "2s",
            "--failover-bound",
            "1s",
            "doctor",
            "--json",
        ]));
        let list: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        let is_warned = |check: &str, words: &str| {
            list.iter().any(|it| {
                let text = it["text"].as_str().unwrap();
                it["level"] == "warning" && it["check"] == check && text.contains(words)
            })
        };
        let sentinels = is_warned("sentinels", "1 of 3 Sentinels suffice");
        (
            sentinels,
            is_warned("rights", "+config|get on all"),
            is_warned("no_bound", "cut off"),
        )
    };
    assert_eq!(found(&group.url()), (true, false, true));
    assert_eq!(
        found(&group.url().replace("://", "://app:pw@")),
        (true, true, false)
    );
}

#[test]
fn what_cannot_heal_ends_a_wait_with_77_and_says_what_to_mend() {
    let group = SentinelGroup::start(1);
    let waits = |url: &str| {
        let run = [
            "--node-timeout",
            "2s",
            "run",
            "orders",
            "--wait",
            "60s",
            "--",
            "true",
        ];
        end(bare().env("REDLATCH_NODES", url).args(run))
    };
    let at = |ports: Vec<u16>| {
        let hosts: Vec<_> = ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        hosts.join(",")
    };
    let servers = at(group.servers.iter().map(Server::port).collect());
    for (url, words) in [
        (
            group.url().replace(NAME, "others"),
            "No such master with that name",
        ),
        (
            format!("redis+sentinel://{servers}/{NAME}"),
            "the server is not a Sentinel",
        ),
        (
            format!("redis+cluster://{servers}"),
            "the server is in no cluster",
        ),
        (
            format!("redis://{}", at(vec![group.sentinels[0].port()])),
            "the server is a Sentinel",
        ),
        (
            format!("{}?sentinel_user=app&sentinel_password=no", group.url()),
            "WRONGPASS",
        ),
    ] {
        if words == "WRONGPASS" {
            for sentinel in &group.sentinels {
                sentinel.command(&["ACL", "SETUSER", "app", "on", ">pw", "+@all"]);
                sentinel.command(&["ACL", "SETUSER", "default", "off"]);
            }
        }
        let ended = waits(&url);
        assert_eq!(ended.code, 77, "{url}: {ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
        let doctor =
            end(bare()
                .env("REDLATCH_NODES", &url)
                .args(["--node-timeout", "2s", "doctor"]));
        assert!(
            doctor.code == 69 && doctor.stdout.contains(words),
            "{doctor:?}"
        );
    }
}
