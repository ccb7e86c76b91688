//! `redlatch transactions`.

use super::program::{Ended, end, redlatch};
use super::registers::formed;
use redlatch::LockClient;
use serde_json::{Value, json};
use support::locks::with_long_timeout;
use support::redis::Server;
use support::servers::Servers;

fn client(servers: &Servers) -> LockClient {
    with_long_timeout(servers.iter().map(Server::url))
        .build()
        .expect("the URLs can be used")
}

#[track_caller]
fn run(servers: &Servers, arguments: &[&str]) -> Ended {
    end(&mut redlatch(servers, arguments))
}

#[test]
fn an_open_transaction_is_shown_until_it_is_aborted() {
    let servers = formed(3);
    let none = run(&servers, &["transactions"]);
    assert_eq!(
        (none.code, &*none.stdout),
        (0, "0 transactions are not at their end\n")
    );
    let id = client(&servers)
        .transactions()
        .begin(&["berlin", "paris"])
        .expect("it begins")
        .to_string();
    let shown = run(&servers, &["transactions"]);
    assert!(
        shown
            .stdout
            .starts_with("1 transaction is not at its end\n\nTRANSACTION ")
    );
    let line = shown.stdout.lines().last().expect("a line");
    assert!(
        line.starts_with(&id) && line.ends_with("berlin, paris"),
        "{line}"
    );
    let json = run(&servers, &["transactions", "--json"]);
    let mut json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    json[0]
        .as_object_mut()
        .expect("an object")
        .remove("age_seconds");
    let names = ["berlin", "paris"];
    let expected = json!({ "id": id, "state": "open", "participants": names, "awaited": names });
    assert_eq!(json, json!([expected]));
    let aborted = run(&servers, &["transactions", "abort", &id, "--json"]);
    assert_eq!((aborted.code, &*aborted.stderr), (0, ""));
    assert_eq!(
        aborted.stdout,
        format!("{}\n", json!({ "id": id, "aborted": true }))
    );
    assert_eq!(run(&servers, &["transactions", "--json"]).stdout, "[]\n");
    // It is over, which does not say that it was aborted.
    let again = run(&servers, &["transactions", "abort", &id, "--json"]);
    assert_eq!(again.code, 4, "{}", again.stderr);
    assert_eq!(
        again.stdout,
        format!("{}\n", json!({ "id": id, "aborted": false }))
    );
    let again = run(&servers, &["transactions", "abort", &id]);
    assert_eq!((again.code, &*again.stdout), (4, ""));
    assert!(
        again.stderr.contains("may have committed"),
        "{}",
        again.stderr
    );
}

#[test]
fn what_is_no_id_of_this_group_is_refused() {
    let servers = formed(3);
    let others = formed(3);
    assert_eq!(run(&servers, &["transactions", "abort", "7"]).code, 2);
    let id = client(&others)
        .transactions()
        .begin(&["berlin"])
        .expect("it begins")
        .to_string();
    let refused = run(&servers, &["transactions", "abort", &id]);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("another group of nodes"),
        "{}",
        refused.stderr
    );
}
