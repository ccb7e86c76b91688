//! What an operator knows of a group, and its servers do not.

use std::time::Duration;

use redlatch::error::NodeAnswer;
use redlatch::{Error, LockClient};
use support::eventually;
use support::journal::Journal;
use support::locks::{LIMIT, can_be_acquired};
use support::redis::Server;
use support::sentinel::{info, replicated};

use super::{builder, take};

/// No test waits for the end of a quarantine.
const LONG: Duration = Duration::from_secs(600);
const TTL: Duration = Duration::from_secs(5);

fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}?failover=true", server.port())
}

fn client(server: &Server) -> LockClient {
    builder(&url(server)).max_ttl(LONG).build().unwrap()
}

fn is_quarantined(client: &LockClient) -> bool {
    let tried = client.try_lock("other", TTL);
    matches!(tried, Err(Error::NoQuorum(error)) if error.quarantine().is_some())
}

#[test]
fn an_adopted_group_counts_at_once_and_a_renewed_one_waits_while_kept_locks_go_on() {
    let servers = replicated(1);
    let operator = client(&servers[0]);
    let other = client(&servers[0]);
    assert!(is_quarantined(&other) && is_quarantined(&operator));
    let journal = Journal::default();
    let waiting = builder(&url(&servers[0]))
        .max_ttl(LONG)
        .on_event(journal.recorder());
    let waiting = waiting.build().unwrap();
    let cancel = waiting.cancel_token();
    let waiter = std::thread::spawn(move || waiting.lock("other", TTL));
    let reported = || {
        let entries = journal.entries();
        let found = entries.iter().find(|entry| entry.name == "quarantined");
        found.map(|entry| entry.text.clone())
    };
    assert!(eventually(LIMIT, || reported().is_some()), "it waits");
    cancel.cancel();
    assert!(matches!(waiter.join().unwrap(), Err(Error::Cancelled)));
    let text = reported().unwrap();
    assert!(
        text.contains("a new master, or are new (adopt_groups)"),
        "{text}"
    );
    let text = other.try_lock("other", TTL).unwrap_err().to_string();
    assert!(
        text.contains("(if the group is new: LockClient::adopt_groups)"),
        "{text}"
    );
    let changed = operator.adopt_groups().unwrap();
    assert_eq!(
        changed.iter().map(|it| &it.answer).collect::<Vec<_>>(),
        [&NodeAnswer::Answered]
    );
    // It was greeted with the marker before, and greets again.
    assert!(eventually(LIMIT, || can_be_acquired(&other, "other")));
    let guard = other
        .request("orders")
        .ttl(TTL)
        .keep_alive()
        .try_lock()
        .unwrap()
        .unwrap();
    let changed = operator.renew_groups().unwrap();
    assert_eq!(changed[0].answer, NodeAnswer::Answered);
    assert!(eventually(LIMIT, || is_quarantined(&other)));
    std::thread::sleep(2 * TTL);
    guard.ensure_held().unwrap();
    guard.release().unwrap();
}

/// All that is wrong with `adopt_groups` after a failover: a lock that the promoted server has not
/// got is held.
#[test]
fn a_group_that_was_in_use_is_not_adopted() {
    let servers = replicated(1);
    let first = client(&servers[0]);
    first.adopt_groups().unwrap();
    assert!(eventually(LIMIT, || can_be_acquired(&first, "job")));
    let reign = info(&servers[0], "master_replid");
    let copied = || servers[1].command(&["EXISTS", "redlatch:reign"]).integer() == 1;
    assert!(eventually(LIMIT, copied));
    servers[1].command(&["REPLICAOF", "NO", "ONE"]);

    for (case, index) in [
        ("promoted", 1),
        ("without the marker", 1),
        ("without its keys", 0),
    ] {
        let refuses = |client: &LockClient| {
            let Err(Error::NoQuorum(error)) = client.try_lock("job", TTL) else {
                panic!("{case}: it counts");
            };
            let former = error.reports()[0]
                .former_reign
                .clone()
                .expect("it is known");
            assert!(reign.starts_with(&former), "{case}: {former} {reign}");
            let text = error.to_string();
            assert!(
                !text.contains("adopt") && text.contains(&former),
                "{case}: {text}"
            );
            let answer = &client.adopt_groups().unwrap()[0];
            assert_eq!(answer.answer, NodeAnswer::Refused, "{case}");
            assert_eq!(answer.former_reign.as_ref(), Some(&former), "{case}");
            assert!(is_quarantined(client), "{case}");
        };
        match case {
            "promoted" => {}
            "without the marker" => {
                servers[index].command(&["DEL", "redlatch:reign"]);
            }
            _ => {
                servers[index].command(&["FLUSHALL"]);
                // Who is greeted first has never seen it, and then comes who has.
                assert!(is_quarantined(&client(&servers[index])));
                assert!(eventually(LIMIT, || is_quarantined(&first)));
                let told = || {
                    let former = first
                        .try_lock("job", TTL)
                        .map_err(|error| error.to_string());
                    former.is_err_and(|text| text.contains("was in use before"))
                };
                assert!(eventually(LIMIT, told));
            }
        }
        refuses(&client(&servers[index]));
    }
}

#[test]
fn a_quarantine_is_told_to_its_end_also_where_others_wait() {
    let servers = replicated(1);
    let builder = || {
        builder(&url(&servers[0]))
            .max_ttl(LONG)
            .failover_bound(LONG / 2)
    };
    let waiting = builder().build().unwrap();
    let cancel = waiting.cancel_token();
    let waiter = std::thread::spawn(move || waiting.lock("job", TTL));
    let queued = || {
        servers[0]
            .command(&["ZCARD", "job:redlatch:queue"])
            .integer()
            == 1
    };
    assert!(eventually(LIMIT, queued));
    let client = builder().build().unwrap();
    for name in ["job", "other"] {
        let Err(Error::NoQuorum(error)) = client.try_lock(name, TTL) else {
            panic!("it counts")
        };
        assert!(
            error.quarantine().is_some_and(|left| left > LONG),
            "{name}: {error}"
        );
    }
    cancel.cancel();
    assert!(matches!(waiter.join().unwrap(), Err(Error::Cancelled)));
}

#[test]
fn nodes_that_are_no_groups_are_left_alone() {
    let server = Server::start(&[]);
    let client = builder(&server.url()).build().unwrap();
    assert_eq!(client.adopt_groups(), Ok(Vec::new()));
    assert_eq!(client.renew_groups(), Ok(Vec::new()));
    drop(take(&client, TTL));
    assert_eq!(server.command(&["EXISTS", "redlatch:reign"]).integer(), 0);
}
