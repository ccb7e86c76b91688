//! What an operator knows of a group, and its servers do not.

use std::time::Duration;

use redlatch::error::NodeAnswer;
use redlatch::{Error, LockClient};
use support::eventually;
use support::journal::Journal;
use support::locks::{LIMIT, can_be_acquired};
use support::redis::Server;
use support::sentinel::replicated;

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
    let (operator, other) = (client(&servers[0]), client(&servers[0]));
    assert!(is_quarantined(&other) && is_quarantined(&operator));
    let journal = Journal::default();
    let waiting = builder(&url(&servers[0])).max_ttl(LONG).on_event(journal.recorder());
    let waiting = waiting.build().unwrap();
    let waited = waiting.request("other").ttl(TTL).try_lock_for(Duration::from_secs(2));
    assert!(waited.is_err());
    let entries = journal.entries();
    let reported = entries.iter().find(|entry| entry.name == "quarantined").expect("it waits");
    assert!(reported.text.contains("a new master, or are new (adopt_groups)"), "{reported:?}");
    let text = other.try_lock("other", TTL).unwrap_err().to_string();
    assert!(text.contains("(if the group is new: LockClient::adopt_groups)"), "{text}");
    let changed = operator.adopt_groups().unwrap();
    assert_eq!(changed.iter().map(|it| &it.answer).collect::<Vec<_>>(), [&NodeAnswer::Answered]);
    // It was greeted with the marker before, and greets again.
    assert!(eventually(LIMIT, || can_be_acquired(&other, "other")));
    let guard = other.request("orders").ttl(TTL).keep_alive().try_lock().unwrap().unwrap();
    let changed = operator.renew_groups().unwrap();
    assert_eq!(changed[0].answer, NodeAnswer::Answered);
    assert!(eventually(LIMIT, || is_quarantined(&other)));
    std::thread::sleep(2 * TTL);
    guard.ensure_held().unwrap();
    guard.release().unwrap();
}

#[test]
fn a_quarantine_is_told_to_its_end_also_where_others_wait() {
    let servers = replicated(1);
    let builder = || builder(&url(&servers[0])).max_ttl(LONG).failover_bound(LONG / 2);
    let waiting = builder().build().unwrap();
    let cancel = waiting.cancel_token();
    let waiter = std::thread::spawn(move || waiting.lock("job", TTL));
    let queued = || servers[0].command(&["ZCARD", "job:redlatch:queue"]).integer() == 1;
    assert!(eventually(LIMIT, queued));
    let client = builder().build().unwrap();
    for name in ["job", "other"] {
        let Err(Error::NoQuorum(error)) = client.try_lock(name, TTL) else { panic!("it counts") };
        assert!(error.quarantine().is_some_and(|left| left > LONG), "{name}: {error}");
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
